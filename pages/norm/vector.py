"""The page's part on one vector: before and after its norm, both variants, and the same vector scaled."""

import streamlit as st

from pages.norm.figures import scaled_chart, variants_chart, vector_chart
from pages.ui.asking import Answer, ask
from pages.ui.boxes import ask_first, say
from pages.ui.charts import show_chart
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import section, strings, t
from pages.ui.number_format import significant, significant_in_tex
from pages.ui.pickers import choose_layer, choose_token
from pages.ui.url import choose, slide
from pages.ui.verdict import outcome_word
from transformer_core.analysis.outcome import outcome_of
from transformer_core.analysis.stream.normalization import NormedVector, normed_vector, other_norm

UNMOVED, GREATEST_POWER = 0.01, 6


@st.fragment
def vector_part(view: View) -> None:
    """Show the vector before and after the norm; the two variants and the scaled input below."""
    config = view.bundle.config
    places = ("self_attention", "feed_forward", *(("final",) if config.norm_order == "pre" else ()))
    layers, sublayers, tokens = st.columns([1, 2, 1.4])
    with layers:
        layer = choose_layer(t("norm.layer"), view)
    with sublayers:
        sublayer = choose(
            t("norm.sublayer"),
            {
                place: t(f"norm.before_{place}") if config.norm_order == "pre" else t(f"norm.behind_{place}")
                for place in places
            },
            name="norm_sublayer",
            default="feed_forward",  # the first norm whose input has mixed several tokens
        )
    with tokens:
        token, _ = choose_token(t("norm.token"), view, name="norm_token")
    arguments = view.asked | {"layer": layer, "sublayer": sublayer, "token": token}
    answer = ask(normed_vector, **arguments, scale=1.0)
    figure, _, numbers = st.columns([28, 3, 18])
    with figure:
        show_chart(
            vector_chart(answer.arrays, strings("norm")),
            answer,
            key="norm_vector",
            stem=f"norm_vector_layer{layer}_{sublayer}",
            label=t("norm.vector_label"),
        )
    with numbers:
        _formula(answer.value)
    variants, scaled = st.columns(2, gap="large")
    with variants:
        _variants(view, answer)
    with scaled:
        _scaled(arguments)


def _formula(found: NormedVector) -> None:
    root, eps = (found.variance + found.eps) ** 0.5, significant_in_tex(found.eps)
    st.latex(r"y = g\odot\frac{x-\mu}{\sqrt{\sigma^2+\epsilon}}+b")
    st.latex(
        r"\begin{aligned}"
        rf"\mu &= \tfrac1d\textstyle\sum_k x_k = {found.mean:.4f}\\"
        rf"\sigma^2 &= \tfrac1d\textstyle\sum_k (x_k-\mu)^2 = {found.variance:.4f}\\"
        rf"\sqrt{{\sigma^2+\epsilon}} &= \sqrt{{{found.variance:.4f}+{eps}}} = {root:.4f}\\"
        rf"y_0 &= {found.gain[0]:.4f}\cdot\tfrac{{{found.x[0]:.4f}-({found.mean:.4f})}}{{{root:.4f}}}"
        rf"+({found.bias[0]:.4f})\\&= {found.after[0]:.4f}"
        r"\end{aligned}"
    )
    left, right = st.columns(2)
    left.metric(t("norm.standard_mean"), significant(found.standard.mean(), sign=True))
    right.metric(t("norm.standard_variance"), f"{found.standard.var():.6f}")
    st.caption(
        t(
            "norm.recomputed",
            difference=significant(found.recomputed),
            low=f"{found.gain.min():.3f}",
            high=f"{found.gain.max():.3f}",
            bias=f"{abs(found.bias).max():.3f}",
        )
    )


def _variants(view: View, answer: Answer[NormedVector]) -> None:
    found = answer.value
    st.subheader(t("norm.variants"), anchor=False)
    tell(section("norm", "variants"))
    st.latex(
        rf"\frac{{x-\mu}}{{\sqrt{{\sigma^2+\epsilon}}}}:\ \div\,{(found.variance + found.eps) ** 0.5:.5f}"
        rf"\qquad \frac{{x-\mu}}{{s+\epsilon}}:\ \div\,{found.deviation + found.eps:.5f}"
    )
    show_chart(
        variants_chart(found.after, found.unbiased, strings("norm")),
        answer,
        key="norm_variants",
        stem="norm_variants",
        label=t("norm.variants_label"),
    )
    measured = t(
        "norm.variants_measured",
        difference=f"{found.difference:.4f}",
        factor=f"{found.factor:.7f}",
        predicted=f"{found.predicted:.7f}",
        d=len(found.x),
        used=t(f"norm.kind_{found.norm}"),
    )
    if outcome_of(view.bundle, view.encoding) is not None:
        swapped = ask(other_norm, **view.asked).value
        label = outcome_word(view, swapped.winner)
        measured += " " + t("norm.variants_moved", label=label, moved=f"{swapped.moved:+.3f}")
    st.markdown(measured)


def _scaled(arguments: dict) -> None:
    st.subheader(t("norm.scaled"), anchor=False)
    options = {name: t(f"norm.scaled_{name}") for name in ("grows", "shrinks", "stays")}
    cover = ask_first(section("norm", "try_scale"), options, name="norm_scale")
    power = slide(t("norm.scale_power"), -GREATEST_POWER, GREATEST_POWER, name="norm_power", default=3, format="10^%d")
    answer = ask(normed_vector, **arguments, scale=float(f"1e{int(power)}"))
    thousand = ask(normed_vector, **arguments, scale=1000.0).value
    sizes = [abs(values).max() for values in (thousand.scaled_after, thousand.after)]
    grown = thousand.moved > UNMOVED * sizes[1]
    outcome = "stays" if not grown else "grows" if sizes[0] > sizes[1] else "shrinks"
    found = answer.value
    cover.judge(outcome)
    with cover.picture():
        say(
            t(
                "norm.scaled_measured",
                scale=f"{found.scale:g}",
                moved=significant(found.moved, 3),
                greatest=f"{abs(found.after).max():.3f}",
                variance=significant(found.variance * found.scale**2, 3),
                eps=significant(found.eps),
            )
        )
        show_chart(
            scaled_chart(found.after, found.scaled_after, strings("norm")),
            answer,
            key="norm_scaled",
            stem="norm_scaled",
            label=t("norm.scaled_label", scale=f"{found.scale:g}"),
        )
        say(section("norm", "scale_after"), small=True)
