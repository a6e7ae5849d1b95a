"""Causality: what a changed word affects, with the causal mask and without it, and how a model does without its mask.

Vaswani et al. 2017, section 3.2.3: the mask ensures "that the predictions for position i can depend only on the known
outputs at positions less than i".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.gpt.kept_logits import gpt_of, ids_on_device, labels_at, surprisal_bits
from transformer_core.bundle import Bundle
from transformer_core.config import require_index
from transformer_core.models import Gpt
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding


@dataclass(frozen=True, eq=False)
class Changed:
    """Two readings of a text, one with other tokens from a place on, compared with each other.

    Shapes:
        replaced: (pos,), whether the token is another
        masked, unmasked: (stage, pos), the greatest difference of the residual stream after the embedding and after
            each layer, with the causal mask and without
        chance_masked, chance_unmasked: (pos,), half the sum of the differences of the next token's probabilities

    Args:
        before, after: the labels of both texts.
        place: of the first token that is another, from 0; -1 where none is.
        earlier_masked, earlier_unmasked: the greatest difference at any stage before that place; 0 where it is 0.
        moved_masked, moved_unmasked: at how many places before it anything moved at all.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    place: int
    replaced: np.ndarray
    masked: np.ndarray
    unmasked: np.ndarray
    chance_masked: np.ndarray
    chance_unmasked: np.ndarray
    earlier_masked: float
    earlier_unmasked: float
    moved_masked: int
    moved_unmasked: int


@dataclass(frozen=True, eq=False)
class Unmasked:
    """The same text read with the causal mask and without it.

    Shapes:
        masked, unmasked: (pos,), the surprisal of each token in bits; not a number for the first

    Args:
        labels: one per token.
        likeliest_masked, likeliest_unmasked: what was most expected at each place; empty for the first.
        mean_masked, mean_unmasked: bits per token; 0 where there is only one.
        right_masked, right_unmasked: at how many places the token that came was the likeliest.
    """

    labels: tuple[str, ...]
    masked: np.ndarray
    unmasked: np.ndarray
    likeliest_masked: tuple[str, ...]
    likeliest_unmasked: tuple[str, ...]
    mean_masked: float
    mean_unmasked: float
    right_masked: int
    right_unmasked: int


def every_pair(ids: Sequence[int], model: Gpt) -> Tensor:
    """Return the mask that lets every position attend to every other.  # (query_pos, key_pos)"""
    device = next(model.parameters()).device
    return torch.ones(len(ids), len(ids), dtype=torch.bool, device=device)


def replaced_from(encoding: Encoding, place: int, words: Sequence[int]) -> tuple[int, ...]:
    """Return a text's ids with others written over them from a place on; the length stays."""
    ids = list(encoding.ids)
    fitting = words[: len(ids) - place]
    ids[place : place + len(fitting)] = fitting
    return tuple(ids)


Reading = tuple[Tensor, Tensor]  # the stream (stage, pos, d_model) and the probabilities (pos, vocab)


@dataclass(frozen=True, eq=False)
class BothReadings:
    """A text read with the causal mask and without it."""

    masked: Reading
    unmasked: Reading


def both_readings(*, prompt: Prompt) -> BothReadings:
    """Read a text with the causal mask and without it; arguments as in changed_word.

    Raises:
        ValueError: the bundle is not a GPT.
    """
    return _both(prompt.bundle, prompt.encoding.ids)


def _both(bundle: Bundle, ids: Sequence[int]) -> BothReadings:
    masks = (None, every_pair(ids, gpt_of(bundle)))
    return BothReadings(*(_reading(bundle, ids, mask) for mask in masks))


def changed_word(*, prompt: Prompt, place: int, words: str, own: BothReadings | None = None) -> Changed:
    """Write other words over a text from a place on, and see what moves.

    Args:
        prompt: to a GPT.
        place: of the first token to write over, from 0.
        words: what to write; of more than fits, the end is left out.
        own: what both_readings returns for the same text, if it is there already.

    Raises:
        ValueError: place is out of range, words is empty, or the bundle is not a GPT.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    gpt_of(bundle)
    require_index("place", place, len(encoding))
    written = bundle.tokenizer.encode(words).ids
    if not written:
        raise ValueError("words='' must hold at least one token")
    ids = replaced_from(encoding, place, written)
    replaced = np.array(ids) != np.array(encoding.ids)  # (pos,)
    start = int(replaced.argmax()) if replaced.any() else -1
    own, other = own or _both(bundle, encoding.ids), _both(bundle, ids)
    masked, chance_masked = _apart(own.masked, other.masked)
    unmasked, chance_unmasked = _apart(own.unmasked, other.unmasked)
    earlier = [moves[:, : max(start, 0)].max(0) for moves in (masked, unmasked)]  # (pos before the change)
    return Changed(
        before=encoding.labels,
        after=tuple(bundle.tokenizer.labels_of(ids)),
        place=start,
        replaced=replaced,
        masked=masked,
        unmasked=unmasked,
        chance_masked=chance_masked,
        chance_unmasked=chance_unmasked,
        earlier_masked=float(earlier[0].max(initial=0.0)),
        earlier_unmasked=float(earlier[1].max(initial=0.0)),
        moved_masked=int((earlier[0] > 0).sum()),
        moved_unmasked=int((earlier[1] > 0).sum()),
    )


def _reading(bundle: Bundle, ids: Sequence[int], mask: Tensor | None) -> Reading:
    model, sites = gpt_of(bundle), bundle.reader.stages
    logits, trace = capture(model, ids_on_device(model, ids), mask=mask, sites=sites)
    return torch.stack([trace[site][0] for site in sites]), logits[0].float().softmax(-1)


def _apart(before: Reading, after: Reading) -> tuple[np.ndarray, np.ndarray]:
    """Return the greatest difference of the stream, (stage, pos), and how far the probabilities are apart, (pos,)."""
    (one, first), (other, second) = before, after
    stream = (one - other).abs().amax(-1)  # (stage, pos)
    moved = (first - second).abs().sum(-1) / 2  # (pos,)
    return stream.float().cpu().numpy(), moved.cpu().numpy()


@torch.inference_mode()
def without_mask(*, prompt: Prompt) -> Unmasked:
    """Read a text with every position seeing all others, though the model was trained to see only what came before.

    Args:
        prompt: to a GPT.

    Raises:
        ValueError: the bundle is not a GPT.
    """
    model, encoding = gpt_of(prompt.bundle), prompt.encoding
    ids = ids_on_device(model, encoding.ids)
    bits, likeliest = [], []
    for mask in (None, every_pair(encoding.ids, model)):
        logits = model(ids, mask=mask)[0, :-1].float()  # (pos - 1, vocab)
        bits.append(surprisal_bits(logits, ids[0, 1:]).cpu().double().numpy())
        likeliest.append(logits.argmax(-1).tolist())
    right = [sum(map(int.__eq__, row, encoding.ids[1:])) for row in likeliest]
    named = [("", *labels_at(prompt.bundle.tokenizer, encoding.ids, row)) for row in likeliest]
    masked, unmasked = bits
    return Unmasked(
        labels=encoding.labels,
        masked=np.concatenate([[np.nan], masked]),
        unmasked=np.concatenate([[np.nan], unmasked]),
        likeliest_masked=named[0],
        likeliest_unmasked=named[1],
        mean_masked=float(masked.mean()) if len(masked) else 0.0,
        mean_unmasked=float(unmasked.mean()) if len(unmasked) else 0.0,
        right_masked=right[0],
        right_unmasked=right[1],
    )
