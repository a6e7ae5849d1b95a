"""The page's part on the tied output matrix: one score as a sum of products, and the rows nearest to the word's."""

import streamlit as st

from pages.bert.figures.guesses import products_chart
from pages.bert.gelu import try_gelu
from pages.bert.hidden_words import (
    called,
    chosen_places,
    masked_view,
    prompt_of,
    sentence_of,
    show_chips,
    show_masks,
)
from pages.kit.asking import ask
from pages.kit.charts import show_chart
from pages.kit.controls import Choice
from pages.kit.experiment import ask_first, options_of, say
from pages.kit.header import View
from pages.kit.number_format import markdown_table, significant
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.bert.masked_words import Filled, Hidden, fill_in
from transformer_core.analysis.bert.tied_output import OneScore, one_score

TOP = 8
SOME = 3


def _show(view: View) -> View:
    """Show a word's score as a sum of products, and its neighbours; return the view under the glass."""
    read = show_chips(view)
    if read is None:
        return view
    sentence, which, word = st.columns([4, 2, 2], vertical_alignment="center", gap="medium")
    with which:
        place = show_masks(view, read)
    with sentence:
        st.html(sentence_of(read))
    filled = fill_in(prompt=prompt_of(view), hidden=chosen_places(read), top=TOP)
    with word:
        word_id = _show_words(read, filled, place)
    asked = {"prompt": prompt_of(view), "hidden": chosen_places(read), "place": place, "word_id": word_id, "top": TOP}
    answer = ask(one_score, **asked)
    found = answer.value
    numbers, chart = st.columns([1, 2], gap="large")
    with chart:
        show_chart(
            products_chart(found.products, found.bias, strings("bert")),
            answer,
            key="bert_products",
            stem="bert_one_score",
            label=t("bert.products_label", word=found.word),
        )
    with numbers:
        _arithmetic(found)
    _one_or_two_matrices(found)
    _neighbours(view, found, called(read, place))
    if view.bundle.config.head_activation == "gelu":
        try_gelu(view, read, place)
    return masked_view(view, read)


def _show_words(read: Hidden, filled: Filled, place: int) -> int:
    row = read.places.index(place)
    options = {str(id_): label for id_, label in zip(filled.ids[row].tolist(), filled.labels[row], strict=True)}
    if filled.true_ids[row] >= 0:
        options.setdefault(str(filled.true_ids[row]), filled.true_labels[row])
    return Choice("bert_word", options, label="bert.which_score", kind=int, form="list").show()


def _one_or_two_matrices(found: OneScore) -> None:
    values = {"apart": significant(found.apart), "parameters": f"{found.parameters:,}"}
    st.markdown(t("bert.tied_same" if found.tied else "bert.tied_not", **values))


def _arithmetic(found: OneScore) -> None:
    dot = found.recomputed - found.bias
    st.latex(r"\ell_w=\underbrace{u\cdot E_w}_{" + f"{dot:+.5f}" + r"}+\underbrace{b_w}_{" + f"{found.bias:+.5f}" + "}")
    lines = {
        "score_products": f"{found.recomputed:+.6f}",
        "score_model": f"{found.score:+.6f}",
        "score_difference": significant(found.difference),
        "score_rank": f"{found.rank:,}",
    }
    rows = [(t(f"bert.{name}"), value) for name, value in lines.items()]
    st.markdown(markdown_table((t("bert.score_heading", word=plain(found.word)), ""), rows, right=1))
    st.caption(t("bert.score_note", rounding=significant(found.rounding)))


def _neighbours(view: View, found: OneScore, mask: str) -> None:
    st.subheader(t("bert.near_heading", word=plain(found.word)), anchor=False)
    options = options_of("bert.shared_{}", ("none", "some", "many"))
    question = section("bert", "try_near").format(word=plain(found.word), count=TOP, mask=plain(mask))
    cover = ask_first(question, options, name="bert_near", about=f"{view.name} {mask} {found.word}")
    outcome = "none" if not found.shared else "some" if found.shared <= SOME else "many"
    measured = t("bert.near_measured", shared=found.shared, count=TOP)
    cover.judge(outcome, measured)
    with cover.picture():
        near, guesses = st.columns(2, gap="large")
        say(
            _table(
                (t("bert.near_word"), t("bert.cosine"), t("bert.score")),
                found.near_words,
                (found.near_cosines, found.near_scores),
            ),
            at=near,
        )
        say(_table((t("bert.guess"), t("bert.score")), found.guesses, (found.guess_scores,)), at=guesses)
        say(section("bert", "tied_after"))


def _table(head: tuple[str, ...], labels: tuple[str, ...], columns: tuple) -> str:
    rows = [(plain(label), *(f"{number:+.3f}" for number in row)) for label, *row in zip(labels, *columns, strict=True)]
    return markdown_table(head, rows, right=len(columns))


TIED = Part("bert", "tied", _show, sites=("mlm_head.*",), group="gap")
