"""One-hot times matrix equals a row: why a table is looked up and never multiplied.

Vaswani et al. 2017, section 3.4; word vectors as the first layer's weights: Bengio et al. 2003, section 2.
"""

import time
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch

from transformer_core.analysis.words.vocabulary import embedding_matrix
from transformer_core.bundle import Bundle
from transformer_core.layers.embeddings import Embedding

LEAST_SECONDS = 0.04


@dataclass(frozen=True, eq=False)
class OneHotRow:
    """One token's row, looked up and multiplied out.

    Shapes:
        ids: (row,), the token's and its neighbours in the vocabulary; one_hot: (row, 1), cut to these
        matrix: (row, d_model), the embedding matrix cut to these rows; product, row: (d_model,)

    Args:
        labels: of `ids`.
        product: the whole one-hot vector times the whole matrix.
        row: what the model's own embedding layer looks up.
        greatest_difference: between product and row.
        vocab_size: the length of the whole one-hot vector.
        multiplications: that the product takes; looking up takes none.
    """

    ids: np.ndarray
    labels: tuple[str, ...]
    one_hot: np.ndarray
    matrix: np.ndarray
    product: np.ndarray
    row: np.ndarray
    greatest_difference: float
    vocab_size: int
    multiplications: int


@dataclass(frozen=True)
class LookupTimes:
    """Wall-clock seconds of embedding one text both ways on this machine, medians; they differ from run to run.

    Args:
        tokens: in the text.
        lookup: seconds of looking the rows up.
        product: seconds of multiplying the one-hot matrix, prepared beforehand, by the embedding matrix.
        ratio: product / lookup.
    """

    tokens: int
    lookup: float
    product: float
    ratio: float


@torch.inference_mode()
def one_hot_row(*, bundle: Bundle, token_id: int, beside: int = 4) -> OneHotRow:
    """Multiply a token's one-hot vector by the embedding matrix, and look the same row up.

    Args:
        bundle: any model that reads text.
        token_id: which.
        beside: so many neighbouring ids to each side are shown.

    Raises:
        ValueError: there is no such id.
    """
    matrix = embedding_matrix(bundle.model)
    vocab_size, d_model = matrix.shape
    if not 0 <= token_id < vocab_size:
        raise ValueError(f"token_id={token_id} must be from 0 to {vocab_size - 1}")
    one_hot = torch.zeros(vocab_size)
    one_hot[token_id] = 1.0
    product = one_hot @ matrix  # (d_model,)
    row = _table(matrix)(torch.tensor([[token_id]]))[0, 0]
    start = max(0, min(token_id - beside, vocab_size - 2 * beside - 1))
    ids = range(start, min(start + 2 * beside + 1, vocab_size))
    return OneHotRow(
        np.array(ids),
        tuple(bundle.tokenizer.label_of(id_) for id_ in ids),
        one_hot[ids.start : ids.stop, None].numpy(),
        matrix[ids.start : ids.stop].numpy(),
        product.numpy(),
        row.numpy(),
        float((product - row).abs().max()),
        vocab_size,
        vocab_size * d_model,
    )


@torch.inference_mode()
def lookup_times(*, bundle: Bundle, text: str, n_tokens: int) -> LookupTimes:
    """Time both ways of embedding a text, one after the other, on this machine and now."""
    matrix = embedding_matrix(bundle.model)
    ids = torch.tensor([bundle.tokenizer.encode(text, max_len=n_tokens).ids])  # (batch, pos)
    one_hot = torch.zeros(ids.shape[1], len(matrix)).scatter_(1, ids.T, 1.0)  # (pos, vocab)
    table = _table(matrix)
    lookup, product = _seconds(lambda: table(ids)), _seconds(lambda: one_hot @ matrix)
    return LookupTimes(ids.shape[1], lookup, product, product / lookup)


def _table(matrix: torch.Tensor) -> Embedding:
    table = Embedding(*matrix.shape)
    table.weight = torch.nn.Parameter(matrix, requires_grad=False)
    return table


def _seconds(work) -> float:
    work()
    taken: list[float] = []
    while len(taken) < 5 or sum(taken) < LEAST_SECONDS:
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return median(taken)
