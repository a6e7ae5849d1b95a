"""Show a chart with its exports, or one in which a click names a place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages.figures.charts import (
    Shown,
    covered_specification,
    followed,
    shows_several_tables,
    specification,
    taller,
)
from pages.figures.forms import Filled
from pages.figures.token_strip import PLACE
from pages.kit.asking import Answer
from pages.kit.experiment import covered, figure
from pages.kit.exports import NOTHING, Shows, export_chart
from pages.kit.navigation import HALL_HEIGHT, in_hall
from pages.language import t

CHART = "chart"  # what lectures call every chart


@dataclass(frozen=True, eq=False)
class Drawing:
    """A chart as a page mounts it, which follows the hand.

    Args:
        key: unique on the page.
        chart: what is shown.
        answer: what it was drawn from.
        stem: of the files' names.
        label: what it shows, for those who cannot see it, and as the title of its files.
        of: what it shows of the answer, by name, such as a head; its files say so.
    """

    key: str
    chart: Filled
    answer: Answer[Any]
    stem: str
    label: str
    of: Shows = field(default_factory=dict)

    @property
    def event(self) -> str:
        """Return the name of the event at which the browser's chart takes other rows."""
        return self.chart.called(self.key)

    @property
    def rows(self) -> dict[str, Any]:
        """Return the rows of each of the chart's data, by name."""
        return {name: data["values"] for name, data in self.chart.rows.items()}


def show_drawing(drawing: Drawing, *, on_place: Callable[[int], None] | None = None) -> None:
    """Show a chart that follows the hand and, below it, its files.

    Args:
        on_place: as of clickable.
    """
    with figure(CHART, drawing.key):
        _show(drawing.chart, drawing.key, drawing.label, event=drawing.event, on_place=on_place)
        about = {"key": drawing.key, "stem": drawing.stem, "label": drawing.label, "of": drawing.of}
        export_chart(drawing.chart, drawing.answer, **about)


def show_chart(chart: Shown, answer: Answer[Any], *, key: str, label: str, stem: str = "", of: Shows = NOTHING) -> None:
    """Show a chart and, below it, its files.

    Args:
        chart, answer, key, label, of: as of Drawing.
        stem: of the files' names; the key by default.
    """
    with figure(CHART, key):
        _show(chart, key, label)
        export_chart(chart, answer, key=key, stem=stem or key, label=label, of=of)


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
    with figure(CHART, key):
        _show(chart, key, label, on_place=on_place)
        export_chart(chart, answer, key=key, stem=stem, label=label)


def _show(
    chart: Shown, key: str, label: str, *, event: str = "", on_place: Callable[[int], None] | None = None
) -> None:
    """Show a chart; Streamlit offers the first of its tables as its data, and where there are several, none.

    Args:
        event: at which it takes other rows, where it follows the hand.
        on_place: as of clickable.
    """
    hidden = covered()
    drawn = covered_specification(chart) if hidden else specification(chart)
    if in_hall():
        drawn = taller(drawn, *HALL_HEIGHT)
    if event and isinstance(chart, Filled):
        drawn = followed(drawn, event, chart.rows)
    alt = t("try.covered") if hidden else label
    if on_place is not None:

        def clicked() -> None:
            picked = place_of(st.session_state.get(key))
            if picked is not None:
                on_place(picked)

        clicks: dict[str, Any] = {"on_select": clicked, "selection_mode": PLACE}
        st.vega_lite_chart(spec=drawn, width="stretch", key=key, alt=alt, **clicks)
        return
    several = {
        "of_several_tables": isinstance(chart, Filled) and shows_several_tables(chart),
        "of_several_rows": "vconcat" in drawn,
    }
    names = [name for name, holds in several.items() if holds]  # the entry script's style knows them
    place = st.container(key="_".join((key, *names))) if names else st
    place.vega_lite_chart(spec=drawn, width="stretch", key=key, alt=alt)
