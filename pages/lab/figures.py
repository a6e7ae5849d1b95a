"""The Lab's figures: boards of heads, maps of patches, matrices before and after, curves.

Arrays come from transformer_core.analysis.lab.
"""

from collections.abc import Collection, Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.forms import Filled, form, named
from pages.figures.heads import head_board
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale, Switches

ROUNDING = 2e-6  # shares below this are float32's rounding, shown as 0
MOST_BESIDE = 2


def on_off_board(
    change: np.ndarray,
    kind: str,
    off: Collection[tuple[str, int, int]],
    words: Mapping[str, str],
    strings: Mapping[str, str],
) -> MatrixFigure:
    """Draw which heads are on, beside what the answer loses without each alone; a click turns one.

    Shapes:
        change: (layer, head), in nats

    Args:
        kind: of attention.
        off: kind, layer and head of all heads that are off.
        words: layer, head, on, alone, quantity.
        strings: lab_board.* of the locale, which the matrix says of switches.
    """
    stays = np.ones(change.shape)
    for one, layer, head in off:
        if one == kind:
            stays[layer, head] = 0.0
    panels = (
        Panel("on", words["on"], stays, Scale("mask", 0.0, 1.0)),
        Panel("alone", words["alone"], change, Scale.of("signed", change)),
    )
    names = tuple(f"{one}.{layer}.{head}" for one, layer, head in sorted(off))
    options = {"strings": strings, "filename": "lab_heads", "quantity": words["quantity"]}
    options |= {"switches": Switches("on", "lab_off", kind, names)}
    return head_board(panels, words, **options)


def head_scatter(
    across: np.ndarray,
    up: np.ndarray,
    names: Sequence[str],
    words: Mapping[str, str],
    *,
    bounds: np.ndarray | None = None,
) -> Filled:
    """Draw each head by two measures of what it does, beside the line where both agree.

    Shapes:
        across, up: (head,), in nats; bounds: (2, head), of up, where it is an estimate

    Args:
        words: across, up, head.
    """
    # The heads that count most by each measure have their names beside them.
    shown = sorted({place for one in (across, up) for place in np.argsort(-np.abs(one))[:MOST_BESIDE].tolist()})
    bounds = np.stack((up, up)) if bounds is None else bounds
    ends = [float(min(across.min(), up.min(), 0.0)), float(max(across.max(), up.max(), 0.0))]
    rows = {
        "heads": records(across=across, up=up, head=list(names), low=bounds[0], high=bounds[1]),
        "named": records(across=across[shown], up=up[shown], head=[names[place] for place in shown]),
        "alike": records(across=ends, up=ends),
    }
    return Filled(_scatter(words["across"], words["up"], words["head"]), rows, height=360)


@form
def _scatter(across: str, up: str, head: str) -> Chart:
    x = alt.X("across:Q", title=across, axis=alt.Axis(tickCount=8))
    y = alt.Y("up:Q", title=up, axis=alt.Axis(minExtent=44))
    alike = named("alike").mark_line(color=HUES["residual"], strokeDash=[4, 4]).encode(x=x, y=y)
    about = [
        alt.Tooltip("head:N", title=head),
        alt.Tooltip("across:Q", title=across, format="+.3f"),
        alt.Tooltip("up:Q", title=up, format="+.3f"),
    ]
    dots = named("heads").mark_point(filled=True, size=70, opacity=0.8, color=HUES["query"])
    spread = (
        named("heads").mark_rule(color=HUES["query"], opacity=0.5).encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    )
    name = named("named").mark_text(align="left", dx=8, color=HUES["query"])
    return alt.layer(
        alike, spread, dots.encode(x=x, y=y, tooltip=about), name.encode(x=x, y=y, text=alt.Text("head:N"))
    )


def patch_figure(
    maps: Mapping[str, np.ndarray],
    labels: Sequence[str],
    words: Mapping[str, str],
    *,
    filename: str,
    cell: tuple[int, int] | None,
    cell_panel: int | None,
    first: int = 0,
    beside: float = 0.0,
) -> MatrixFigure:
    """Draw one map for each place, layers down and tokens across, all on one scale.

    Shapes:
        maps: by title (layer, pair), 1 for the whole difference

    Args:
        words: layer, token, quantity.
        first: the number of the first row.
        beside: a share that is as dark as it would be among them.
    """
    scale = Scale.of("signed", *maps.values(), np.array([beside]))
    shown = {title: np.where(np.abs(values) < ROUNDING, 0.0, values) for title, values in maps.items()}
    panels = tuple(Panel(str(place), title, values, scale) for place, (title, values) in enumerate(shown.items()))
    layers = tuple(str(first + row) for row in range(next(iter(maps.values())).shape[0]))
    return MatrixFigure(
        panels,
        Axis(words["layer"], layers),
        Axis(words["token"], tuple(labels)),
        columns=min(3, len(panels)),
        detail="exact",
        layout="single",
        quantity=words["quantity"],
        filename=filename,
        cell=cell,
        cell_panel=cell_panel,
    )


def numbered(count: int) -> tuple[str, ...]:
    """Return the labels of rows or columns that have nothing but a number."""
    return tuple(map(str, range(count)))


def tables(
    shown: Mapping[str, np.ndarray],
    rows: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    words: Mapping[str, str],
    *,
    filename: str,
    kind: str = "signed",
    brush: float | None = None,
) -> MatrixFigure:
    """Draw tables beside each other on one scale, each with its own rows and columns.

    Args:
        shown: (row, col) by title; rows, columns: labels by the same titles.
        words: row, column, quantity.
        kind: of the scale; a difference is signed in any case.
        brush: the number that strokes on the first table write; by default it is not painted.
    """
    panels = []
    for place, (title, values) in enumerate(shown.items()):
        signed = kind == "signed" or bool((values < 0).any())
        alike = [other for other in shown.values() if bool((other < 0).any()) == bool((values < 0).any())]
        scale = Scale.of("signed" if signed else "probability", *(shown.values() if kind == "signed" else alike))
        own_rows = Axis(words["row"], tuple(rows[title]), f"row{len(rows[title])}")
        own_cols = Axis(words["column"], tuple(columns[title]), f"col{len(columns[title])}")
        panels.append(Panel(str(place), title, values, scale, rows=own_rows, cols=own_cols))
    first = panels[0]
    assert first.rows is not None
    assert first.cols is not None
    return MatrixFigure(
        tuple(panels),
        first.rows,
        first.cols,
        detail="exact",
        layout="single",
        quantity=words["quantity"],
        filename=filename,
        paint=None if brush is None else first.id,
        brush=brush,
    )
