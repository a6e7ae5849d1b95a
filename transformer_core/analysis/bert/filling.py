"""Filling in: the likeliest words behind every mask, and how well each word of a sentence is guessed from the others.

Devlin et al. 2019, section 3.1. Read next: layers.py.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.bert.hiding import (
    encode_masks,
    hidden_text,
    logits_at,
    logits_of,
    mask_of,
    own_places,
    ranks_of,
)
from transformer_core.bundle import Bundle

MOST_GUESSES = 50


@dataclass(frozen=True, eq=False)
class Filled:
    """The guesses behind every mask of one text.

    Shapes:
        places, true_ids, true_ranks, true_probabilities: (mask); ids, probabilities: (mask, guess), the likeliest first

    Args:
        labels: of `ids`, by mask.
        true_ids: what stood there; -1 where the text itself has the mask, so that nothing is known.
        true_labels: of `true_ids`; empty where nothing is known.
        true_ranks: of those among all words, from 1; 0 where nothing is known.
        true_probabilities: of those; nan where nothing is known.
        vocabulary: how many words were scored.
    """

    places: np.ndarray
    ids: np.ndarray
    labels: tuple[tuple[str, ...], ...]
    probabilities: np.ndarray
    true_ids: np.ndarray
    true_labels: tuple[str, ...]
    true_ranks: np.ndarray
    true_probabilities: np.ndarray
    vocabulary: int


@dataclass(frozen=True, eq=False)
class EachHidden:
    """Every token of a text hidden by itself.

    Shapes:
        places, probabilities, ranks, guess_probabilities: (token)

    Args:
        labels: of the tokens.
        probabilities: of the true word, given all the others.
        ranks: of the true word, from 1.
        guesses: the likeliest word in its place, with `guess_probabilities`.
        share_first: of tokens whose true word is the first guess, in [0, 1].
    """

    places: np.ndarray
    labels: tuple[str, ...]
    probabilities: np.ndarray
    ranks: np.ndarray
    guesses: tuple[str, ...]
    guess_probabilities: np.ndarray
    share_first: float


@torch.inference_mode()
def fill_in(*, bundle: Bundle, text: str, n_tokens: int, hidden: tuple[int, ...], top: int = 8) -> Filled:
    """Guess the words behind all masks of a text, in one pass.

    Args:
        hidden: places of tokens to hide, beside every [MASK] that the text spells out.
        top: how many guesses to return for each mask.

    Raises:
        ValueError: there is no mask, a place cannot be hidden, or top is outside its range.
    """
    if not 1 <= top <= MOST_GUESSES:
        raise ValueError(f"top={top} must be from 1 to {MOST_GUESSES}")
    read = hidden_text(bundle, text, n_tokens, hidden)
    if not read.places:
        raise ValueError("hidden=() hides nothing, and the text has no [MASK]; at least one token must be hidden")
    logits = logits_of(bundle, read.masked, read.places)  # (mask, vocab)
    probabilities = logits.softmax(-1)
    known = torch.tensor([0 if id_ is None else id_ for id_ in read.true_ids])
    is_known = torch.tensor([id_ is not None for id_ in read.true_ids])
    best = probabilities.topk(min(top, probabilities.shape[1]))
    label = bundle.tokenizer.label_of
    return Filled(
        places=np.array(read.places),
        ids=best.indices.numpy(),
        labels=tuple(tuple(map(label, row)) for row in best.indices.tolist()),
        probabilities=best.values.numpy(),
        true_ids=known.masked_fill(~is_known, -1).numpy(),
        true_labels=tuple("" if id_ is None else label(id_) for id_ in read.true_ids),
        true_ranks=ranks_of(logits, known).masked_fill(~is_known, 0).numpy(),
        true_probabilities=probabilities.gather(1, known[:, None])[:, 0].masked_fill(~is_known, torch.nan).numpy(),
        vocabulary=probabilities.shape[1],
    )


@torch.inference_mode()
def each_hidden(*, bundle: Bundle, text: str, n_tokens: int) -> EachHidden:
    """Hide each token of a text by itself and guess it from all the others; masks of the text stay masks.

    Raises:
        ValueError: the text has no token of its own, or the vocabulary has no [MASK].
    """
    encoding, mask_id = encode_masks(bundle, text, n_tokens), mask_of(bundle.tokenizer)
    places = own_places(encoding)
    if not places:
        raise ValueError(f"text={text[:60]!r} has no token that can be hidden")
    rows = [[*encoding.ids[:place], mask_id, *encoding.ids[place + 1 :]] for place in places]
    logits = logits_at(bundle, rows, places, encoding.segment_ids)  # (token, vocab)
    true_ids = torch.tensor([encoding.ids[place] for place in places])
    ranks, probabilities = ranks_of(logits, true_ids), logits.softmax(-1)
    best = probabilities.max(-1)
    return EachHidden(
        places=np.array(places),
        labels=tuple(encoding.labels[place] for place in places),
        probabilities=probabilities.gather(1, true_ids[:, None])[:, 0].numpy(),
        ranks=ranks.numpy(),
        guesses=tuple(map(bundle.tokenizer.label_of, best.indices.tolist())),
        guess_probabilities=best.values.numpy(),
        share_first=float((ranks == 1).double().mean()),
    )
