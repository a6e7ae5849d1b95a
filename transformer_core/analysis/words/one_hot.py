"""One-hot vectors and learned ones: one-hot times matrix equals a row, and how far apart words lie in either space.

Vaswani et al. 2017, section 3.4; word vectors as the first layer's weights, and why words need more than an index:
Bengio et al. 2003, sections 1.1 and 2.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.timing import Stopwatch, alone_on_one_thread
from transformer_core.analysis.words.vocabulary import cosines, embedding_matrix, find
from transformer_core.bundle import Bundle
from transformer_core.config import require_index
from transformer_core.layers.embeddings import Embedding
from transformer_core.layout.neighbours import squared_distances
from transformer_core.prompt import Prompt


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
    """Seconds of embedding one text both ways on one thread of this machine, the least of several calls.

    Args:
        tokens: in the text.
        lookup: seconds of looking the rows up.
        product: seconds of multiplying the one-hot matrix, prepared beforehand, by the embedding matrix.
        ratio: product / lookup.
        spread: of the times, as of Stopwatch.
    """

    tokens: int
    lookup: float
    product: float
    ratio: float
    spread: float


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
    require_index("token_id", token_id, vocab_size)
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
def lookup_times(*, prompt: Prompt) -> LookupTimes:
    """Time both ways of embedding a text, one after the other, on this machine and now."""
    matrix = embedding_matrix(prompt.bundle.model)
    ids = torch.tensor([prompt.encoding.ids])  # (batch, pos)
    one_hot = torch.zeros(ids.shape[1], len(matrix)).scatter_(1, ids.T, 1.0)  # (pos, vocab)
    table, watch = _table(matrix), Stopwatch()
    with alone_on_one_thread():
        lookup, product = watch.seconds(lambda: table(ids)), watch.seconds(lambda: one_hot @ matrix)
    return LookupTimes(ids.shape[1], lookup, product, product / lookup, watch.spread)


def _table(matrix: torch.Tensor) -> Embedding:
    table = Embedding(*matrix.shape)
    table.weight = torch.nn.Parameter(matrix, requires_grad=False)
    return table


@dataclass(frozen=True, eq=False)
class WordRelations:
    """The different tokens of a sentence as one-hot and as learned vectors.

    Shapes:
        one_hot: (token, token), of the vocabulary's columns only those of the sentence; the others are 0
        learned: (token, d_model)
        one_hot_cosine, learned_cosine, one_hot_distance, learned_distance: (token, token)
        bounds: (2, 4), of cosine and of distance: least and greatest one-hot, least and greatest learned, of two
            different tokens; 0 where there are no two

    Args:
        labels, ids: one a different token, in the order of the sentence.
        vocab_size, d_model: of the model's embedding.
        one_hot_bytes, learned_bytes: of all the vocabulary's vectors in float32.
    """

    labels: tuple[str, ...]
    ids: tuple[int, ...]
    one_hot: np.ndarray
    learned: np.ndarray
    one_hot_cosine: np.ndarray
    learned_cosine: np.ndarray
    one_hot_distance: np.ndarray
    learned_distance: np.ndarray
    bounds: np.ndarray
    vocab_size: int
    d_model: int
    one_hot_bytes: int
    learned_bytes: int


@dataclass(frozen=True)
class Likeness:
    """How alike a word's vector is to two others' (cosine), learned and one-hot; None where a word has no one token."""

    near: float | None
    far: float | None
    one_hot_near: float | None
    one_hot_far: float | None


def word_relations(*, prompt: Prompt) -> WordRelations:
    """Compare the one-hot vectors of a sentence's tokens with their rows of the model's embedding.

    Raises:
        ValueError: as of the tokenizer.
    """
    encoding = prompt.encoding
    first = {id_: place for place, id_ in reversed(list(enumerate(encoding.ids)))}
    ids = sorted(first, key=first.__getitem__)
    matrix = embedding_matrix(prompt.bundle.model)
    vocab_size, d_model = matrix.shape
    one_hot = F.one_hot(torch.tensor(ids), vocab_size).double()  # (token, vocab_size)
    learned = matrix[ids].double()  # (token, d_model)
    cosine, distance = ([measure(vectors) for vectors in (one_hot, learned)] for measure in (cosines, distances))
    return WordRelations(
        labels=tuple(encoding.labels[first[id_]] for id_ in ids),
        ids=tuple(ids),
        one_hot=_array(one_hot[:, ids]),
        learned=_array(learned),
        one_hot_cosine=_array(cosine[0]),
        learned_cosine=_array(cosine[1]),
        one_hot_distance=_array(distance[0]),
        learned_distance=_array(distance[1]),
        bounds=np.array([[bound for values in pair for bound in _bounds(values)] for pair in (cosine, distance)]),
        vocab_size=vocab_size,
        d_model=d_model,
        one_hot_bytes=4 * vocab_size**2,
        learned_bytes=4 * vocab_size * d_model,
    )


def likeness(*, bundle: Bundle, word: str, near: str, far: str) -> Likeness:
    """Return the cosine of a word with two others, by their learned and by their one-hot vectors.

    Raises:
        ValueError: a word is blank, or no valid Unicode.
    """
    found = [find(bundle.tokenizer, one) for one in (word, near, far)]
    if not all(one.known and len(one.ids) == 1 for one in found):
        return Likeness(None, None, None, None)
    ids = [one.ids[0] for one in found]
    matrix = embedding_matrix(bundle.model)
    learned = cosines(matrix[ids].double())
    one_hot = cosines(F.one_hot(torch.tensor(ids), len(matrix)).double())
    return Likeness(*(float(values[0, place]) for values in (learned, one_hot) for place in (1, 2)))


def distances(vectors: Tensor) -> Tensor:
    """Return the Euclidean distance of every two rows.

    Shapes:
        vectors: (row, d); returns: (row, row)
    """
    return squared_distances(vectors).sqrt()


def _bounds(values: Tensor) -> tuple[float, float]:
    apart = values[~torch.eye(len(values), dtype=torch.bool)]
    return (float(apart.min()), float(apart.max())) if len(apart) else (0.0, 0.0)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.float().numpy()
