"""Figures of one step: gradients as pictures, the loss along the step, and gradients by layer and token.

Arrays come from transformer_core.analysis.learning.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.forms import Filled, form, named
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

Words = Mapping[str, str]
LEVELS = [0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, *(10.0**power for power in range(2, 12))]
LINEAR = 0.5  # nats: up to here the axis of the loss is nearly linear, above it logarithmic
COLUMNS = 7
MARKS = ("step", "best", "over")
HUES_OF_MARKS = (HUES["weights"], HUES["value"], HUES["key"])
SHAPES_OF_MARKS = ("circle", "diamond", "triangle-up")


class Gradient(Protocol):
    """The gradient of one matrix, as transformer_core.analysis.learning.gradients has it."""

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> int: ...

    @property
    def cols(self) -> int: ...

    @property
    def values(self) -> np.ndarray: ...

    @property
    def block(self) -> tuple[int, int]: ...


def _axis(name: str, count: int, step: int) -> Axis:
    more = " …" if step > 1 else ""
    return Axis(name, tuple(f"{place}{more}" for place in range(0, count, step)), key=f"{name} {count} {step}")


def _panel(found: Gradient, title: str, scale: Scale, words: Words) -> Panel:
    down, across = found.block
    rows, cols = _axis(words["row"], found.rows, down), _axis(words["column"], found.cols, across)
    return Panel(found.name, title, found.values, scale, rows=rows, cols=cols)


def gradient_board(
    found: Sequence[Gradient], titles: Sequence[str], words: Words, *, selected: str, own: bool
) -> MatrixFigure:
    """Draw the gradient of every matrix; a click chooses one.

    Args:
        titles: one a matrix.
        words: row, column, quantity.
        own: each has a scale of its own; else one scale holds all.
    """
    whole = Scale.of("signed", *(one.values for one in found))
    scales = [Scale.of("signed", one.values) if own else whole for one in found]
    panels = tuple(_panel(one, title, scale, words) for one, title, scale in zip(found, titles, scales, strict=True))
    rows, cols = panels[0].rows, panels[0].cols
    assert rows is not None
    assert cols is not None
    return MatrixFigure(
        panels,
        rows,
        cols,
        columns=min(COLUMNS, len(panels)),
        role="residual",
        layout="grid",
        selected=selected,
        quantity=words["quantity"],
        filename="one_step_gradients",
    )


def gradient_picture(found: Gradient, title: str, words: Words, *, cell: tuple[int, int]) -> MatrixFigure:
    """Draw the gradient of one matrix with the followed weight's cell pinned."""
    panel = _panel(found, title, Scale.of("signed", found.values), words)
    down, across = found.block
    assert panel.rows is not None
    assert panel.cols is not None
    return MatrixFigure(
        (panel,),
        panel.rows,
        panel.cols,
        role="residual",
        detail="exact",
        layout="single",
        cell=(cell[0] // down, cell[1] // across),
        quantity=words["quantity"],
        filename="one_step_gradient",
    )


def sweep_chart(found: Mapping[str, np.ndarray], words: Words, *, at: int) -> Filled:
    """Draw the loss by the rate of the step, with this step's rate, the best one, and where it overshoots.

    Args:
        found: rates, losses, start; and the places best and overshoots (-1 for none).
        words: axis_rate, axis_loss, start, mark_step, mark_best, mark_over.
        at: the place of this step's rate.
    """
    rates, losses, start = found["rates"], found["losses"], float(found["start"])
    places = {"step": at, "best": int(found["best"]), "over": int(found["overshoots"])}
    shown = [(name, place) for name, place in places.items() if place >= 0 and np.isfinite(losses[place])]
    rows = {
        "curve": records(rate=rates, loss=losses),
        "start": records(loss=[start], label=[words["start"]]),
        "marks": records(
            rate=[rates[place] for _, place in shown],
            loss=[losses[place] for _, place in shown],
            mark=[words[f"mark_{name}"] for name, _ in shown],
        ),
    }
    finite = losses[np.isfinite(losses)]
    top = next(level for level in LEVELS if level >= min(float(max(finite.max(initial=0), start)), LEVELS[-1]))
    names = tuple(words[f"mark_{name}"] for name in MARKS)
    ends = float(rates[0]), float(rates[-1])
    return Filled(_sweep(words["axis_rate"], words["axis_loss"], names, ends, float(top)), rows, height=340)


@form
def _sweep(across: str, up: str, names: tuple[str, ...], ends: tuple[float, float], top: float) -> Chart:
    powers = [10.0**power for power in range(-5, 3)]
    x = alt.X(
        "rate:Q",
        title=across,
        scale=alt.Scale(type="log", domain=list(ends), nice=False),
        axis=alt.Axis(values=powers, format="~g"),
    )
    y = alt.Y(
        "loss:Q",
        title=up,
        scale=alt.Scale(type="symlog", constant=LINEAR, domain=[0, top], nice=False, clamp=True),
        axis=alt.Axis(values=[level for level in LEVELS if level <= top], format="~g", labelOverlap="greedy"),
    )
    told = [alt.Tooltip("rate:Q", title=across, format=".3~g"), alt.Tooltip("loss:Q", title=up, format=".4~g")]
    line = (
        named("curve")
        .mark_line(strokeWidth=2, color=HUES["query"], point=alt.OverlayMarkDef(size=30))
        .encode(x=x, y=y, tooltip=told)
    )
    level = named("start").mark_rule(strokeDash=[5, 4], color=HUES["residual"]).encode(y=y)
    label = (
        named("start")
        .mark_text(align="left", dx=6, dy=-7, color=HUES["residual"])
        .encode(y=y, x=alt.value(0), text=alt.Text("label:N"))
    )
    hue = alt.Scale(domain=list(names), range=list(HUES_OF_MARKS))
    shape = alt.Scale(domain=list(names), range=list(SHAPES_OF_MARKS))
    legend = alt.Legend(orient="top", title=None, labelLimit=300, symbolOpacity=1)
    marks = (
        named("marks")
        .mark_point(filled=True, size=150, opacity=1)
        .encode(
            x=x,
            y=y,
            color=alt.Color("mark:N", scale=hue, title=None, legend=legend),
            shape=alt.Shape("mark:N", scale=shape, title=None, legend=legend),
            tooltip=[alt.Tooltip("mark:N", title=" "), *told],
        )
    )
    return alt.layer(level, label, line, marks)


def token_map(values: np.ndarray, tokens: Sequence[str], words: Words, *, bounds: tuple[float, float]) -> MatrixFigure:
    """Draw how large the gradient is in each layer at each token, as a power of ten.

    Shapes:
        values: (layer, pos), norms

    Args:
        bounds: powers of ten, for pictures on one scale; what lies below counts as the lower end.
        words: layer, token, power.
    """
    with np.errstate(divide="ignore"):
        powers = np.where(np.isfinite(values), np.clip(np.log10(values), *bounds), np.nan)
    layers = tuple(str(layer) for layer in range(len(values)))
    return MatrixFigure(
        (Panel("map", "", powers, Scale("count", *bounds)),),
        Axis(words["layer"], layers),
        Axis(words["token"], tuple(f"{place} {token}" for place, token in enumerate(tokens))),
        role="weights",
        detail="exact",
        quantity=words["power"],
        filename="one_step_tokens",
    )


def about_powers(values: Sequence[np.ndarray], least: float = -12.0) -> tuple[float, float]:
    """Return the powers of ten between which all norms lie, at least one apart; smaller ones count as the lowest."""
    every: Any = np.concatenate([one.ravel() for one in values])
    good = every[np.isfinite(every) & (every > 0)]
    if not good.size:
        return (-1.0, 0.0)
    high = float(np.ceil(np.log10(good.max())))
    low = max(least, float(np.floor(np.log10(good.min()))))
    return (min(low, high - 1), high)
