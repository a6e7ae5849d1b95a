"""The page's part on hidden words: the guesses for every mask, and every word of the sentence hidden in turn."""

from contextlib import nullcontext
from typing import Any

import streamlit as st

from pages.bert.figures.guesses import each_chart, guesses_chart
from pages.bert.hidden_words import (
    HIDDEN,
    called,
    chosen_places,
    has_words,
    hidden_in,
    masked_view,
    prompt_of,
    sentence_of,
    show_chips,
)
from pages.kit.asking import Answer, ask
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Switch, Values
from pages.kit.experiment import Cover, ask_first, experiment, say, say_number
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live, show_lines
from pages.kit.number_format import percent
from pages.kit.waiting import BRIEF, awaited
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.bert.masked_words import Filled, Hidden, each_hidden, fill_in

TOP = 8
MOST_SHOWN = 4
MOST_OPTIONS = 20
CANDIDATES = 3
OTHER = "other"
PREDICT = Switch("bert_predict", False, label="bert.predict_first")


def _picture(view: View, values: Values) -> Live:
    """Return the sentence with its masks, and the guesses for each."""
    read = hidden_in(view, values[HIDDEN])
    answer = ask(fill_in, prompt=prompt_of(view), hidden=chosen_places(read), top=TOP)
    drawings = tuple(_bars(answer, row) for row in range(min(MOST_SHOWN, len(read.places))))
    return Live(drawings=drawings, lines={"bert_sentence": sentence_of(read)})


def _show(view: View) -> View:
    """Show the chips, the sentence with its masks, and the guesses; return the view that is under the glass."""
    chips, asking = st.columns([5, 1], vertical_alignment="bottom", gap="medium")
    with chips:
        read = show_chips(view)
    if read is None:
        return view
    with asking:
        first = PREDICT.show()
    live = FILL.live(view)
    show_lines("bert_sentence", live.lines["bert_sentence"])
    if len(read.places) == 1:
        _one(view, read, live.drawings[0], 0, first)
    else:
        columns = st.columns(2, gap="large")
        for row, drawing in enumerate(live.drawings):
            with columns[row % 2]:
                _one(view, read, drawing, row, first)
        if len(read.places) > MOST_SHOWN:
            st.caption(t("bert.more_masks", shown=MOST_SHOWN, count=len(read.places)))
    FILL.follow(view)
    show_prose(section("bert", "fill_try"), small=True)
    _hardest(view, read)
    return masked_view(view, read)


def _one(view: View, read: Hidden, drawing: Drawing, row: int, predict_first: bool) -> None:
    found: Filled = drawing.answer.value
    with _predicted(view, read, found, row).picture() if predict_first else nullcontext():
        if len(read.places) == 1:
            bars, numbers = st.columns([3, 2], gap="large")
        else:
            st.subheader(plain(called(read, read.places[row])), anchor=False)
            bars = numbers = st.container()
        with bars:
            show_drawing(drawing)
        with numbers:
            _truth(found, row)


def _unnamed(read: Hidden, row: int) -> str:
    """Return the name of a mask without the word that it hides."""
    return f"[MASK] {read.places[row]}"


def _predicted(view: View, read: Hidden, found: Filled, row: int) -> Cover:
    best = dict(zip(map(str, found.ids[row][:CANDIDATES].tolist()), found.labels[row], strict=False))
    if found.true_ids[row] >= 0:
        best[str(found.true_ids[row])] = found.true_labels[row]
    options = {id_: plain(label) for id_, label in sorted(best.items(), key=lambda pair: pair[1])}
    about = f"{view.bundle.name} {read.masked.ids} {row}"
    cover = ask_first(
        t("bert.which_word", mask=plain(_unnamed(read, row))), options, name=f"bert_word_{row}", about=about
    )
    cover.judge(str(found.ids[row][0]))
    return cover


def _bars(answer: Answer[Filled], row: int) -> Drawing:
    found = answer.value
    ids, true_id = found.ids[row].tolist(), int(found.true_ids[row])
    inside = ids.index(true_id) if true_id in ids else None
    outside: tuple[str, float, int] | None = None
    if true_id >= 0 and inside is None:
        outside = (found.true_labels[row], float(found.true_probabilities[row]), int(found.true_ranks[row]))
    words = {
        "probability": t("bert.axis_probability"),
        "expected": t("bert.bar_guess"),
        "came": t("bert.bar_true"),
        "others": t("bert.bar_others"),
        "rest": t("bert.rest", count=f"{found.vocabulary - len(ids) - (outside is not None):,}"),
    }
    chart = guesses_chart(found.labels[row], found.probabilities[row], words, true_word=outside, inside=inside)
    label = t("bert.bars_label", place=int(found.places[row]), count=len(ids))
    return Drawing(f"bert_guesses_{row}", chart, answer, f"bert_mask_{int(found.places[row])}", label)


def _truth(found: Filled, row: int) -> None:
    if found.true_ids[row] < 0:
        say(t("bert.typed_told"))
        return
    word, chance, rank = st.columns([2, 1.4, 1.1])  # of which a word is the widest
    say_number(t("bert.true_word"), found.true_labels[row], at=word)
    say_number(t("bert.true_probability"), percent(found.true_probabilities[row]), at=chance)
    say_number(t("bert.true_rank"), f"{int(found.true_ranks[row]):,}", at=rank)
    right = found.true_ranks[row] == 1
    values: dict[str, Any] = {"guess": plain(found.labels[row][0]), "vocabulary": f"{found.vocabulary:,}"}
    say(t("bert.told_right" if right else "bert.told_wrong", **values))  # the true word stands above


@experiment("bert_hardest_open", "bert.try_hardest")
def _hardest(view: View, read: Hidden) -> None:
    if not has_words(read):
        return
    brief = len(view.encoding) <= BRIEF
    answer = awaited(each_hidden, t("bert.hiding_each"), key="bert_each", brief=brief, prompt=prompt_of(view))
    if answer is None:
        return
    found = answer.value
    rows = [row for row, place in enumerate(found.places) if place not in read.places] or range(len(found.places))
    named = {str(found.places[row]): f"{found.places[row]} {plain(found.labels[row])}" for row in rows}
    options = dict(list(named.items())[:MOST_OPTIONS])
    if len(named) > MOST_OPTIONS:
        options[OTHER] = t("bert.another_word")
    about = f"{view.bundle.name} {read.masked.ids} {view.encoding.text}"
    cover = ask_first(section("bert", "try_hardest"), options, name="bert_hardest", about=about)
    least = min(rows, key=found.probabilities.__getitem__)
    hardest = str(found.places[least])
    cover.judge(hardest if hardest in options else OTHER)
    with cover.picture():
        say(
            t(
                "bert.each_measured",
                count=len(found.places),
                share=f"{found.share_first:.0%}",
                word=plain(found.labels[least]),
                chance=percent(found.probabilities[least]),
                guess=plain(found.guesses[least]),
            )
        )
        chart = each_chart(
            found.labels,
            found.places.tolist(),
            found.probabilities,
            found.ranks,
            found.guesses,
            found.guess_probabilities,
            strings("bert"),
        )
        show_chart(chart, answer, key="bert_each", stem="bert_each_word_hidden", label=t("bert.each_label"))


FILL = Part("bert", "fill", _show, _picture, (HIDDEN,), group="gap")
