"""The experiment of the page's part on gates: the GRU as it is printed beside the GRU as its code computes it."""

import streamlit as st

from pages.before.figures import word_bars
from pages.before.recurrent import word_options, worded
from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.experiment import ask_first, experiment, say
from pages.kit.header import View, shown_word
from pages.kit.number_format import significant
from pages.language import plain, section, strings, t
from transformer_core.analysis.before.printed_gru import printed_gru

PRINTED = r"n=\tanh\left(W_nx+b_n+U_n(r\odot h)+c_n\right)"
COMPUTED = r"n=\tanh\left(W_nx+b_n+r\odot(U_nh+c_n)\right)"


@experiment("before_printed_open", "before.try_printed")
def try_printed(view: View, direction: str) -> None:
    """Ask where both versions differ most, then show by how much after each word."""
    answer = ask_once(printed_gru, prompt=view.prompt, direction=direction)
    found = answer.value
    left, right = st.columns(2)
    for place, name, formula in ((left, "printed", PRINTED), (right, "computed", COMPUTED)):
        place.caption(t(f"before.{name}"))
        place.latex(formula)
    options = word_options(found.tokens, found.greatest)
    about = f"{direction} {view.name}"
    cover = ask_first(section("before", "try_printed"), options, name="before_printed", about=about)
    most = int(found.greatest.argmax())
    cover.judge(str(most))
    with cover.picture():
        said = {"word": worded(view, "word"), "up": t("before.printed_axis")}
        series = {t("before.printed_greatest"): found.greatest, t("before.printed_mean"): found.mean}
        chart = word_bars(found.tokens, series, strings("before") | said, share=False)
        show_chart(chart, answer, key="before_printed", label=worded(view, "printed_label"))
        say(
            t(
                "before.printed_measured",
                word=plain(shown_word(found.tokens[most])),
                greatest=significant(float(found.greatest[most]), 3),
                mean=significant(float(found.mean[most])),
                last=significant(float(found.greatest[found.last])),
            )
        )
        say(section("before", "printed_after"), small=True)
