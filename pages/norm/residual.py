"""The page's part on the residual stream: the sum, how the stream grows, and how much each part writes."""

import streamlit as st

from pages.kit.asking import Answer, ask
from pages.kit.charts import show_chart
from pages.kit.controls import token_control
from pages.kit.experiment import ask_first, fragment, options_of
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.matrix import show_matrix
from pages.kit.number_format import significant
from pages.language import section, strings, t
from pages.norm.figures import growth_chart, name_of, shares_chart, sum_figure, written_chart
from pages.room import Part
from transformer_core.analysis.stream.residual_sum import StreamSum, stream_growth, stream_sum

TOKEN = token_control("norm_token", "norm.token")
KINDS = ("embedding", "self_attention", "feed_forward")


@fragment
def _show(view: View) -> None:
    """Show the sum for one token, then growth and shares over all tokens."""
    words, token = strings("norm"), TOKEN.show(view)
    named = f"{token} · {view.encoding.labels[token]}"
    answer = ask(stream_sum, prompt=view.prompt, token=token)
    found = answer.value
    figure = sum_figure(
        found.parts,
        found.contributions,
        found.total,
        found.stream,
        words,
    )
    show_matrix(figure, answer, key="norm_sum", files=True, version=f"sum {token}|{view.encoding.text}")
    st.markdown(
        t(
            "norm.sum_measured",
            token=named.replace("`", "'"),
            difference=significant(found.difference),
            inner=significant(found.inner_difference),
        )
    )
    order = "none" if not found.residual else {"both": "output"}.get(found.norm_order, found.norm_order)
    show_prose(section("norm", f"identity_{order}"))
    _who_writes(view, answer, token)
    _growth(view, token)


def _growth(view: View, token: int) -> None:
    words, labels = strings("norm"), view.encoding.labels
    growth = ask(stream_growth, prompt=view.prompt)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader(t("norm.growth"), anchor=False)
        show_chart(
            growth_chart(growth.value.stages, growth.value.lengths, labels, words, token=token),
            growth,
            key="norm_growth",
            stem="norm_stream_growth",
            label=t("norm.growth_label"),
        )
        first, last = growth.value.lengths[0].mean(), growth.value.lengths[-1].mean()
        st.caption(
            t("norm.growth_note", first=f"{first:.2f}", last=f"{last:.2f}", times=f"{last / max(first, 1e-12):.2f}")
        )
    with right:
        st.subheader(t("norm.written"), anchor=False)
        for measure, values in (("written", growth.value.written), ("cosine", growth.value.cosines)):
            show_chart(
                written_chart(growth.value.sublayers, values, labels, words, measure=measure),
                growth,
                key=f"norm_{measure}",
                stem=f"norm_stream_{measure}",
                label=t("norm.written_label"),
            )
        show_prose(section("norm", "written"), small=True)


def _who_writes(view: View, answer: Answer[StreamSum], token: int) -> None:
    found = answer.value
    options = options_of("norm.kind_{}", KINDS)
    cover = ask_first(section("norm", "try_writes"), options, name="norm_writes", about=f"{view.name} {token}")
    own = [place for place, part in enumerate(found.parts) if part != "norm_shifts"]
    longest = max(own, key=lambda place: found.norms[place])
    sublayer = found.parts[longest].rpartition(".")[2]
    outcome = sublayer if sublayer in KINDS else "embedding"
    part = name_of(found.parts[longest], strings("norm"))
    cover.judge(outcome, t("norm.writes_measured", part=part, length=f"{found.norms[longest]:.3f}"))
    with cover.picture():
        show_chart(
            shares_chart(found.parts, found.norms, strings("norm")),
            answer,
            key="norm_shares",
            stem="norm_contributions",
            label=t("norm.shares_label"),
        )


RESIDUAL = Part("norm", "residual", _show)
