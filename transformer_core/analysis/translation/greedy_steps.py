"""Greedy translation: the alternatives at each step, and where every head of the decoder looked.

Vaswani et al. 2017, sections 3.1 and 3.2.3; greedy decoding: Sutskever et al. 2014, section 3.2.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.generation import greedy_from_draft
from transformer_core.models.translation import DecoderState, Translation
from transformer_core.probe import Probe
from transformer_core.text import Encoding
from transformer_core.trace import Trace

MOST_WORDS = 96


@dataclass(frozen=True)
class Reader:
    """What reading one source takes: the model, the source as tokens and as ids, and the tokens at both ends.

    Shapes:
        source_ids: (1, source_pos)
    """

    model: Translation
    encoding: Encoding
    source_ids: Tensor
    bos_id: int
    eos_id: int
    most: int


def reader_of(bundle: Bundle, text: str, n_tokens: int) -> Reader:
    """Encode a source for a model that translates.

    Args:
        n_tokens: most tokens of the text to read.

    Raises:
        ValueError: the bundle does not translate, its tokenizer has no token for the start or the end, or an error of
            encode.
    """
    model, tokenizer = bundle.model, bundle.tokenizer
    if not isinstance(model, Translation):
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be a translation")
    if tokenizer.bos_id is None or tokenizer.eos_id is None:
        raise ValueError(f"bundle={bundle.name!r} must have a token for the start and one for the end of a target")
    encoding = tokenizer.encode(text, max_len=n_tokens)
    device = next(model.parameters()).device
    most = min(MOST_WORDS, bundle.config.max_len - 1)
    return Reader(
        model, encoding, torch.tensor([encoding.ids], device=device), tokenizer.bos_id, tokenizer.eos_id, most
    )


@dataclass(frozen=True, eq=False)
class Written:
    """A translation word by word; step k reads the start and the k words before and writes the next one.

    Shapes:
        probabilities: (step,); likeliest_ids, likeliest: (step, rank), the likeliest first
        self_weights: (layer, head, step, step); cross_weights: (layer, head, step, source_pos)

    Args:
        text: the translation.
        token_ids: the start, then what was written.
        source: the source's labels; read: what each step was given last; words: what each step wrote.
        prefixes: the text written up to each step, that step's word included.
        ended: the end token was written; else the bound on words was reached.
        others: labels by step and rank.
    """

    text: str
    token_ids: tuple[int, ...]
    source: tuple[str, ...]
    read: tuple[str, ...]
    words: tuple[str, ...]
    prefixes: tuple[str, ...]
    ended: bool
    probabilities: np.ndarray
    likeliest_ids: np.ndarray
    likeliest: np.ndarray
    others: tuple[tuple[str, ...], ...]
    self_weights: np.ndarray
    cross_weights: np.ndarray

    @property
    def log_prob(self) -> float:
        """ln P of the whole: the probabilities multiplied."""
        return float(np.log(self.probabilities.astype(np.float64)).sum())


def written_greedily(*, bundle: Bundle, text: str, n_tokens: int, top: int = 8, draft: tuple[int, ...] = ()) -> Written:
    """Translate a text, each time by the likeliest word, and look at every step.

    Args:
        bundle: a translation.
        n_tokens: most tokens of the text to read.
        top: how many of the likeliest words are named at each step.
        draft: as in greedy_from_draft; it changes how long this takes, and what is written in rounding alone.

    Raises:
        ValueError: as reader_of.
    """
    reader, tokenizer = reader_of(bundle, text, n_tokens), bundle.tokenizer
    ends = {"bos_id": reader.bos_id, "eos_id": reader.eos_id}
    with torch.inference_mode():
        state = reader.model.start(reader.source_ids)
    steps = list(greedy_from_draft(reader.model, state, draft, **ends, most=reader.most))
    written = tuple(step.token_id for step in steps)
    chances = torch.stack([step.logits for step in steps]).float().softmax(-1)  # (step, vocab)
    likeliest, likeliest_ids = chances.topk(min(top, chances.shape[1]))  # (step, rank)
    token_ids = (reader.bos_id, *written)
    trace = decoder_weights(reader.model, state, token_ids[:-1])
    return Written(
        text=tokenizer.decode(written),
        token_ids=token_ids,
        source=reader.encoding.labels,
        read=tokenizer.labels_of(token_ids[:-1]),
        words=tokenizer.labels_of(written),
        prefixes=tuple(tokenizer.decode(written[: place + 1]) for place in range(len(written))),
        ended=written[-1] == reader.eos_id,
        probabilities=chances[torch.arange(len(written)), list(written)].cpu().numpy(),
        likeliest_ids=likeliest_ids.cpu().numpy(),
        likeliest=likeliest.cpu().numpy(),
        others=tuple(tuple(map(tokenizer.label_of, row)) for row in likeliest_ids.tolist()),
        self_weights=stacked(trace, "self_attention"),
        cross_weights=stacked(trace, "cross_attention"),
    )


@torch.inference_mode()
def decoder_weights(model: Translation, state: DecoderState, read_ids: tuple[int, ...]) -> Trace:
    """Run the decoder over all that it read, at once, and keep its weights; the causal mask makes that the same."""
    target = torch.tensor([read_ids], device=state.memory.device)  # (1, step)
    probe = Probe(("decoder.*.weights",))
    model.decoder(target, state.memory, memory_mask=state.memory_mask, probe=probe.at("decoder"))
    return probe.trace


def stacked(trace: Trace, sublayer: str) -> np.ndarray:
    """Return the decoder's weights of one kind of attention for the first pair of a batch.

    Shapes:
        returns: (layer, head, query_pos, key_pos)
    """
    return trace.stack(f"decoder.*.{sublayer}.weights")[:, 0].float().cpu().numpy()
