"""The page's part on one vector: before and after its norm, both variants, and the same vector scaled."""

import streamlit as st

from pages.kit.asking import ask
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Choice, Slider, Values, layer_control, show_in_columns, token_control
from pages.kit.experiment import ask_first, fragment, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.number_format import significant, significant_in_tex
from pages.kit.verdict import outcome_word
from pages.language import section, strings, t
from pages.norm.batch import try_batch
from pages.norm.figures import scaled_chart, variants_chart, vector_chart
from pages.room import Part
from transformer_core.analysis.stream.normalization import (
    NormedVector,
    normed_vector,
    other_norm,
    variants_of,
)

UNMOVED = 0.01


def _sublayers(view: View) -> dict[str, str]:
    """Return where norms stand, with their words."""
    config = view.bundle.config
    final = () if config.norm_order == "post" else ("final",)
    bare = not config.first_attention_norm and LAYER.read(view) == 0
    own = ("feed_forward",) if bare else ("self_attention", "feed_forward")
    place = "norm.before_{}" if config.norms_input else "norm.behind_{}"
    return options_of(place, own) | options_of("norm.before_{}", final)


def _others(view: View) -> dict[str, str]:
    """Return the variants that the model's norm is compared with, with their words."""
    return options_of("norm.kind_{}", variants_of(view.bundle.config.norm)[1:])


LAYER, TOKEN = layer_control("norm.layer"), token_control("norm_token", "norm.token")
SUBLAYER = Choice(
    "norm_sublayer",
    _sublayers,
    label="norm.sublayer",
    default="feed_forward",  # the first norm whose input has mixed several tokens
)
OTHER = Choice("norm_other", _others, label="norm.other")
POWER = Slider("norm_power", -6, 6, 3, label="norm.scale_power", format="10^%d")


def _picture(view: View, values: Values) -> Live:
    """Return the vector before and after the norm, how far the two variants differ, and the scaled input."""
    layer, sublayer = values[LAYER], values[SUBLAYER]
    asked = {"prompt": view.prompt, "layer": layer, "sublayer": sublayer, "token": values[TOKEN]}
    answer = ask(normed_vector, **asked, scale=1.0)
    scaled = ask(normed_vector, **asked, scale=float(f"1e{values[POWER]}"))
    found, more, words = answer.value, scaled.value, strings("norm")
    scale = t("norm.scaled_label", scale=f"{more.scale:g}")
    stem = f"norm_vector_layer{layer}_{sublayer}"
    drawings = (
        Drawing(
            "norm_vector",
            vector_chart(answer.arrays, words, squares=found.norm == "rms_norm"),
            answer,
            stem,
            t("norm.vector_label"),
        ),
        Drawing(
            "norm_variants",
            variants_chart(found.after, found.others[values[OTHER]], words),
            answer,
            "norm_variants",
            t("norm.variants_label"),
        ),
        Drawing("norm_scaled", scaled_chart(more.after, more.scaled_after, words), scaled, "norm_scaled", scale),
    )
    return Live(drawings=drawings)


@fragment
def _show(view: View) -> None:
    """Show the vector before and after the norm; the two variants and the scaled input below."""
    show_in_columns(view, LAYER, SUBLAYER, TOKEN, widths=(1, 2, 1.4))
    before, variant, scaled = VECTOR.live(view).drawings
    figure, _, numbers_place = st.columns([28, 3, 18])
    with figure:
        show_drawing(before)
    with numbers_place:
        _formula(before.answer.value)
    variants_place, scaled_place = st.columns(2, gap="large")
    with variants_place:
        _variants(view, variant, OTHER.show(view))
    with scaled_place:
        _scaled(scaled)
    try_batch(view)
    VECTOR.follow(view)


def _formula(found: NormedVector) -> None:
    if found.norm == "rms_norm":
        _formula_of_squares(found)
        return
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
    st.caption(t("norm.recomputed", **_trained(found), bias=f"{abs(found.bias).max():.3f}"))


def _trained(found: NormedVector) -> dict[str, str]:
    low, high = found.gain.min(), found.gain.max()
    return {"difference": significant(found.recomputed), "low": f"{low:.3f}", "high": f"{high:.3f}"}


def _formula_of_squares(found: NormedVector) -> None:
    """Write the root mean square norm of the vector."""
    root, eps = (found.mean_square + found.eps) ** 0.5, significant_in_tex(found.eps)
    st.latex(r"y = g\odot\frac{x}{\sqrt{\tfrac1d\sum_k x_k^2+\epsilon}}")
    st.latex(
        r"\begin{aligned}"
        rf"\tfrac1d\textstyle\sum_k x_k^2 &= {found.mean_square:.4f}\\"
        rf"\sqrt{{\cdot+\epsilon}} &= \sqrt{{{found.mean_square:.4f}+{eps}}} = {root:.4f}\\"
        rf"y_0 &= {found.gain[0]:.4f}\cdot\tfrac{{{found.x[0]:.4f}}}{{{root:.4f}}} = {found.after[0]:.4f}"
        r"\end{aligned}"
    )
    left, right = st.columns(2)
    left.metric(t("norm.standard_square"), f"{(found.standard**2).mean():.6f}")
    right.metric(t("norm.mean_kept"), significant(found.mean, sign=True))
    st.caption(t("norm.recomputed_squares", **_trained(found)))


def _variants(view: View, drawing: Drawing, other: str) -> None:
    found: NormedVector = drawing.answer.value
    st.subheader(t("norm.variants"), anchor=False)
    centred = rf"\frac{{x-\mu}}{{\sqrt{{\sigma^2+\epsilon}}}}:\ \div\,{(found.variance + found.eps) ** 0.5:.5f}"
    squares = rf"\frac{{x}}{{\sqrt{{\sigma^2+\mu^2+\epsilon}}}}:\ \div\,{(found.mean_square + found.eps) ** 0.5:.5f}"
    unbiased = rf"\frac{{x-\mu}}{{s+\epsilon}}:\ \div\,{found.deviation + found.eps:.5f}"
    of_squares = other != "unbiased"
    show_prose(section("norm", "variants_squares" if of_squares else "variants"))
    sides = (squares, centred) if found.norm == "rms_norm" else (centred, squares if of_squares else unbiased)
    st.latex(r"\qquad ".join(sides))
    show_drawing(drawing)
    measured = t(
        f"norm.variants_measured{'_squares' if of_squares else ''}",
        difference=f"{found.difference(other):.4f}",
        factor=f"{found.factor:.7f}",
        predicted=f"{found.predicted:.7f}",
        d=len(found.x),
        mean=significant(found.mean, sign=True),
        root=f"{found.mean_square**0.5:.4f}",
        share=f"{100 * found.mean**2 / max(found.mean_square, 1e-12):.2g}",
        used=t(f"norm.kind_{found.norm}"),
    )
    swapped = ask(other_norm, prompt=view.prompt, other=other).value if view.outcome is not None else None
    if swapped is not None and other != found.norm:
        label = outcome_word(view, swapped.winner)
        measured += " " + t("norm.variants_moved", label=label, moved=f"{swapped.moved:+.3f}")
    st.markdown(measured)


def _scaled(drawing: Drawing) -> None:
    st.subheader(t("norm.scaled"), anchor=False)
    options = options_of("norm.scaled_{}", ("grows", "shrinks", "stays"))
    cover = ask_first(section("norm", "try_scale"), options, name="norm_scale")
    POWER.show()
    found: NormedVector = drawing.answer.value
    thousand = ask(normed_vector, **{**drawing.answer.arguments, "scale": 1000.0}).value
    sizes = [abs(values).max() for values in (thousand.scaled_after, thousand.after)]
    grown = thousand.moved > UNMOVED * sizes[1]
    outcome = "stays" if not grown else "grows" if sizes[0] > sizes[1] else "shrinks"
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
        show_drawing(drawing)
        say(section("norm", "scale_after"), small=True)


VECTOR = Part("norm", "vector", _show, _picture, (LAYER, SUBLAYER, TOKEN, OTHER, POWER))
