"""One-hot vector times matrix beside the row looked up: their difference, and the time of each."""

import streamlit as st

from pages.embeddings.figures.vectors import one_hot_matrix, product_matrix
from pages.kit.asking import Answer, ask, forget_answer
from pages.kit.controls import Choice
from pages.kit.experiment import ask_first, fragment, options_of
from pages.kit.exports import export_matrix
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.matrix import show_matrix
from pages.kit.number_format import significant
from pages.kit.waiting import awaited, say_when_busy
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.words.one_hot import OneHotRow, lookup_times, one_hot_row

RATIOS = {"ten": 10.0, "hundred": 100.0, "thousand": 1000.0, "more": float("inf")}
NUMBERS_SHOWN = 4


def _tokens(view: View) -> dict[str, str]:
    """Return the places of the tokens, the longest first and special ones last, with their words."""
    encoding = view.encoding
    longest = max(range(len(encoding)), key=lambda place: (not encoding.special[place], len(encoding.labels[place])))
    order = sorted(range(len(encoding)), key=lambda place: (place != longest, encoding.special[place]))
    return {str(place): f"{place}  {encoding.labels[place]}" for place in order}


TOKEN = Choice("embeddings_token", _tokens, label="embeddings.token", kind=int, form="list")


@fragment
def _show(view: View) -> None:
    """Show one token's row, multiplied out and looked up."""
    words = strings("embeddings")
    control, facts = st.columns([1, 3], vertical_alignment="bottom")
    with control:
        place = TOKEN.show(view)
    id_, label = view.encoding.ids[place], view.encoding.labels[place]
    answer = ask(one_hot_row, bundle=view.bundle, token_id=id_)
    found = answer.value
    with facts:
        _show_facts(found)
    st.latex(_formula(found, id_))
    left, right = st.columns([1, 1], gap="medium")
    with left:
        figure = one_hot_matrix(found.one_hot, found.matrix, found.ids.tolist(), found.labels, words)
        show_matrix(figure, answer, key="embeddings_one_hot", version=str(id_))
        st.markdown(t("embeddings.row_of", token=plain(label), id=id_, size=f"{found.vocab_size:,}"))
        export_matrix(figure, answer, key="embeddings_one_hot_files")
    with right:
        figure = product_matrix(found.product, found.row, words)
        show_matrix(figure, answer, key="embeddings_product", version=str(id_))
        show_prose(section("embeddings", "product"))
        export_matrix(figure, answer, key="embeddings_product_files")
    _try_times(view, answer)


def _show_facts(found: OneHotRow) -> None:
    difference, product, lookup = st.columns(3)
    difference.metric(t("embeddings.difference"), significant(found.greatest_difference, 3))
    product.metric(t("embeddings.multiplications"), f"{found.multiplications:,}")
    lookup.metric(t("embeddings.copied"), f"{len(found.row):,}")


def _formula(found: OneHotRow, id_: int) -> str:
    numbers = r",\;".join(f"{value:.4f}" for value in found.product[:NUMBERS_SHOWN])
    return (
        rf"\underbrace{{(0,\dots,0,\overset{{{id_}}}{{1}},0,\dots,0)}}_{{1\times {found.vocab_size}}}\;"
        rf"\underbrace{{E}}_{{{found.vocab_size}\times {len(found.row)}}}"
        rf"= E_{{{id_}}} = ({numbers},\;\dots)"
    )


def _try_times(view: View, row: Answer[OneHotRow]) -> None:
    st.subheader(t("embeddings.try_times"), anchor=False)
    options = options_of("embeddings.ratio_{}", RATIOS)
    question = section("embeddings", "try_times").format(
        tokens=len(view.encoding), multiplications=f"{row.value.multiplications * len(view.encoding):,}"
    )
    cover = ask_first(question, options, name="embeddings_times", about=view.bundle.name)
    answer = awaited(lookup_times, t("await.timing"), key="embeddings_times", height=140, prompt=view.prompt)
    if answer is None:
        return
    times = answer.value
    outcome = next(name for name, most in RATIOS.items() if times.ratio < most)
    measured = t(
        "embeddings.times_measured",
        tokens=times.tokens,
        lookup=f"{1e6 * times.lookup:.1f}",
        product=f"{1e6 * times.product:.1f}",
        ratio=f"{times.ratio:.0f}",
    )
    cover.judge(outcome, measured)
    if cover.open:
        say_when_busy(times.spread)
        again = (lookup_times, {"prompt": view.prompt})
        st.button(
            t("embeddings.again"),
            icon=":material/timer:",
            key="embeddings_again",
            on_click=forget_answer,
            args=again,
        )


ROW = Part("embeddings", "row", _show)
