"""The page's part on segments: the two rows, where they are added, and the verdict without them or swapped."""

import streamlit as st

from pages.bert.figures.guesses import numbered
from pages.bert.figures.pair import lengths_chart, rows_figure, verdicts_chart
from pages.bert.pair import prompt_of_pair, show_second, verdict_outcome
from pages.kit.asking import Answer, ask
from pages.kit.charts import show_chart
from pages.kit.experiment import ask_first, options_of, say, say_number
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.matrix import show_matrix
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.bert.sentence_pairs import SegmentRows, segment_rows, without_segments
from transformer_core.text import Encoding


def _show(view: View) -> View:
    """Show the rows, the sum that they enter, and the verdict with other rows; return the view under the glass."""
    if view.bundle.config.n_segments < 2:
        st.info(t("bert.needs_segments", name=plain(view.bundle.name)), icon=":material/info:")
        return view
    pair = show_second(view)
    if pair is None:
        return view
    answer = ask(segment_rows, prompt=prompt_of_pair(view, pair))
    _rows(view, answer)
    _numbers(answer.value)
    show_prose(section("bert", "segments_sum"))
    found = answer.value
    show_chart(
        lengths_chart(
            numbered(found.labels, list(range(len(found.labels)))),
            found.segment_ids,
            found.token_norms,
            found.segment_norms,
            found.position_norms,
            strings("bert"),
        ),
        answer,
        key="bert_lengths",
        stem="bert_input_lengths",
        label=t("bert.lengths_label"),
    )
    _without(view, pair)
    return View(view.bundle, pair)


def _rows(view: View, answer: Answer[SegmentRows]) -> None:
    figure = rows_figure(answer.value.rows, strings("bert"))
    show_matrix(figure, answer, key="bert_rows", version=f"rows {view.bundle.name}", files=True)


def _numbers(found: SegmentRows) -> None:
    numbers = {
        "row_cosine": f"{found.cosine:+.3f}",
        "rows_apart": f"{found.apart:.3f}",
        "mean_token": f"{found.token_norms.mean():.3f}",
        "mean_segment": f"{found.segment_norms.mean():.3f}",
        "mean_position": f"{found.position_norms.mean():.3f}",
    }
    for (name, number), place in zip(numbers.items(), st.columns(len(numbers)), strict=True):
        say_number(t(f"bert.{name}"), number, at=place)


def _without(view: View, pair: Encoding) -> None:
    st.subheader(t("bert.without_heading"), anchor=False)
    options = options_of("try.{}", ("little", "much", "flips"))
    about = f"{view.bundle.name} {pair.text} {pair.pair}"
    cover = ask_first(section("bert", "try_segments"), options, name="bert_segments", about=about)
    answer = ask(without_segments, prompt=prompt_of_pair(view, pair))
    found = answer.value
    shares = dict(zip(found.changes, found.follows.tolist(), strict=True))
    measured = t(
        "bert.segments_measured",
        usual=f"{shares['usual']:.1%}",
        swapped=f"{shares['swapped']:.1%}",
        none=f"{shares['none']:.1%}",
    )
    outcome = verdict_outcome(shares["usual"], shares["none"])
    cover.judge(outcome, measured)
    with cover.picture():
        show_chart(
            verdicts_chart([t(f"bert.change_{name}") for name in found.changes], found.follows, strings("bert")),
            answer,
            key="bert_changes",
            stem="bert_without_segments",
            label=t("bert.changes_label"),
        )
        say(section("bert", "segments_after"))


SEGMENTS = Part("bert", "segments", _show, sites=("*.segment_embedding",), group="pair")
