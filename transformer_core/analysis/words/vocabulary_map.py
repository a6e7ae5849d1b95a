"""The vocabulary drawn flat or in space: PCA with the variance its axes keep, t-SNE with how far it may be trusted.

PCA: Pearson 1901; t-SNE: van der Maaten and Hinton 2008.
"""

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.words.vocabulary import embedding_matrix, listed, template_of
from transformer_core.bundle import Bundle
from transformer_core.config import require_choice
from transformer_core.layout.neighbours import nearest, squared_distances, trustworthiness
from transformer_core.layout.pca import normalised, pca, variance_shares
from transformer_core.layout.tsne import affinities, fresh
from transformer_core.models import Classifier

AT_ONCE = 2048


@torch.inference_mode()
def lone_verdicts(bundle: Bundle, token_ids: Sequence[int], *, label: int = -1) -> Tensor:
    """Return the logit of one class above the mean of the others, for each token as a whole text, in nats.

    With two classes this is the log of the odds: 0 is undecided.

    Shapes:
        returns: (token,)

    Args:
        bundle: of a classifier.
        token_ids: the tokens.
        label: the class.

    Raises:
        ValueError: the bundle is of another kind.
    """
    bundle.model_as(Classifier)
    before, after = template_of(bundle.tokenizer)
    device = bundle.device
    rows = torch.tensor([[*before, id_, *after] for id_ in token_ids], device=device)  # (token, pos)
    logits = torch.cat([bundle.model(part) for part in rows.split(AT_ONCE)]).float().cpu()  # (token, class)
    own = logits[:, label]
    return own - (logits.sum(1) - own) / max(logits.shape[1] - 1, 1)


MapMethod = Literal["tsne", "pca", "space"]
NEIGHBOURS = 8


@dataclass(frozen=True, eq=False)
class VocabularyMap:
    """Entries of a vocabulary as points.

    Shapes:
        ids: (point,); xy: (point, 2), (point, 3) for "space"; norms: (point,); neighbours: (point, 8), places in `ids`
        explained: (axis,), share of the variance along each axis of PCA, empty for t-SNE; verdicts: (point,)

    Args:
        labels: of `ids`.
        norms: lengths of the vectors.
        neighbours: of each point in the full space, by distance, the nearest first.
        trustworthiness: how many of the neighbours that the picture shows are so in the full space, 1 for all.
        verdicts: how far each entry alone moves the verdict, in nats; None where the model gives none.
        same_side: the share of neighbours that move the verdict to the same side as the entry; None likewise.
        same_side_by_chance: that share if the sides were dealt out by chance.
        seconds: of wall-clock time that it took, the only number that another run does not repeat.
    """

    ids: np.ndarray
    labels: tuple[str, ...]
    xy: np.ndarray
    norms: np.ndarray
    neighbours: np.ndarray
    explained: np.ndarray
    trustworthiness: float
    verdicts: np.ndarray | None
    same_side: float | None
    same_side_by_chance: float | None
    seconds: float


@torch.inference_mode()
def vocabulary_map(
    *, bundle: Bundle, count: int, method: MapMethod = "tsne", fragments: bool = False, special: bool = False
) -> VocabularyMap:
    """Draw the first entries of a vocabulary.

    Args:
        bundle: any model that reads text.
        count: at most so many entries, in the order in which the tokenizer learned them.
        method: "tsne", "pca" or "space", which is PCA on three axes.
        fragments: with entries that are less than a word.
        special: with special tokens.

    Raises:
        ValueError: the method is unknown, or there are fewer than 20 entries.
    """
    require_choice("method", method, get_args(MapMethod))
    ids = listed(bundle.tokenizer, count=count, fragments=fragments, special=special)
    if len(ids) < 20:
        raise ValueError(f"count={count} leaves {len(ids)} entries; at least 20 are needed")
    started = time.perf_counter()
    rows = embedding_matrix(bundle.model)[list(ids)]
    distances = squared_distances(rows)  # (point, point)
    xy, explained = laid_out(rows, distances, method)
    trusted = trustworthiness(rows, xy, distances=distances)
    seconds = time.perf_counter() - started
    near = nearest(distances, NEIGHBOURS)  # (point, neighbour)
    verdicts = _verdicts(bundle, ids) if bundle.kind == "classifier" else None
    return VocabularyMap(
        np.array(ids),
        tuple(bundle.tokenizer.label_of(id_) for id_ in ids),
        xy.numpy(),
        rows.norm(dim=1).numpy(),
        near.numpy(),
        explained.numpy(),
        trusted,
        None if verdicts is None else verdicts.numpy(),
        *((None, None) if verdicts is None else _same_side(verdicts, near)),
        seconds,
    )


@functools.lru_cache(maxsize=8)
def _verdicts(bundle: Bundle, ids: tuple[int, ...]) -> Tensor:
    """Cache the verdicts, which all methods share."""
    return lone_verdicts(bundle, ids)


def _same_side(verdicts: Tensor, near: Tensor) -> tuple[float, float]:
    """Return how often neighbours are on the same side of 0, and how often two entries at random would be."""
    up = verdicts > 0
    share = float(up.double().mean())
    return float((up[near] == up[:, None]).double().mean()), share**2 + (1 - share) ** 2


def laid_out(rows: Tensor, distances: Tensor, method: MapMethod) -> tuple[Tensor, Tensor]:
    """Return the places of points and the share of the variance along each axis of PCA, none for t-SNE.

    Shapes:
        rows: (point, d); distances: (point, point), squared; returns: (point, 2 or 3), (2, 3 or 0,)
    """
    if method == "tsne":
        return fresh(affinities(distances), rows), torch.zeros(0)
    axes = 3 if method == "space" else 2
    return normalised(pca(rows, axes=axes)), variance_shares(rows)[:axes].float()
