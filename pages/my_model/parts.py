"""Where a model's numbers lie: a prediction first, then the bars."""

import streamlit as st

from pages.my_model.figures import parts_chart
from pages.ui.asking import ask
from pages.ui.boxes import ask_first
from pages.ui.charts import show_chart
from pages.ui.glossary import tell
from pages.ui.language import plain, section, strings, t
from transformer_core.analysis.parameter_counts import count_parts
from transformer_core.bundle import Bundle


def show_parts(bundle: Bundle) -> None:
    """Ask which part has most numbers, and show all once the question is answered."""
    st.subheader(t("my_model.parts"), anchor=False)
    tell(section("my_model", "parts"))
    answer = ask(count_parts, bundle=bundle)
    options = {part: t(f"my_model.part_{part}") for part in sorted(answer.value.parts)}
    cover = ask_first(t("my_model.guess", name=plain(bundle.name)), options, name="my_model_parts", about=bundle.name)
    cover.judge(answer.value.parts[0])
    with cover.picture():
        chart = parts_chart(answer.value.parts, answer.value.counts, strings("my_model"))
        show_chart(chart, answer, key="my_model_parts", stem="parameters", label=t("my_model.parts"))
