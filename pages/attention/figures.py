"""Figures of the attention page: boards of layers and heads, bars over the tokens, and a text with arcs.

A board has a cell for each head. Bars show entropy, rollout and what hiding a word does. Arcs lead from one token to
the others, as thick as the weights. The arrays come from transformer_core.analysis.attention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, hued, records, tooltips
from pages.figures.forms import Filled, form, in_order, named
from pages.figures.heads import head_board
from pages.figures.matrix import Axis, Buffers, MatrixFigure, Panel, Scale, packed

HEIGHT = 360
MOST_NAMED = 48


def side_by_side(
    matrices: Mapping[str, np.ndarray],
    labels: Sequence[str],
    words: Mapping[str, str],
    *,
    filename: str,
) -> MatrixFigure:
    """Draw one head's weights several times on one scale, such as without dropout and in a draw of it.

    Shapes:
        matrices: (query_pos, key_pos) each, by name

    Args:
        words: query, key, weight, and the title of each matrix by its name.
    """
    scale = Scale.of("count", *matrices.values())
    panels = (Panel(name, words[name], matrix, scale) for name, matrix in matrices.items())
    return MatrixFigure(
        tuple(panels),
        Axis(words["query"], tuple(labels)),
        Axis(words["key"], tuple(labels)),
        role="weights",
        detail="exact",
        quantity=words["weight"],
        filename=filename,
    )


def _own(words: Mapping[str, str]) -> dict[str, str]:
    """Return what a matrix says of its rows and columns where it holds no attention weights."""
    return {name: words[name] for name in ("row_top", "col_top")}


def entropy_board(
    nats: np.ndarray,
    shares: np.ndarray,
    greatest: float,
    words: Mapping[str, str],
    *,
    chosen: tuple[int, int],
) -> MatrixFigure:
    """Draw the entropy of every head in nats, and as a share of its maximum.

    Shapes:
        nats, shares: (layer, head)

    Args:
        greatest: the maximum, in nats.
        words: layer, head, nats, share, row_top, col_top.
        chosen: layer and head.
    """
    panels = (
        Panel("nats", words["nats"], nats, Scale("count", 0.0, max(greatest, float(nats.max())))),
        Panel("share", words["share"], shares, Scale("probability", 0.0, 1.0)),
    )
    options = {"link": "attention_board", "filename": "attention_entropy", "strings": _own(words)}
    return head_board(panels, words, cell=chosen, **options)


def flow_matrices(
    rollout: np.ndarray,
    last: np.ndarray,
    labels: tuple[str, ...],
    words: Mapping[str, str],
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
        detail="exact",
        link="attention",
        filename="attention_rollout",
    )


def tendency_board(
    here: np.ndarray,
    sample: np.ndarray,
    tendencies: Sequence[str],
    words: Mapping[str, str],
    *,
    chosen: tuple[int, int],
) -> MatrixFigure:
    """Draw the scores of every head for this sentence, for a sample beside it, and how broad it is in both.

    Shapes:
        here, sample: (layer, head, tendency), the last one being "broad"

    Args:
        tendencies: the word for each.
        words: heads (the axis), tendency, excess, here, sample, broad, here_short, sample_short, row_top, col_top.
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
        _own(words),
        detail="exact",
        cell=(chosen[0] * n_heads + chosen[1], int(np.nan_to_num(here[chosen][:-1], nan=-1.0).argmax())),
        quantity=words["excess"],
        filename="attention_tendencies",
    )


def effect_board(
    strongest: np.ndarray,
    points: np.ndarray | None,
    words: Mapping[str, str],
    *,
    chosen: tuple[int, int],
) -> MatrixFigure:
    """Draw each head's greatest weight and, where it is given, what the verdict does without the head.

    Shapes:
        strongest, points: (layer, head)

    Args:
        points: the change of the winner's probability, in percentage points.
        words: layer, head, strongest, change, row_top, col_top.
        chosen: layer and head.
    """
    panels = [Panel("strongest", words["strongest"], strongest, Scale("probability", 0.0, 1.0))]
    if points is not None:
        panels.append(Panel("change", words["change"], points, Scale.of("signed", points)))
    return head_board(
        tuple(panels),
        words,
        strings=_own(words),
        selected=panels[-1].id,
        cell=chosen,
        link="attention_board",
        filename="attention_effects",
    )


def _named(labels: tuple[str, ...]) -> list[str]:
    return [f"{label} {index}" for index, label in enumerate(labels)]


def _across(title: str, *, many: bool) -> alt.X:
    overlap = "greedy" if many else False
    axis = alt.Axis(labelAngle=-50, labelLimit=80, labelOverlap=overlap, ticks=False, titlePadding=2)
    return alt.X("token:N", sort=in_order("place"), title=title, axis=axis)


def entropy_bars(nats: np.ndarray, bounds: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str]) -> Filled:
    """Draw one head's entropy at each token, with each token's maximum as a line.

    Shapes:
        nats, bounds: (query_pos,)

    Args:
        words: token, nats, greatest.
    """
    greatest = float(bounds.max())
    tokens = records(
        token=_named(labels),
        nats=nats,
        bound=bounds,
        place=list(range(len(labels))),
        axis_end=[max(greatest, float(nats.max())) * 1.15] * len(labels),
    )
    said = records(greatest=[greatest], word=[words["greatest"]])
    bars = _entropies(words["token"], words["nats"], many=len(labels) > MOST_NAMED)
    return Filled(bars, {"tokens": tokens, "greatest": said}, height=HEIGHT)


@form
def _entropies(token: str, nats: str, *, many: bool) -> Chart:
    tokens, across = named("tokens"), _across(token, many=many)
    up = alt.Y("nats:Q", title=nats)
    tooltip = [alt.Tooltip("token:N"), alt.Tooltip("nats:Q", format=".4f", title=nats)]
    bars = tokens.mark_bar(color=HUES["weights"]).encode(x=across, y=up, tooltip=tooltip)
    dashed = tokens.mark_line(interpolate="step", strokeDash=[6, 3], color=HUES["residual"], tooltip=None)
    steps = dashed.encode(x=across, y=alt.Y("bound:Q"))
    room = tokens.mark_rule(opacity=0, aria=False, tooltip=None).encode(y=alt.Y("axis_end:Q"))
    line = named("greatest").encode(y=alt.Y("greatest:Q"))
    text = line.mark_text(align="left", baseline="bottom", dx=4, dy=-3).encode(x=alt.value(0), text=alt.Text("word:N"))
    return alt.layer(bars, steps, room, text)


def led_bars(rollout: np.ndarray, last: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str]) -> Filled:
    """Draw what the verdict rests on by rollout and by the last layer's weights, side by side at each token.

    Shapes:
        rollout, last: (pos,), each summing to 1

    Args:
        words: token, part, rollout, last.
    """
    names = (words["rollout"], words["last"])
    tokens = records(
        token=_named(labels) * 2,
        share=np.concatenate([rollout, last]),
        by=np.repeat(names, len(labels)).tolist(),
        place=[*range(len(labels))] * 2,
    )
    bars = _led(names, words["token"], words["part"], many=len(labels) > MOST_NAMED)
    return Filled(bars, {"tokens": tokens}, height=HEIGHT)


@form
def _led(names: tuple[str, str], token: str, part: str, *, many: bool) -> Chart:
    return (
        named("tokens")
        .mark_bar()
        .encode(
            x=_across(token, many=many),
            xOffset=alt.XOffset("by:N", sort=list(names)),
            y=alt.Y("share:Q", title=part, axis=alt.Axis(minExtent=46, format=".2f")),
            color=hued("by", names, (HUES["weights"], PALETTE[1]), direction="horizontal"),
            tooltip=tooltips("token:N", "by:N", alt.Tooltip("share:Q", format=".4f", title=part)),
        )
    )


def hidden_bars(change: np.ndarray, labels: tuple[str, ...], words: Mapping[str, str]) -> Chart:
    """Draw how many points the winner's probability changes by when each token is hidden; special tokens have no bar.

    Shapes:
        change: (pos,), as shares; NaN where a token is not hidden

    Args:
        words: token, points, supports, opposes.
    """
    points = [100 * value if np.isfinite(value) else None for value in change.tolist()]
    does = [words["supports"] if (value or 0) < 0 else words["opposes"] for value in points]
    places, many = list(range(len(labels))), len(labels) > MOST_NAMED
    data = records(token=_named(labels), points=points, does=does, place=places)
    names = [words["supports"], words["opposes"]]
    bars = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=_across(words["token"], many=many),
            y=alt.Y("points:Q", title=words["points"], axis=alt.Axis(minExtent=46)),
            color=hued("does", names, (PALETTE[5], HUES["residual"]), direction="horizontal"),
            tooltip=[alt.Tooltip("token:N"), alt.Tooltip("points:Q", format="+.2f", title=words["points"])],
        )
    )
    zero = alt.Chart(records(zero=[0])).mark_rule(color=HUES["residual"]).encode(y=alt.Y("zero:Q"))
    return alt.layer(bars, zero).properties(width="container", height=HEIGHT)


Direction = Literal["from", "to"]


@dataclass(frozen=True, eq=False)
class ArcsFigure:
    """Hold what a text with arcs is drawn from.

    Args:
        labels: one a token.
        glued: whether a token follows the one before without a space.
        weights: (query_pos, key_pos), each from 0 to 1.
        source: the chosen token.
        direction: "from" draws the source's row, where it looks; "to" its column, who looks at it.
        strings: attention_arcs.* of the locale, without that prefix; the browser fills in the {…}.
        version: of this state; the browser writes it and the source into `data-painted` once they are drawn.
        filename: of exports, without ending.
    """

    labels: tuple[str, ...]
    glued: tuple[bool, ...]
    weights: np.ndarray
    source: int
    direction: Direction
    strings: Mapping[str, str]
    version: str = ""
    filename: str = "attention_arcs"

    def __post_init__(self) -> None:
        n = len(self.labels)
        if self.weights.shape != (n, n) or len(self.glued) != n or n == 0:
            got = f"weights of shape {self.weights.shape} and {len(self.glued)} of glued"
            raise ValueError(f"{got}, needed one of each for all {n} labels")
        if not 0 <= self.source < n:
            raise ValueError(f"source={self.source} must be from 0 to {n - 1}")

    def to_bytes(self, *, caption: Sequence[str] = (), key: str = "") -> bytes:
        """Return the header (JSON after its length) and the weights as float32, row after row.

        Args:
            caption: lines above the picture in its files: model, text, layer and head.
            key: of its place on the page, by which newer bytes find it.
        """
        buffers = Buffers()
        buffers.add(np.asarray(self.weights).astype("<f4"))
        names = ("labels", "glued", "source", "direction", "version", "filename")
        header = {name: getattr(self, name) for name in names}
        return packed(header | {"caption": list(caption), "key": key, "strings": dict(self.strings)}, buffers)
