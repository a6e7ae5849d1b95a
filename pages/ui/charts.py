"""Show a chart with its exports, or one in which a click names a place."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from pages.figures.charts import Shown, covered_specification, shows_several_tables, specification
from pages.figures.forms import Filled
from pages.figures.token_strip import PLACE
from pages.ui.asking import Answer
from pages.ui.boxes import covered
from pages.ui.exports import NOTHING, Shows, export_chart
from pages.ui.language import t


def show_chart(chart: Shown, answer: Answer[Any], *, key: str, stem: str, label: str, of: Shows = NOTHING) -> None:
    """Show a chart and, below it, its files.

    Streamlit offers the first of a chart's tables as its data; where there are several, none passes for the whole.

    Args:
        answer: what it was drawn from.
        key: unique on the page.
        stem: of the files' names.
        label: what it shows, for those who cannot see it, and as the title of its files.
        of: what it shows of the answer, by name, such as a head; its files say so.
    """
    hidden = covered()
    drawn = covered_specification(chart) if hidden else specification(chart)
    several = isinstance(chart, Filled) and shows_several_tables(chart)
    place = st.container(key=f"{key}_of_several_tables") if several else st  # the entry script's style knows the name
    place.vega_lite_chart(spec=drawn, width="stretch", key=key, alt=t("try.covered") if hidden else label)
    export_chart(chart, answer, key=key, stem=stem, label=label, of=of)


def place_of(state: Any) -> int | None:
    """Return the place that a chart's selection holds, if any."""
    selection = state.get("selection", {}) if isinstance(state, Mapping) else {}
    points = selection.get(PLACE) or []
    place = points[0].get(PLACE) if points and isinstance(points[0], Mapping) else None
    return place if isinstance(place, int) else None


def clickable(
    chart: Shown, answer: Answer[Any], *, key: str, stem: str, label: str, on_place: Callable[[int], None]
) -> None:
    """Show a chart in which a click names a place, and its files.

    Args:
        on_place: called with the place before the page runs.
        key, stem, label: as of show_chart.
    """

    def clicked() -> None:
        picked = place_of(st.session_state.get(key))
        if picked is not None:
            on_place(picked)

    st.vega_lite_chart(
        spec=specification(chart), width="stretch", key=key, alt=label, on_select=clicked, selection_mode=PLACE
    )
    export_chart(chart, answer, key=key, stem=stem, label=label)
