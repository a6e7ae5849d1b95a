"""Recurrent models as matrices (gates, states, the attention of two models), bars by word or model, curves by length.

Arrays come from transformer_core.analysis.before.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale
from pages.translation.figures.charts import clipped

UNIT = Scale("probability", 0.0, 1.0)
KEEPING = ("update_gate", "forget_gate")  # their value is the share of the old state that stays
LINE, FOOT = 22, 56  # px: of a bar with its gap, and of the axis below
MOST_UPRIGHT = 40
MOST_NAMED = 24  # characters of a longer text stand on the axis without their places
HUES_OF_SERIES = (HUES["query"], HUES["positions"])
HUES_OF_GATES = (HUES["query"], HUES["positions"], HUES["value"])
HUES_OF_MODELS = (HUES["residual"], HUES["positions"], HUES["query"], HUES["value"])
SHAPES = ("circle", "square", "triangle-up", "diamond")


def numbered(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return unique names of tokens: each with its place."""
    return tuple(f"{place} {clipped(token)}" for place, token in enumerate(tokens))


def gates_figure(
    gates: np.ndarray,
    names: Sequence[str],
    tokens: tuple[str, ...],
    said: Mapping[str, str],
    *,
    kept: np.ndarray,
    sort: bool,
    note: str = "",
) -> MatrixFigure:
    """Draw every gate of one direction, a row for each word and a column for each unit; the keeping gate comes first.

    Shapes:
        gates: (gate, pos, unit); kept: (pos, unit)

    Args:
        names: of the gates, keys of `said`.
        said: word, unit, gate, and each gate's name; row_top and col_top, as the matrix says them of gates.
        sort: order the columns by what a unit keeps on average, the least first.
    """
    order = np.argsort(kept.mean(0), kind="stable") if sort else np.arange(gates.shape[-1])
    keeps_first = sorted(zip(names, gates, strict=True), key=lambda pair: pair[0] not in KEEPING)
    panels = tuple(Panel(name, said[name], values[:, order], UNIT) for name, values in keeps_first)
    own = {name: said[name] for name in ("row_top", "col_top")}
    about = {"quantity": said["gate"], "filename": "before_gates", "note": note}
    return _by_unit(panels, tokens, order, said, strings=own, **about)


def states_figure(
    states: Mapping[str, np.ndarray],
    tokens: tuple[str, ...],
    said: Mapping[str, str],
    *,
    order: np.ndarray,
    note: str = "",
) -> MatrixFigure:
    """Draw what a recurrent layer passes on, a row for each word and a column for each unit; a panel for each state.

    Shapes:
        every state: (pos, unit)
        order: (unit,), in which the columns stand

    Args:
        states: hidden and, of an LSTM, cell: keys of `said`.
        said: word, unit, state, and each state's name.
    """
    panels = tuple(
        Panel(name, said[name], values[:, order], Scale.of("signed", values)) for name, values in states.items()
    )
    about = {"quantity": said["state"], "filename": "before_states", "note": note}
    return _by_unit(panels, tokens, order, said, role="residual", **about)


def step_figure(
    parts: Sequence[str],
    values: np.ndarray,
    states: Mapping[str, np.ndarray],
    said: Mapping[str, str],
    *,
    unit: int | None,
) -> tuple[MatrixFigure, np.ndarray]:
    """Draw one step: gates in [0, 1] on top, states below; a column for each unit, what moved most first.

    Shapes:
        values: (part, unit); every state: (unit,)
        returns: the figure, and the numbers of the units in its order

    Args:
        parts: names of gates and of the candidate.
        states: before and after, and cells of an LSTM.
        unit: the one that is marked; by default that which moved most.
        said: unit, gate, state, step_states, and with "step_" before it each row's name.
    """
    order = np.argsort(-np.abs(states["after"] - states["before"]), kind="stable")
    gates = [place for place, name in enumerate(parts) if name != "candidate"]
    units = Axis(said["unit"], tuple(map(str, order.tolist())))
    rows = {**states, "candidate": values[list(parts).index("candidate")]}
    names = Axis(said["state"], tuple(said[f"step_{name}"] for name in rows), key="state")
    stacked = np.stack(list(rows.values()))[:, order]
    panels = [Panel("states", said["step_states"], stacked, Scale.of("signed", stacked), rows=names)]
    if gates:
        labels = Axis(said["gate"], tuple(said[f"step_{parts[place]}"] for place in gates), key="gate")
        panels.insert(0, Panel("gates", said["gate"], values[gates][:, order], UNIT, rows=labels))
    figure = MatrixFigure(
        tuple(panels),
        names,
        units,
        columns=1,
        role="residual",
        detail="exact",
        quantity=said["state"],
        filename="before_step",
        cell=(list(rows).index("after"), 0 if unit is None else order.tolist().index(unit)),
        cell_panel=len(panels) - 1,
    )
    return figure, order


def _by_unit(
    panels: tuple[Panel, ...],
    tokens: tuple[str, ...],
    order: np.ndarray,
    said: Mapping[str, str],
    **options: Any,
) -> MatrixFigure:
    """Draw panels of a row for each word and a column for each unit, in this order; of a long text two side by side."""
    sides = Axis(said["word"], tokens), Axis(said["unit"], tuple(map(str, order.tolist())))
    columns = 2 if len(tokens) > MOST_NAMED else 1
    return MatrixFigure(panels, *sides, columns=columns, layout="single", **options)


@dataclass(frozen=True, eq=False)
class Looks:
    """The attention of one model to the source.

    Shapes:
        weights: (target_pos, source_pos)

    Args:
        id: of the panel; title: printed above it.
        target, source: labels of its rows and columns.
    """

    id: str
    title: str
    weights: np.ndarray
    target: tuple[str, ...]
    source: tuple[str, ...]


def looks_figure(looks: Sequence[Looks], said: Mapping[str, str], note: str = "") -> MatrixFigure:
    """Draw the attention of each model side by side; each has its own rows, since each writes its own words.

    Args:
        said: target, source, weight: names of axes and of a value.
    """
    panels = tuple(
        Panel(
            look.id,
            look.title,
            look.weights,
            UNIT,
            rows=Axis(said["target"], look.target, key="target" if look.target == looks[0].target else look.id),
            cols=Axis(said["source"], look.source, key="source" if look.source == looks[0].source else look.id),
        )
        for look in looks
    )
    return MatrixFigure(
        panels,
        Axis(said["target"], looks[0].target, key="target"),
        Axis(said["source"], looks[0].source, key="source"),
        detail="exact",
        quantity=said["weight"],
        note=note,
        filename="before_looks",
    )


def kept_bars(tokens: Sequence[str], kept: np.ndarray, said: Mapping[str, str], *, share: bool = True) -> Chart:
    """Draw how much of the state is kept at each word, the first word on top.

    Shapes:
        kept: (pos,), at most 1

    Args:
        said: word, kept: titles.
        share: values are shares, written as per cent; others may be below 0.
    """
    names = numbered(tokens)
    data = records(word=list(names), kept=kept)
    y = alt.Y("word:N", sort=list(names), title=None).axis(
        labelLimit=130, labelFontSize=13, labelOverlap=False, labelFlush=False, ticks=False
    )
    least = min(0.0, float(np.nanmin([*kept, 0.0])))
    x = alt.X("kept:Q", title=said["kept"], scale=alt.Scale(domain=[1.2 * least, 1.12]))
    form = ".0%" if share else ".2f"
    x = x.axis(format=form, values=[*([-1, -0.5] if least else []), 0, 0.25, 0.5, 0.75, 1], labelFlush=False)
    tooltip = [
        alt.Tooltip("word:N", title=said["word"]),
        alt.Tooltip("kept:Q", title=said["kept"], format=".2%" if share else ".3f"),
    ]
    base = alt.Chart(data).encode(x=x, y=y, tooltip=tooltip)
    bars = base.mark_bar(height=14, cornerRadiusEnd=3, color=HUES["residual"])
    numbers = base.mark_text(align="left", dx=5, fontSize=12).encode(text=alt.Text("kept:Q", format=form))
    return alt.layer(bars, numbers).properties(width="container", height=LINE * len(names) + FOOT)


def word_bars(
    tokens: Sequence[str],
    series: Mapping[str, np.ndarray],
    said: Mapping[str, str],
    *,
    share: bool = True,
    height: int = 280,
) -> Chart:
    """Draw one bar for each word and series, side by side.

    Shapes:
        every series: (pos,)

    Args:
        series: values by the name that the legend shows.
        said: word, up: titles.
        share: values are shares, written as per cent.
    """
    names, listed = numbered(tokens), list(series)
    letters = len(names) > MOST_NAMED and max(map(len, tokens)) == 1
    data = records(
        word=list(names) * len(listed),
        value=np.concatenate([np.asarray(values, dtype=float) for values in series.values()]),
        series=[name for name in listed for _ in names],
    )
    axis = alt.Axis(labelAngle=0 if letters else -40, labelLimit=110, ticks=False, labelFontSize=13)
    axis.labelOverlap = not letters and len(names) > MOST_UPRIGHT
    if letters:
        axis.labelExpr = "split(datum.value, ' ')[1]"
    legend = alt.Legend(title=None, orient="top", labelLimit=320) if len(listed) > 1 else None
    hues = alt.Scale(domain=listed, range=list(HUES_OF_SERIES[: len(listed)]))
    return (
        alt.Chart(data)
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=alt.X("word:N", sort=list(names), title=None, axis=axis),
            xOffset=alt.XOffset("series:N", sort=listed),
            y=alt.Y("value:Q", title=said["up"], axis=alt.Axis(format=".0%" if share else "~g", minExtent=46)),
            color=alt.Color("series:N", scale=hues, legend=legend),
            tooltip=[
                alt.Tooltip("series:N", title=" "),
                alt.Tooltip("word:N", title=said["word"]),
                alt.Tooltip("value:Q", title=said["up"], format=".2%" if share else ".4~g"),
            ],
        )
        .properties(width="container", height=height)
    )


def foreseen_bars(
    names: Sequence[str], nats: np.ndarray, usual: np.ndarray, high: np.ndarray, said: Mapping[str, str]
) -> Chart:
    """Draw nats a token of each model: a bar for the text; a tick for texts set aside, with a rule to the highest 5 %.

    Shapes:
        nats, usual, high: (model,), not a number where it was not measured

    Args:
        said: nats, text, aside, aside_high: titles.
    """
    data = records(model=list(names), text=nats, aside=usual, aside_high=high)
    y = alt.Y("model:N", sort=list(names), title=None)
    y = y.axis(labelFontSize=13, labelLimit=170, ticks=False, labelOverlap=False)
    most = float(np.nanmax([0.1, *nats, *high])) * 1.12
    scale = alt.Scale(domain=[0, most])
    hues = alt.Scale(domain=[said["text"], said["aside"]], range=[HUES["query"], HUES["positions"]])
    legend = alt.Legend(title=None, orient="top", labelLimit=420, symbolType="square", symbolOpacity=1)
    tooltip = [
        alt.Tooltip("model:N", title=" "),
        alt.Tooltip("text:Q", title=said["text"], format=".3f"),
        alt.Tooltip("aside:Q", title=said["aside"], format=".3f"),
        alt.Tooltip("aside_high:Q", title=said["aside_high"], format=".3f"),
    ]
    base = alt.Chart(data).encode(y=y, tooltip=tooltip)
    across = alt.X("text:Q", title=said["nats"], scale=scale, axis=alt.Axis(tickCount=8))
    bars = base.mark_bar(height=20, cornerRadiusEnd=3).encode(
        x=across, color=alt.Color("kind:N", scale=hues, legend=legend)
    )
    bars = bars.transform_calculate(kind=json.dumps(said["text"]))
    aside = base.transform_calculate(kind=json.dumps(said["aside"]))
    colour = alt.Color("kind:N", scale=hues, legend=legend)
    rule = aside.mark_rule(strokeWidth=2).encode(
        x=alt.X("aside:Q", scale=scale), x2=alt.X2("aside_high:Q"), color=colour
    )
    tick = aside.mark_tick(thickness=4, size=30).encode(x=alt.X("aside:Q", scale=scale), color=colour)
    numbers = base.mark_text(align="left", fontSize=13, fontWeight=600, color="#ffffff").encode(
        x=alt.value(8), text=alt.Text("text:Q", format=".2f")
    )
    return alt.layer(bars, rule, tick, numbers).properties(width="container", height=46 * len(names) + FOOT + 30)


def length_chart(
    bins: Sequence[str],
    models: Sequence[str],
    bleu: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    said: Mapping[str, str],
) -> Chart:
    """Draw BLEU over the length of the source: a line a model, with the spread of resampled test sets.

    Shapes:
        bleu, low, high: (model, bin)

    Args:
        bins: what the axis says of each bin, one or two lines each, parted by a line end.
        said: words, bleu, low, high, model: titles.
    """
    n_models, n_bins = bleu.shape
    data = records(
        bin=list(bins) * n_models,
        model=[name for name in models for _ in range(n_bins)],
        bleu=bleu.ravel(),
        low=low.ravel(),
        high=high.ravel(),
    )
    axis = alt.Axis(labelAngle=0, labelExpr="split(datum.value, '\\n')", labelFontSize=13, labelOverlap=False)
    x = alt.X("bin:N", sort=list(bins), title=said["words"], axis=axis, scale=alt.Scale(type="point", padding=0.3))
    hues = alt.Scale(domain=list(models), range=list(HUES_OF_MODELS[:n_models]))
    looks = {
        "color": alt.Color(
            "model:N", scale=hues, legend=alt.Legend(title=None, orient="top", labelLimit=320, symbolOpacity=1)
        ),
        "shape": alt.Shape("model:N", scale=alt.Scale(domain=list(models), range=list(SHAPES[:n_models]))),
    }
    tooltip = [
        alt.Tooltip("model:N", title=said["model"]),
        alt.Tooltip("bleu:Q", title=said["bleu"], format=".1f"),
        alt.Tooltip("low:Q", title=said["low"], format=".1f"),
        alt.Tooltip("high:Q", title=said["high"], format=".1f"),
    ]
    top = alt.Scale(domain=[0, float(np.ceil(high.max() / 10) * 10)], nice=False)
    base = alt.Chart(data).encode(x=x, tooltip=tooltip)
    up = alt.Y("bleu:Q", title=said["bleu"], scale=top)
    band = base.mark_area(opacity=0.14).encode(y=alt.Y("low:Q", title=said["bleu"], scale=top), y2=alt.Y2("high:Q"))
    band = band.encode(color=looks["color"])
    line = base.mark_line(strokeWidth=2.5).encode(y=up, color=looks["color"])
    points = base.mark_point(filled=True, size=90, opacity=1).encode(y=up, **looks)
    numbers = [
        base.transform_filter(f"datum.model {sign} {json.dumps(models[-1])}")
        .mark_text(dy=away, fontSize=12, fontWeight=600)
        .encode(y=up, text=alt.Text("bleu:Q", format=".0f"), color=looks["color"])
        for sign, away in (("===", -14), ("!==", 16))
    ]
    return alt.layer(band, line, points, *numbers).properties(width="container", height=400)


def ranges_chart(
    units: Sequence[int], ranges: np.ndarray, gates: np.ndarray, names: Sequence[str], said: Mapping[str, str]
) -> Chart:
    """Draw a dot for each unit and gate: its mean gate over how far back its state comes from, a panel for each gate.

    Shapes:
        ranges: (unit,); gates: (gate, unit)

    Args:
        names: of the gates, in words.
        said: unit, range, mean_gate: titles.
    """
    panels = []
    for place, (name, values) in enumerate(zip(names, gates, strict=True)):
        data = records(unit=list(units), range=ranges, gate=values)
        y = alt.Y("gate:Q", title=said["mean_gate"] if not place else None, scale=alt.Scale(domain=[0, 1]))
        x = alt.X("range:Q", title=said["range"], scale=alt.Scale(zero=False))
        tooltip = [
            alt.Tooltip("unit:O", title=said["unit"]),
            alt.Tooltip("range:Q", title=said["range"], format=".2f"),
            alt.Tooltip("gate:Q", title=name, format=".3f"),
        ]
        dots = alt.Chart(data, title=alt.Title(name, fontSize=14)).mark_circle(
            size=42, opacity=0.65, color=HUES_OF_GATES[place]
        )
        panels.append(dots.encode(x=x, y=y, tooltip=tooltip).properties(width=270, height=250))
    return alt.hconcat(*panels)
