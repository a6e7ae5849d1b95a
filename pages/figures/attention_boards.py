"""Boards of layers and heads: how broadly each looks, what it tends to look at, what its loss changes.

Arrays come from transformer_core.analysis. Read next: attention_charts.py.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale


def _sides(shape: tuple[int, ...], words: Mapping[str, str]) -> tuple[Axis, Axis]:
    rows, cols = (tuple(map(str, range(size))) for size in shape[:2])
    return Axis(words["layer"], rows), Axis(words["head"], cols)


def entropy_board(
    nats: np.ndarray,
    shares: np.ndarray,
    greatest: float,
    words: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    chosen: tuple[int, int],
    version: str,
) -> MatrixFigure:
    """Draw the entropy of every head in nats, and as a share of its maximum.

    Shapes:
        nats, shares: (layer, head)

    Args:
        greatest: the maximum, in nats.
        words: layer, head, nats, share.
        chosen: layer and head.
    """
    panels = (
        Panel("nats", words["nats"], nats, Scale("count", 0.0, max(greatest, float(nats.max())))),
        Panel("share", words["share"], shares, Scale("probability", 0.0, 1.0)),
    )
    return MatrixFigure(
        panels,
        *_sides(nats.shape, words),
        ui,
        detail="exact",
        cell=chosen,
        link="attention_board",
        filename="attention_entropy",
        version=version,
    )


def flow_matrices(
    rollout: np.ndarray,
    last: np.ndarray,
    labels: tuple[str, ...],
    words: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    version: str,
) -> MatrixFigure:
    """Draw rollout beside the last layer's weights, on one scale.

    Shapes:
        rollout, last: (query_pos, key_pos)

    Args:
        words: query, key, rollout, last.
    """
    high = max(float(rollout.max()), float(last.max()), 1e-6)
    panels = tuple(
        Panel(name, words[name], values, Scale("count", 0.0, high))
        for name, values in (("rollout", rollout), ("last", last))
    )
    return MatrixFigure(
        panels,
        Axis(words["query"], labels),
        Axis(words["key"], labels),
        ui,
        detail="exact",
        link="attention",
        filename="attention_rollout",
        version=version,
    )


def tendency_board(
    here: np.ndarray,
    sample: np.ndarray,
    tendencies: Sequence[str],
    words: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    chosen: tuple[int, int],
    version: str,
) -> MatrixFigure:
    """Draw the scores of every head for this sentence, for a sample beside it, and how broad it is in both.

    Shapes:
        here, sample: (layer, head, tendency), the last one being "broad"

    Args:
        tendencies: the word for each.
        words: heads (the axis), tendency, excess, here, sample, broad, here_short, sample_short.
        chosen: layer and head.
    """
    n_layers, n_heads, n_tendencies = here.shape
    rows = Axis(words["heads"], tuple(f"{layer}.{head}" for layer in range(n_layers) for head in range(n_heads)))
    places = Axis(words["tendency"], tuple(tendencies[:-1]))
    flat = {name: scores.reshape(-1, n_tendencies) for name, scores in (("here", here), ("sample", sample))}
    scale = Scale.of("signed", *(scores[:, :-1] for scores in flat.values()))
    broad = np.stack([scores[:, -1] for scores in flat.values()], axis=1)  # (head, 2)
    both = Axis(tendencies[-1], (words["here_short"], words["sample_short"]))
    panels = (
        *(Panel(name, words[name], scores[:, :-1], scale) for name, scores in flat.items()),
        Panel("broad", words["broad"], broad, Scale("probability", 0.0, 1.0), cols=both),
    )
    return MatrixFigure(
        panels,
        rows,
        places,
        ui,
        detail="exact",
        cell=(chosen[0] * n_heads + chosen[1], int(np.nan_to_num(here[chosen][:-1], nan=-1.0).argmax())),
        quantity=words["excess"],
        filename="attention_tendencies",
        version=version,
    )


def effect_board(
    strongest: np.ndarray,
    points: np.ndarray | None,
    words: Mapping[str, str],
    ui: Mapping[str, str],
    *,
    chosen: tuple[int, int],
    version: str,
) -> MatrixFigure:
    """Draw each head's greatest weight and, where it is given, what the verdict does without the head.

    Shapes:
        strongest, points: (layer, head)

    Args:
        points: the change of the winner's probability, in percentage points.
        words: layer, head, strongest, change.
        chosen: layer and head.
    """
    panels = [Panel("strongest", words["strongest"], strongest, Scale("probability", 0.0, 1.0))]
    if points is not None:
        panels.append(Panel("change", words["change"], points, Scale.of("signed", points)))
    return MatrixFigure(
        tuple(panels),
        *_sides(strongest.shape, words),
        ui,
        detail="exact",
        layout="single",
        selected=panels[-1].id,
        cell=chosen,
        link="attention_board",
        filename="attention_effects",
        version=version,
    )
