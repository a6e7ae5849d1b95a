"""Words on two axes between words: where a table of embeddings puts them.

An axis is the difference of two words' vectors, as in Bolukbasi et al. 2016, section 5; Grand et al. 2022 held such
projections against people's judgements.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.words.vocabulary import embedding_matrix, find, listed, unit_rows
from transformer_core.bundle import Bundle

NEIGHBOURS = 5


@dataclass(frozen=True, eq=False)
class Places:
    """Where words lie between the two ends of each axis.

    Shapes:
        at: (word, 2), -1 at the first end of an axis, 1 at the second; words may lie beyond
        near: (word, neighbour, 2), the same of each word's nearest words by cosine

    Args:
        words: as they were given.
    """

    words: tuple[str, ...]
    at: np.ndarray
    near: np.ndarray


def _id_of(bundle: Bundle, word: str) -> int:
    found = find(bundle.tokenizer, word)
    if len(found.ids) != 1 or not found.known:
        raise ValueError(f"word={word!r:.40} must be one token of bundle={bundle.name!r}; it is {len(found.ids)}")
    return found.ids[0]


@torch.inference_mode()
def places(*, bundle: Bundle, words: tuple[str, ...], x: tuple[str, str], y: tuple[str, str]) -> Places:
    """Project words' vectors on the lines through the ends of two axes.

    Of a word's vector e and ends a and b: 2 (e - (a + b) / 2) . (b - a) / |b - a|^2.

    Raises:
        ValueError: a word or an end is no single token of the model, or both ends of an axis are the same.
    """
    matrix = embedding_matrix(bundle.model).double()
    ids = [_id_of(bundle, word) for word in words]
    near = _nearest(bundle, matrix, ids)
    at, near_at = [], []
    for ends in (x, y):
        a, b = (matrix[_id_of(bundle, end)] for end in ends)
        along, middle = b - a, (a + b) / 2
        if not along.any():
            raise ValueError(f"ends={ends} must be two different words")
        on_axis = 2 * (matrix - middle) @ along / along.square().sum()  # (vocab,)
        at.append(on_axis[ids].numpy())
        near_at.append(on_axis[near].numpy())  # (word, neighbour)
    return Places(words, np.stack(at, -1), np.stack(near_at, -1))


def _nearest(bundle: Bundle, matrix: Tensor, ids: list[int]) -> Tensor:
    """Return the ids of each word's nearest whole words by cosine. # (word, neighbour)"""
    others = torch.tensor(listed(bundle.tokenizer, count=bundle.tokenizer.vocab_size))
    cosine = unit_rows(matrix[ids]) @ unit_rows(matrix[others]).T  # (word, other)
    cosine[others[None] == torch.tensor(ids)[:, None]] = -2.0  # no word is its own neighbour
    return others[cosine.topk(NEIGHBOURS).indices]
