"""Show a chart with its exports."""

from typing import Any

import streamlit as st

from pages.figures.charts import Shown, covered_specification, shows_several_tables, specification
from pages.figures.forms import Filled
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
