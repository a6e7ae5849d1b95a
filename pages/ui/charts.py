"""Show a chart with its exports.

Read next: matrix.py.
"""

from typing import Any

import streamlit as st

from pages.figures.charts import Shown, specification
from pages.ui.asking import Answer
from pages.ui.exports import export_chart


def show_chart(chart: Shown, answer: Answer[Any], *, key: str, stem: str, label: str) -> None:
    """Show a chart and, below it, its files.

    Args:
        answer: what it was drawn from.
        key: unique on the page.
        stem: of the files' names.
        label: what it shows, for those who cannot see it.
    """
    st.vega_lite_chart(spec=specification(chart), width="stretch", key=key, alt=label)
    export_chart(chart, answer, key=key, stem=stem)
