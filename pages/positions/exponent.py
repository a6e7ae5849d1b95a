"""The exponent of the sinusoids: the paper's beside the doubled one of many programs, and what differs."""

import streamlit as st

from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Values, show_in_columns
from pages.kit.experiment import ask_first, fragment, options_of, say
from pages.kit.exports import one_export
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_picture
from pages.kit.number_format import markdown_table, significant
from pages.language import section, strings, t
from pages.positions.figures.sinusoids import alike_chart, exponents_figure, wavelengths_chart
from pages.positions.matrix import size_controls
from pages.room import Part
from transformer_core.analysis.positions.sinusoids import Exponents, compare_exponents

LENGTH, D_MODEL = size_controls("x", least=8)


def _outcome(found: Exponents) -> str:
    paper, doubled = map(int, found.still)
    if doubled > 2 * paper:
        return "double"
    return "few" if doubled <= 1.1 * paper else "some"


def _table(found: Exponents, length: int, d_model: int) -> str:
    rows = {
        "longest": [f"{value:,.0f}" for value in found.longest],
        "still": [f"{value} / {d_model}" for value in found.still],
        "fast": [f"{value} / {d_model}" for value in found.fast],
        "farthest": [f"{value:.4f}" for value in found.farthest],
        "deviation": [significant(value) for value in found.deviation],
        "ratio": [significant(value, 4) for value in found.ratio],
        "rotation": [significant(value) for value in found.rotation_error],
    }
    head = ("", t("positions.variant_paper"), t("positions.variant_doubled"))
    named = {t(f"positions.row_{name}", length=length, last=length - 1): row for name, row in rows.items()}
    return markdown_table(head, [(name, *row) for name, row in named.items()], right=2)


def _picture(_: View, values: Values) -> Live:
    """Return both matrices of the chosen size."""
    length, d_model = values[LENGTH], values[D_MODEL]
    answer = ask_once(compare_exponents, length=length, d_model=d_model)
    figure = exponents_figure(answer.value.tables, strings("positions"))
    return Live((Picture("positions_exponents", figure, answer, version=f"{length}x{d_model}"),))


@fragment
@one_export
def _show(view: View) -> None:
    """Show both matrices, ask what the doubled exponent changes, then show wavelengths and a table."""
    words = strings("positions")
    st.latex(
        r"\sin(pos\cdot 10000^{-2i/d}),\;\cos(pos\cdot 10000^{-2i/d})\qquad\longleftrightarrow\qquad"
        r"\sin(pos\cdot 10000^{-4i/d}),\;\cos(pos\cdot 10000^{-2(2i+1)/d})"
    )
    length, d_model = show_in_columns(view, LENGTH, D_MODEL)
    (picture,) = EXPONENT.live(view).matrices
    answer: Answer[Exponents] = picture.answer
    show_picture(picture, files=True)
    EXPONENT.follow(view)
    show_prose(section("positions", "exponents"), small=True)
    options = options_of("positions.still_{}", ("few", "some", "double"))
    question = section("positions", "try_exponent").format(length=length, d_model=d_model)
    cover = ask_first(question, options, name="positions_exponent", about=f"{length} {d_model}")
    cover.judge(_outcome(answer.value))
    with cover.picture():
        waves, alike = st.columns(2, gap="large")
        with waves:
            show_chart(
                wavelengths_chart(answer.value.wavelengths, words, length=length),
                answer,
                key="positions_wavelengths",
                label=t("positions.wavelengths_label"),
            )
        with alike:
            show_chart(
                alike_chart(answer.value.cosines, words),
                answer,
                key="positions_alike",
                label=t("positions.similarity_label"),
            )
        say(_table(answer.value, length, d_model))
        say(section("positions", "exponent_after"))


EXPONENT = Part("positions", "exponent", _show, _picture, (LENGTH, D_MODEL))
