"""What a model predicts from one text, whatever its kind: a class, the next token, the token behind [MASK].

Devlin et al. 2019, section 3.1; Radford et al. 2018, section 3.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.kept_passes import kept_pass
from transformer_core.layers.blocks import Stream
from transformer_core.layers.masks import causal_mask, padding_mask
from transformer_core.probe import DEFAULT_MAX_BYTES, Edit, capture
from transformer_core.text import Encoding
from transformer_core.trace import Trace

Asks = Literal["class", "next", "masked"]
MOST_SCORES = 1 << 24


@dataclass(frozen=True)
class Outcome:
    """Which scores of a model's output are its prediction for one text.

    Args:
        asks: "class": of which class the text is; "next": which token comes after it; "masked": which token stood
            where its first [MASK] stands.
        place: the position that is read, None for a class.
    """

    asks: Asks
    place: int | None = None

    def logits(self, output: Any) -> Tensor:
        """Return the scores of the possible outcomes.

        Shapes:
            returns: (batch, outcome), the outcomes being classes, or the ids of the vocabulary
        """
        if self.asks == "class":
            return output
        scores = output.mlm_logits if self.asks == "masked" else output  # (batch, pos, vocab)
        return scores[:, self.place]


def outcome_of(bundle: Bundle, encoding: Encoding) -> Outcome | None:
    """Return what this model predicts from a text; None where it has no head for it, or a BERT finds no [MASK].

    Of a GPT it is the token after the last one that the text itself has: padding and closing tokens come after it.
    """
    if bundle.kind == "classifier":
        return Outcome("class")
    if bundle.kind == "gpt":
        own = [place for place, (_, end) in enumerate(encoding.offsets) if end]
        return Outcome("next", own[-1]) if own else None
    mask_id = bundle.tokenizer.mask_id
    if bundle.kind == "bert" and mask_id in encoding.ids:
        return Outcome("masked", encoding.ids.index(mask_id))
    return None


def require_outcome(bundle: Bundle, encoding: Encoding) -> Outcome:
    """Return what this model predicts from a text.

    Raises:
        ValueError: it predicts nothing.
    """
    found = outcome_of(bundle, encoding)
    if found is None:
        raise ValueError(
            f"bundle={bundle.name!r} is a {bundle.kind}, which concludes nothing from this text; "
            "it must be a classifier, a gpt, or a bert that reads a [MASK]"
        )
    return found


def outcome_label(bundle: Bundle, outcome: Outcome, index: int) -> str:
    """Return the name of one possible outcome: a class, or a token; its number where it stands for neither."""
    if outcome.asks == "class":
        return bundle.labels[index] if index < len(bundle.labels) else f"#{index}"
    known = index < bundle.tokenizer.vocab_size  # a model may score more rows than its tokenizer has entries
    return (bundle.tokenizer.label_of(index) if known else "") or f"#{index}"


def conclude(
    bundle: Bundle,
    token_ids: Tensor,
    outcome: Outcome,
    *,
    sites: tuple[str, ...] = (),
    edits: Mapping[str, Edit] | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Trace]:
    """Return the probability of every possible outcome for each copy of a text, and what was recorded.

    Shapes:
        token_ids: (batch, pos); returns: (batch, outcome), each row summing to 1

    Args:
        sites, edits: as in capture; mask: as of the model.
    """
    output, trace = capture(bundle.model, token_ids, mask=mask, sites=sites, edits=edits)
    return outcome.logits(output).float().softmax(-1), trace


@torch.inference_mode()
def conclude_from(bundle: Bundle, token_ids: Tensor, outcome: Outcome, stream: Stream) -> Tensor:
    """Return what conclude does, of a pass that goes on from a stream; nothing is computed that the outcome leaves out.

    Shapes:
        token_ids: (batch, pos); returns: (batch, outcome), each row summing to 1

    Raises:
        ValueError: as Stream.entering.
    """
    if outcome.place is None:
        return bundle.model(token_ids, stream=stream).float().softmax(-1)
    output = bundle.model(token_ids, stream=stream, wanted=slice(outcome.place, outcome.place + 1))
    return replace(outcome, place=0).logits(output).float().softmax(-1)


def copies_at_once(bundle: Bundle, n_tokens: int, most: int) -> int:
    """Return how many copies of a text are read together, so that the scores of a large vocabulary fit in memory."""
    outcomes = bundle.config.n_classes if bundle.kind == "classifier" else n_tokens * bundle.config.vocab_size
    return max(1, min(most, MOST_SCORES // outcomes))


def one_text(bundle: Bundle, encoding: Encoding) -> Tensor:
    """Return a text's ids as a batch of one, where the model is. # (1, pos)"""
    return torch.tensor([encoding.ids], device=next(bundle.model.parameters()).device)


KINDS = ("classifier", "bert", "gpt", "encoder", "tagger", "answerer")


@dataclass(frozen=True)
class Prediction:
    """What a model made of one text.

    Args:
        probabilities: of each possible outcome (see outcome.py), summing to 1: of the classes in the order of the
            bundle's labels, or of the ids of the vocabulary; empty where the model predicts nothing.
        trace: what the probe recorded.
    """

    probabilities: tuple[float, ...]
    trace: Trace

    @property
    def nbytes(self) -> int:
        """Size in bytes of what was recorded, and of the probabilities."""
        return self.trace.nbytes + 32 * len(self.probabilities)  # a float and its place in a tuple


def scope_of(bundle: Bundle, rest: str) -> str:
    """Return the full name of a part of the stack that reads the text, such as ``encoder.layer0`` of ``layer0``."""
    return f"{'decoder' if bundle.kind == 'gpt' else 'encoder'}.{rest}"


def is_causal(bundle: Bundle) -> bool:
    """Return whether a position of the stack that reads the text sees only itself and what came before."""
    return bundle.kind == "gpt" and bundle.config.causal


def read(
    bundle: Bundle,
    encoding: Encoding,
    *,
    sites: tuple[str, ...] = ("*",),
    edits: Mapping[str, Edit] | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Prediction:
    """Run a model that reads one text over one encoding, or return what the same pass gave the last time.

    Raises:
        ValueError: the bundle is of a kind that does not read one text alone, or as capture.
    """
    if bundle.kind not in KINDS:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be one of {', '.join(KINDS)}")
    outcome = outcome_of(bundle, encoding)

    def made() -> Prediction:
        output, trace = capture(bundle.model, one_text(bundle, encoding), sites=sites, edits=edits, max_bytes=max_bytes)
        probabilities = () if outcome is None else tuple(outcome.logits(output)[0].float().softmax(-1).tolist())
        return Prediction(probabilities, trace)

    return made() if edits else kept_pass(bundle.model, ("read", encoding.ids, outcome, sites, max_bytes), made)


def own_mask(bundle: Bundle, encoding: Encoding) -> Tensor:
    """Return the mask under which a model reads a text by itself: no padding, and in a GPT nothing that comes later.

    Where config.padding_mask hides padding's queries as well, such a row averages over everything.

    Shapes:
        returns: (query_pos, key_pos), boolean, True = may attend
    """
    size = len(encoding)
    hidden = padding_mask(torch.tensor([encoding.ids]), bundle.config.padding)
    allowed = torch.ones(size, size, dtype=torch.bool) if hidden is None else hidden[0, 0].expand(size, size)
    if is_causal(bundle):
        return allowed & causal_mask(size)
    allowed = allowed.clone()
    if hidden is not None and bundle.config.padding_mask != "keys":
        allowed[~hidden[0, 0, 0]] = True
    return allowed
