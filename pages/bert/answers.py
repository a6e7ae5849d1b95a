"""The page's part on questions: where in the passage the answer may start and end, and the likeliest spans."""

import streamlit as st

from pages.bert.figures.tokens import bounds_chart, marked_text
from pages.bert.names import needs_other
from pages.figures.charts import HUES
from pages.kit.asking import Answer, ask
from pages.kit.charts import show_chart
from pages.kit.controls import Text
from pages.kit.experiment import say
from pages.kit.glossary import show_prose
from pages.kit.header import MOST_CHARACTERS, MOST_TOKENS, View
from pages.kit.number_format import markdown_table, percent
from pages.kit.refusals import in_words, require_length
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.bert.answers import Answers, encode_question, find_answers
from transformer_core.text import Encoding

KIND = "answerer"
TOP = 5


def _most_tokens(view: View) -> int:
    return min(2 * MOST_TOKENS, view.bundle.config.max_len)


def _joined(view: View, question: str) -> Encoding:
    """Return question and passage as one pair; ValueError with words for the page where they cannot be read."""
    if not question.strip():
        raise ValueError(t("bert.question_empty"))
    require_length(question, MOST_CHARACTERS)
    with in_words():
        return encode_question(view.bundle, question, view.encoding.text, _most_tokens(view))


QUESTION = Text("bert_question", "What is the man riding?", label="bert.question", parse=_joined)


def _show(view: View) -> View:
    """Show the question box, both curves over the passage, and the best spans; return the view under the glass."""
    if view.bundle.kind != KIND:
        needs_other(view, KIND)
        return view
    QUESTION.show_box(view)
    pair = QUESTION.note(view)
    if pair is None:
        return view
    answer = ask(
        find_answers,
        bundle=view.bundle,
        question=pair.text,
        passage=pair.pair or "",
        n_tokens=_most_tokens(view),
        top=TOP,
    )
    _show_spans(answer, pair)
    return View(view.bundle, pair)


def _show_spans(answer: Answer[Answers], pair: Encoding) -> None:
    found = answer.value
    if not found.spans:
        st.info(t("bert.no_word"), icon=":material/info:")
        return
    best = found.spans[0]
    places = [place for place, segment in enumerate(pair.segment_ids) if segment and not pair.special[place]]
    start, end = pair.offsets[places[best.first]][0], pair.offsets[places[best.last]][1]
    mark = (start, end, "answer", percent(best.probability))
    st.html(marked_text(pair.pair or "", [mark], {"answer": HUES["value"]}))
    show_chart(
        bounds_chart(found.tokens, found.start, found.end, strings("bert"), best=(best.first, best.last)),
        answer,
        key="bert_bounds",
        stem="bert_answer_bounds",
        label=t("bert.bounds_label", answer=plain(best.text)),
    )
    rows = [(plain(span.text).replace("|", "\\|"), percent(span.probability)) for span in found.spans]
    head = (t("bert.span"), t("bert.span_probability"))
    st.markdown(markdown_table(head, rows, right=1))
    said = t(
        "bert.answers_measured",
        start=f"{float(found.start.sum()):.1%}",
        end=f"{float(found.end.sum()):.1%}",
        nothing=percent(found.nothing),
        best=percent(best.probability),
    )
    say(said + (" " + t("bert.backwards") if found.backwards else ""), small=True)
    if found.truncated:
        st.caption(t("bert.pair_cut", count=found.truncated, most=len(pair)))
    show_prose(section("bert", "answers_after"))


ANSWERS = Part("bert", "answers", _show, sites=("span_logits",), group="further")
