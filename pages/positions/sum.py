"""Token plus position: their lengths with and without the factor sqrt(d_model), and adding beside concatenating."""

import streamlit as st

from pages.kit.asking import ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Values
from pages.kit.experiment import ask_first, experiment, options_of
from pages.kit.exports import one_export
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import show_matrix
from pages.kit.number_format import significant
from pages.kit.verdict import concludes, outcome_word, show_outcome
from pages.language import plain, section, strings, t
from pages.positions.counted import try_counted
from pages.positions.figures.models import concatenated_figure, cosines_chart, norms_chart
from pages.positions.schemes import word_control
from pages.room import Part
from transformer_core.analysis.positions.sums import Sums, adding_is_concatenating, token_and_position

FLIP_POINTS = 5.0
WORD = word_control("positions.token")


def _lengths(found: Sums) -> None:
    places = st.columns(4)
    lengths = {
        "norm_mean_token": found.token_norms.mean(),
        "norm_mean_scaled": found.token_norms.mean() * found.factor,
        "norm_mean_position": found.position_norms.mean(),
        "norm_vocabulary": found.vocabulary_norm,
    }
    for place, (name, value) in zip(places, lengths.items(), strict=True):
        place.metric(t(f"positions.{name}"), f"{value:.2f}")


def _show_likeness(found: Sums) -> None:
    st.markdown(
        t(
            "positions.sum_measured",
            factor=f"{found.factor:.2f}",
            token_off=f"{found.cosine_token[0].mean():.3f}",
            position_off=f"{found.cosine_position[0].mean():.3f}",
            token_on=f"{found.cosine_token[1].mean():.3f}",
            position_on=f"{found.cosine_position[1].mean():.3f}",
            does=t("positions.model_scales" if found.scaled_in_model else "positions.model_scales_not"),
        )
    )


@experiment("positions_try_sum", "positions.try_scale")
def _try_scale(view: View, found: Sums) -> None:
    """Ask how the verdict changes when the factor is switched, then show it."""
    if found.probabilities is None:
        concludes(view)
        return
    way = "off" if found.scaled_in_model else "on"
    options, question = options_of("try.{}", ("little", "much", "flips")), section("positions", f"try_scale_{way}")
    cover = ask_first(question, options, name="positions_scale", about=view.encoding.text)
    own, other = found.probabilities[int(found.scaled_in_model)], found.probabilities[int(way == "on")]
    winner = int(own.argmax())
    moved = 100 * float(other[winner] - own[winner])
    outcome = "flips" if other[winner] < other.max() else "much" if abs(moved) >= FLIP_POINTS else "little"
    with cover.picture():
        show_outcome(view, other.tolist(), beside=own.tolist())
    cover.judge(outcome, t("positions.scale_measured", label=outcome_word(view, winner), moved=f"{moved:+.2f}"))


def _concatenated(view: View) -> None:
    show_prose(section("positions", "concatenate"))
    st.latex(
        r"W\begin{bmatrix}e\\p\end{bmatrix}=\begin{bmatrix}W_1&W_2\end{bmatrix}\begin{bmatrix}e\\p\end{bmatrix}"
        r"=W_1e+W_2p;\qquad W_2=W_1:\;W_1(e+p)"
    )
    place = WORD.show(view)
    try:
        answer = ask_once(adding_is_concatenating, prompt=view.prompt, place=place)
    except ValueError as error:
        st.info(t("positions.cannot", error=plain(str(error))), icon=":material/info:")
        return
    found = answer.value
    rows = {
        "W₁e": found.of_token,
        "W₁p": found.of_position,
        "W₁(e+p)": found.added,
        "[W₁ W₁][e; p]": found.tied,
        "[W₁ W₂][e; p]": found.free,
    }
    figure = concatenated_figure(rows, strings("positions"))
    matrix, words = st.columns([3, 2], gap="large")
    with matrix:
        version = f"{place}|{view.encoding.text}"
        show_matrix(figure, answer, key="positions_concatenated", version=version, files=True)
    words.markdown(
        t(
            "positions.concatenated",
            difference=significant(found.difference),
            share=f"{found.free_share:.1%}",
            one=f"{found.parameters[0]:,}",
            two=f"{found.parameters[1]:,}",
            tied=significant(found.confused[0]),
            free=f"{found.confused[1]:.3f}",
        )
    )


def _picture(view: View, _: Values) -> Live:
    """Return the lengths of both vectors, and how alike the sum is to either.

    Raises:
        ValueError: as token_and_position.
    """
    answer = ask_once(token_and_position, prompt=view.prompt)
    found, words, labels = answer.value, strings("positions"), view.encoding.labels
    norms = norms_chart(found.token_norms, found.factor, found.position_norms, labels, words)
    cosines = cosines_chart(found.cosine_token, found.cosine_position, labels, words)
    drawings = (
        Drawing("positions_norms", norms, answer, "positions_norms", t("positions.norms_label")),
        Drawing("positions_cosines", cosines, answer, "positions_cosines", t("positions.cosines_label")),
    )
    return Live(drawings=drawings)


@one_export
def _show(view: View) -> None:
    """Show the lengths of both vectors, the effect of the factor, and that adding is concatenating with W₂ = W₁."""
    try:
        drawings = SUM.live(view).drawings
    except ValueError as error:
        st.info(t("positions.cannot", error=plain(str(error))), icon=":material/info:")
        return
    found: Sums = drawings[0].answer.value
    if not found.added_in_model:
        st.info(t("positions.adds_none", positions=view.bundle.config.positions), icon=":material/info:")
    _lengths(found)
    for place, drawing in zip(st.columns(2, gap="large"), drawings, strict=True):
        with place:
            show_drawing(drawing)
    SUM.follow(view)
    _show_likeness(found)
    _try_scale(view, found)
    st.subheader(t("positions.concatenate_heading"), anchor=False)
    _concatenated(view)
    try_counted(view)


SUM = Part("positions", "sum", _show, _picture)
