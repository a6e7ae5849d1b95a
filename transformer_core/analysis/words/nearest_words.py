"""Nearest words and analogies: what lies beside a word in the space of embeddings, and what a - b + c is nearest to.

Analogies: Mikolov et al. 2013, section 4, where the three given words may not be the answer; that they mostly would be
is shown by Rogers et al. 2017. The common direction: Mu and Viswanath 2018.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.words.vocabulary import embedding_matrix, listed, unit_rows
from transformer_core.bundle import Bundle
from transformer_core.config import require_choice, require_index

Measure = Literal["cosine", "centred", "euclidean"]


@dataclass(frozen=True, eq=False)
class NearestWords:
    """A word's nearest entries.

    Shapes:
        ids, values: (neighbour,), the nearest first

    Args:
        labels: of `ids`.
        values: cosines, or distances.
        average: of the same measure between two entries drawn at random.
        candidates: how many entries were compared.
        norm: length of the word's own vector.
    """

    ids: np.ndarray
    labels: tuple[str, ...]
    values: np.ndarray
    average: float
    candidates: int
    norm: float


@dataclass(frozen=True, eq=False)
class Analogy:
    """What a - b + c is nearest to.

    Shapes:
        ids, cosine: (neighbour,), the nearest first; given: (neighbour,), True for a, b and c themselves

    Args:
        labels: of `ids`.
        rank: of the expected word among all candidates but a, b and c, from 1; None where none was named.
        rank_with_given: among all candidates, from 1.
        candidates: how many entries were compared, a, b and c among them.
    """

    ids: np.ndarray
    labels: tuple[str, ...]
    cosine: np.ndarray
    given: np.ndarray
    rank: int | None
    rank_with_given: int | None
    candidates: int


def _candidates(bundle: Bundle, fragments: bool, *always: int) -> Tensor:
    tokenizer = bundle.tokenizer
    ids = listed(tokenizer, count=tokenizer.vocab_size, fragments=fragments)
    return torch.tensor(sorted({*ids, *always}))


def _check_ids(bundle: Bundle, **ids: int | None) -> None:
    for name, id_ in ids.items():
        if id_ is not None:
            require_index(name, id_, bundle.tokenizer.vocab_size)


@torch.inference_mode()
def nearest_words(
    *, bundle: Bundle, token_id: int, k: int = 12, measure: Measure = "cosine", fragments: bool = False
) -> NearestWords:
    """Return the entries that lie nearest to a word.

    Args:
        bundle: any model that reads text.
        token_id: the word.
        k: how many.
        measure: "cosine"; "centred", the cosine once the mean vector of all candidates is taken away; or "euclidean".
        fragments: compare with entries that are less than a word, too.

    Raises:
        ValueError: there is no such id or measure, or there are not k others.
    """
    require_choice("measure", measure, get_args(Measure))
    _check_ids(bundle, token_id=token_id)
    ids = _candidates(bundle, fragments, token_id)
    if not 1 <= k < len(ids):
        raise ValueError(f"k={k} must be from 1 to {len(ids) - 1}, the number of other entries")
    rows = embedding_matrix(bundle.model)[ids]
    own = int((ids == token_id).nonzero())
    norm = float(rows[own].norm())
    if measure == "centred":
        rows = rows - rows.mean(0)
    if measure == "euclidean":
        values, average = (rows - rows[own]).norm(dim=1), _mean_distance(rows)
    else:
        unit = unit_rows(rows)
        values, average = unit @ unit[own], _mean_cosine(unit)
    others = torch.arange(len(ids)) != own
    order = values[others].argsort(descending=measure != "euclidean", stable=True)[:k]
    found = ids[others][order]
    labels = tuple(bundle.tokenizer.label_of(id_) for id_ in found.tolist())
    return NearestWords(found.numpy(), labels, values[others][order].numpy(), average, len(ids) - 1, norm)


def _mean_cosine(unit: Tensor) -> float:
    """Return the mean over all pairs of different rows, from the length of their sum."""
    n = len(unit)
    return float((unit.sum(0).square().sum() - unit.square().sum()) / (n * (n - 1)))


def _mean_distance(rows: Tensor, sample: int = 512) -> float:
    """Return the mean distance between pairs of a regular sample of rows."""
    some = rows[:: max(1, len(rows) // sample)]
    return float(torch.nn.functional.pdist(some).mean())


@torch.inference_mode()
def analogy(*, bundle: Bundle, a: int, b: int, c: int, expected: int | None = None, k: int = 10) -> Analogy:
    """Return what a - b + c is nearest to by cosine, of unit vectors as in Mikolov et al. 2013; words only.

    Args:
        bundle: any model that reads text.
        a, b, c: ids, as in king - man + woman.
        expected: id of the word that should come out.
        k: how many entries to return, the given ones among them.

    Raises:
        ValueError: there is no such id.
    """
    _check_ids(bundle, a=a, b=b, c=c, expected=expected)
    ids = _candidates(bundle, False, a, b, c, *(() if expected is None else (expected,)))
    matrix = embedding_matrix(bundle.model)
    unit_a, unit_b, unit_c = unit_rows(matrix[[a, b, c]])
    wanted = unit_rows((unit_a - unit_b + unit_c)[None])[0]
    cosine = unit_rows(matrix[ids]) @ wanted
    order = cosine.argsort(descending=True, stable=True)
    found = ids[order]
    given = torch.isin(found, torch.tensor([a, b, c]))
    with_given = None if expected is None else int((found == expected).nonzero()) + 1
    before = 0 if with_given is None else int(given[: with_given - 1].sum())
    return Analogy(
        found[:k].numpy(),
        tuple(bundle.tokenizer.label_of(id_) for id_ in found[:k].tolist()),
        cosine[order][:k].numpy(),
        given[:k].numpy(),
        None if with_given is None else with_given - before,
        with_given,
        len(ids),
    )
