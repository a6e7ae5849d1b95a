"""What a model predicts from one text, by its reader (reader.py): as it is, under edits, or from a stream onwards."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.kept_passes import kept_pass
from transformer_core.layers.blocks import Stream
from transformer_core.layers.masks import causal_mask, padding_mask
from transformer_core.probe import DEFAULT_MAX_BYTES, Edit, capture
from transformer_core.reader import Outcome
from transformer_core.text import Encoding
from transformer_core.trace import Trace, matches

KINDS = ("classifier", "bert", "gpt", "encoder", "tagger", "answerer")  # that read one text alone, layer by layer


def require_outcome(bundle: Bundle, encoding: Encoding) -> Outcome:
    """Return what this model predicts from a text.

    Raises:
        ValueError: it is of a kind that does not read one text alone, or predicts nothing from this one.
    """
    check_kind(bundle)
    return bundle.reader.required(encoding)


def check_kind(bundle: Bundle) -> None:
    """Raise ValueError unless a model is of a kind that reads one text alone."""
    if bundle.kind not in KINDS:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be one of {', '.join(KINDS)}")


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
    options, there = _scoring(bundle, outcome, sites, edits)
    output, trace = capture(bundle.model, token_ids, mask=mask, sites=sites, edits=edits, **options)
    return there.logits(output).float().softmax(-1), trace


def _scoring(
    bundle: Bundle, outcome: Outcome, sites: tuple[str, ...], edits: Mapping[str, Edit] | None
) -> tuple[dict[str, Any], Outcome]:
    """Return the options of a pass that scores the words of one position alone, and the outcome in what it returns."""
    place = outcome.place
    if place is None or bundle.kind != "gpt" or matches("logits", (*sites, *(edits or ()))):
        return {}, outcome
    return {"scored": slice(place, place + 1)}, replace(outcome, place=0)


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


def one_text(bundle: Bundle, encoding: Encoding) -> Tensor:
    """Return a text's ids as a batch of one, where the model is. # (1, pos)"""
    return torch.tensor([encoding.ids], device=bundle.device)


@dataclass(frozen=True)
class Prediction:
    """What a model made of one text.

    Args:
        probabilities: of each possible outcome (see reader.py), summing to 1: of the classes in the order of the
            bundle's labels, or of the ids of the vocabulary; empty where the model predicts nothing.
        trace: what the probe recorded.

    Shapes:
        probabilities: (outcome), in float64, for reading only
    """

    probabilities: np.ndarray
    trace: Trace

    @property
    def nbytes(self) -> int:
        """Size in bytes of what was recorded, and of the probabilities."""
        return self.trace.nbytes + self.probabilities.nbytes


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
    check_kind(bundle)
    outcome = bundle.reader.outcome(encoding)

    def made() -> Prediction:
        options, there = ({}, None) if outcome is None else _scoring(bundle, outcome, sites, edits)
        ids = one_text(bundle, encoding)
        output, trace = capture(bundle.model, ids, sites=sites, edits=edits, max_bytes=max_bytes, **options)
        if there is None:
            return Prediction(np.empty(0), trace)
        return Prediction(there.logits(output)[0].float().softmax(-1).cpu().double().numpy(), trace)

    return (
        made()
        if edits
        else kept_pass(bundle.model, ("read", encoding.ids, outcome and outcome.slot, sites, max_bytes), made)
    )


def own_mask(bundle: Bundle, encoding: Encoding) -> Tensor:
    """Return the mask under which a model reads a text by itself: no padding, and in a GPT nothing that comes later.

    Where config.padding_mask hides padding's queries as well, such a row averages over everything.

    Shapes:
        returns: (query_pos, key_pos), boolean, True = may attend
    """
    size = len(encoding)
    hidden = padding_mask(torch.tensor([encoding.ids]), bundle.config.padding)
    allowed = torch.ones(size, size, dtype=torch.bool) if hidden is None else hidden[0, 0].expand(size, size)
    if bundle.reader.causal:
        return allowed & causal_mask(size)
    allowed = allowed.clone()
    if hidden is not None and bundle.config.padding_mask != "keys":
        allowed[~hidden[0, 0, 0]] = True
    return allowed
