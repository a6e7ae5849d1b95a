"""What the glass says of a tensor: its size, its check, its formula, one cell in numbers, its sources and its code."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import streamlit as st

from pages.glass.choice import look_at
from pages.glass.figures import Slice
from pages.kit.experiment import covered
from pages.kit.live import Live, show_formula, show_lines
from pages.kit.number_format import significant
from pages.language import joined, plain, t
from transformer_core.analysis.arithmetic import CellArithmetic, GradientArithmetic, Recomputed, number
from transformer_core.analysis.source import SourceLine
from transformer_core.sites import Site

CELL = "glass_cell"
STYLE = """<style>
.glass-small { font-size: 0.875rem; opacity: 0.75; margin-top: 1rem; font-variant-numeric: tabular-nums; }
</style>"""


def show_facts(site: Site, found: Recomputed, gradients: np.ndarray | None = None) -> None:
    """Show a tensor's name, its axes with their sizes, its least, mean and greatest value, and of its gradient."""
    sizes = zip(found.axes, found.values.shape, strict=True)
    chips = " ".join(f":gray-badge[{t(f'glass.axis_{axis}')} {size}]" for axis, size in sizes)
    finite = found.values[np.isfinite(found.values)].astype(np.float64)
    numbers = {"minimum": finite.min(), "mean": finite.mean(), "maximum": finite.max()} if finite.size else {}
    if site.scale == "id":
        numbers.pop("mean")
    shown = " · ".join(f"{t(f'glass.{name}')} **{significant(value, 4)}**" for name, value in numbers.items())
    masked = found.values.size - finite.size
    left_out = f" · {t('glass.masked', count=masked)}" if masked else ""
    if gradients is not None:
        numbers = {"minimum": gradients.min(), "mean": gradients.mean(), "maximum": gradients.max()}
        slopes = " · ".join(f"{t(f'glass.{name}')} **{significant(value, 4)}**" for name, value in numbers.items())
        left_out += f" · {t('glass.shows_gradient')}: {slopes}"
    st.markdown(f"`{found.name}` {chips}" if covered() else f"`{found.name}` {chips} :gray[{shown}{left_out}]")


def show_badge(found: Recomputed) -> None:
    """Show the greatest difference between the tensor and its formula, recomputed in float64."""
    difference = significant(found.difference)
    if found.edited:
        st.markdown(f":orange-badge[:material/edit: {t('glass.badge_edited', difference=difference)}]")
    elif found.agrees:
        st.markdown(f":green-badge[:material/check: {t('glass.badge', difference=difference)}]")
    else:
        st.markdown(f":red-badge[:material/priority_high: {t('glass.badge_differs', difference=difference)}]")


def show_definition(site: Site) -> None:
    """Show the tensor's formula and the formula's source."""
    lines = site.formula.replace(r";\quad ", r";\\[4pt] ").replace(r",\; ", r",\\[20pt] ")
    st.latex(rf"\begin{{gathered}} {lines} \end{{gathered}}")
    st.caption(site.source)


def head_word(part: Slice) -> str:
    """Return what the head, or the expert, that is shown is called; "" of a tensor without any."""
    kind = "expert" if "each_expert" in part.axes else "head"
    return t(f"axis.{kind}", number=part.head) if part.of_head else ""


def explained(
    part: Slice,
    cell: tuple[int, int],
    found: CellArithmetic | None,
    labels: Mapping[str, Sequence[str]],
    slope: GradientArithmetic | None = None,
) -> Live:
    """Return where the cell is, what the model recorded there, and its formula with indices and then with numbers.

    Args:
        found: of its value, where that is shown; slope: of its gradient.
    """
    places = [head_word(part)] if part.of_head else []
    for axis, place in zip((part.rows, part.cols), cell, strict=True):
        if axis != "batch":
            token = f" “{labels[axis][place]}”" if labels.get(axis) else ""
            places.append(f"{t(f'glass.axis_{axis}')} {place}{token}")
    recorded, formulas = [], []
    if found is not None:
        recorded.append(t("glass.recorded", recorded=significant(found.recorded, 9)))
        formulas.append(_equations(found.entry, [[found.cell.symbols], [found.cell.numbers], [found.result]]))
    if slope is not None:
        sums = {"recorded": significant(slope.recorded, 6), "summed": significant(slope.value, 6)}
        recorded.append(t("glass.slope", **sums))
        formulas.append(_equations(slope.entry, [slope.symbols, slope.numbers, [number(slope.value)]]))
    if any("underbrace" in formula for formula in formulas):
        recorded.append(t("glass.brace"))
    words = "".join(f"<div>{escape(place)}</div>" for place in places)
    said = f'<b>{escape(t("glass.cell"))}</b>{words}<div class="glass-small">{escape(joined(*recorded))}</div>'
    return Live(lines={CELL: said}, formulas={CELL: rf"\begin{{aligned}} {''.join(formulas)} \end{{aligned}}"})


def _equations(entry: str, sides: Sequence[Sequence[str]]) -> str:
    """Write what is equal below each other, and the terms of a long sum as well."""
    sides = [side for place, side in enumerate(sides) if side not in sides[:place]]
    rows = []
    for side in sides:
        for place, line in enumerate(side):
            plus = "" if line.startswith("-") else "+"
            start = "&= " if not place else rf"&\quad {plus} "
            rows.append(rf"{start}{line} \\[{12 if 'frac' in line else 8}pt] ")
    return f"{entry} {''.join(rows)}"


def show_cell(live: Live) -> None:
    """Show what is explained of a cell."""
    words_place, formula_place = st.columns([2, 5], gap="medium", vertical_alignment="center")
    with words_place:
        show_lines(CELL, live.lines[CELL], style=STYLE)
    with formula_place:
        show_formula(CELL, live.formulas[CELL])


def show_sources(sources: Mapping[str, str]) -> None:
    """Show the tensors that this one was computed from; a click puts one of them under the glass."""
    if not sources:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(t("glass.sources"), width="content")
        for letter, name in sources.items():
            st.button(
                f"${letter}$ `{name}`",
                key=f"glass from {letter}",
                type="tertiary",
                on_click=look_at,
                args=(name,),
                width="content",
            )


def show_line(line: SourceLine, device: str) -> None:
    """Show the statement of this project's code that computed the tensor, and on what."""
    st.caption(f":material/code: {line.path}:{line.number} · {plain(device)}")
    st.code(line.code, language="python", wrap_lines=True)
