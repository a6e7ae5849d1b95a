"""What a recurrent model keeps of each word: gates and states, and the one vector at an encoder's end."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.before.figures import MOST_NAMED, gates_figure, kept_bars, states_figure, word_bars
from pages.before.forced import try_forced
from pages.before.printed import try_printed
from pages.before.recurrent import (
    STATES,
    directions,
    has_attention,
    has_encoder,
    has_gates,
    recurrent_config,
    show_direction,
    word_options,
    worded,
    worded_section,
)
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Switch
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import View, shown_word
from pages.kit.matrix import show_matrix
from pages.kit.number_format import percent
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.before.alignments import one_vector
from transformer_core.analysis.before.gates import gates_of_sentence, recurrent_model, states_of_sentence

MOST, HALF = 0.8, 0.4
SHOWN = Choice("before_show", ("gates", "states"), label="before.show", words="before.show_{}")
SORT = Switch("before_sort", True, label=lambda view: t(f"before.sort_{_shown(view)}"))


def _shown(view: View) -> str:
    return SHOWN.read() if has_gates(view) else "states"


def _show_survivors(view: View, *, key: str) -> None:
    """Show each word's share of the last state, for every direction."""
    answers = {name: ask_once(gates_of_sentence, prompt=view.prompt, direction=name) for name in directions(view)}
    series = {t(f"before.direction_{name}"): answer.value.share for name, answer in answers.items()}
    said = {"word": worded(view, "word"), "up": t("before.share_axis")}
    chart = word_bars(answers["forward"].value.tokens, series, said)
    show_chart(chart, answers["forward"], key=key, stem="before_share", label=worded(view, "share_title"))
    found = [answer.value for answer in answers.values()]
    best = [max(shares) for shares in zip(*(one.share.tolist() for one in found), strict=True)]
    least = min(range(len(best)), key=best.__getitem__)
    word = plain(shown_word(found[0].tokens[least]))
    say(worded(view, "least_measured", place=least, word=word, share=percent(best[least])))


def _show_extremes(view: View, tokens: Sequence[str], kept: np.ndarray) -> None:
    """Say at which words least and most is kept, special tokens left out."""
    words = [place for place, special in enumerate(view.encoding.special) if not special]
    if len(words) < 2:
        return
    least, most = min(words, key=kept.__getitem__), max(words, key=kept.__getitem__)
    st.caption(
        worded(
            view,
            "kept_measured",
            least=plain(shown_word(tokens[least])),
            low=f"{kept[least]:.0%}",
            most=plain(shown_word(tokens[most])),
            high=f"{kept[most]:.0%}",
        )
    )


@experiment("before_gates_open", lambda view, direction: worded(view, "try_gates"))
def _end_experiment(view: View, direction: str) -> None:
    answer = ask_once(gates_of_sentence, prompt=view.prompt, direction=direction)
    found = answer.value
    options = word_options(found.tokens, found.share)
    question = worded_section(view, "try_gates", direction=t(f"before.direction_{direction}"))
    cover = ask_first(question, options, name="before_end", about=f"{direction} {view.name}")
    most = int(found.share.argmax())
    far = 0 if found.last else len(found.tokens) - 1
    measured = worded(
        view,
        "end_measured",
        word=plain(shown_word(found.tokens[most])),
        share=f"{found.share[most]:.1%}",
        first=plain(shown_word(found.tokens[far])),
        little=percent(found.share[far]),
    )
    cover.judge(str(most), measured)
    with cover.picture():
        _show_survivors(view, key="before_end")


def _show_by_word(view: View, tokens: Sequence[str], values: np.ndarray, answer: Answer[Any], what: str) -> None:
    """Show a share of each word as bars: beside the matrix, or below it where the text is long.

    Args:
        what: kept or alike, which names words and files.
    """
    title, said = worded(view, f"{what}_title"), {**strings("before"), "kept": t(f"before.{what}")}
    st.markdown(f"**{title}**")
    if len(tokens) <= MOST_NAMED:
        chart = kept_bars(tokens, values, said, share=what == "kept")
    else:
        said = {"word": worded(view, "word"), "up": t(f"before.{what}_axis")}
        chart = word_bars(tokens, {title: values}, said, share=what == "kept", height=230)
    show_chart(chart, answer, key=f"before_{what}", label=title)


def _places(tokens: Sequence[str]) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return the places of the matrix and of the bars, side by side or one above the other."""
    if len(tokens) > MOST_NAMED:
        return st.container(), st.container()
    matrix_place, bars_place = st.columns([7, 4], gap="large")
    return matrix_place, bars_place


def _show_gates(view: View, direction: str, *, sort: bool) -> None:
    answer = ask_once(gates_of_sentence, prompt=view.prompt, direction=direction)
    found, said = answer.value, strings("before") | {"word": worded(view, "word")}
    matrix_place, bars_place = _places(found.tokens)
    with matrix_place:
        said |= {"row_top": t("matrix.row_largest"), "col_top": t("matrix.col_largest")}  # a gate attends to nothing
        figure = gates_figure(
            found.gates,
            found.names,
            found.tokens,
            said,
            kept=found.kept,
            sort=sort,
            note=section("before", "gates_note"),
        )
        show_matrix(figure, answer, key="before_gates", files=True, version=f"{direction}|{sort}|{view.encoding.text}")
    with bars_place:
        kept = found.kept.mean(1)
        _show_by_word(view, found.tokens, kept, answer, "kept")
        _show_extremes(view, found.tokens, kept)


def _show_states(view: View, direction: str, *, sort: bool) -> None:
    answer = ask_once(states_of_sentence, prompt=view.prompt, direction=direction)
    found, said = answer.value, strings("before") | {"word": worded(view, "word")}
    matrix_place, bars_place = _places(found.tokens)
    with matrix_place:
        order = np.argsort(-found.moved, kind="stable") if sort else np.arange(len(found.moved))
        states = {"cell": found.cell, "hidden": found.hidden} if len(found.cell) else {"hidden": found.hidden}
        figure = states_figure(states, found.tokens, said, order=order, note=section("before", "states_note"))
        version = f"states|{direction}|{sort}|{view.encoding.text}"
        show_matrix(figure, answer, key="before_states", version=version, files=True)
    with bars_place:
        _show_by_word(view, found.tokens, found.alike, answer, "alike")


def _show_kept(view: View) -> None:
    """Show gates or states as matrices, what is kept at each word as bars, and the experiment."""
    gated = has_gates(view)
    if not gated:
        st.info(worded(view, "no_gates", name=plain(view.bundle.name)), icon=":material/info:")
    shown_place, direction_place, sort_place = st.columns([3, 3, 3], vertical_alignment="bottom")
    with shown_place:
        if gated:
            SHOWN.show()
    with direction_place:
        direction = show_direction(view)
    with sort_place:
        sort = SORT.show(view)
    (_show_gates if _shown(view) == "gates" else _show_states)(view, direction, sort=sort)
    if gated:
        _end_experiment(view, direction)
    if recurrent_model(view.bundle).config.unit == "gru":
        try_printed(view, direction)


@experiment("before_vector_open", "before.try_vector")
def _blind_experiment(view: View) -> None:
    if not has_attention(view):
        return
    options = options_of("before.blind_{}", ("most", "half", "few"))
    cover = ask_first(section("before", "try_vector"), options, name="before_blind", about=view.name)
    found = ask_once(one_vector, prompt=view.prompt).value
    outcome = "most" if found.kept >= MOST else "half" if found.kept >= HALF else "few"
    measured = t("before.blind_measured", kept=f"{found.kept:.0%}")
    cover.judge(outcome, measured)
    with cover.picture():
        for name, words in (("looking", found.looking), ("blind", found.blind)):
            say(f"{t(f'before.{name}')} **{plain(words) or '…'}**")
        say(section("before", "vector_after"), small=True)


def _show_summary(view: View) -> None:
    """Show how many numbers the summary has, what is left of each word in it, and the experiment."""
    if not has_encoder(view):
        return
    config, count = recurrent_config(view), len(view.encoding)
    for place, (name, number) in zip(
        st.columns(3),
        {"n_words": count, "numbers_one": config.d_memory, "numbers_all": config.d_memory * count}.items(),
        strict=True,
    ):
        place.metric(t(f"before.{name}"), f"{number:,}")
    if has_gates(view):
        st.markdown(f"**{t('before.share_title')}**")
        _show_survivors(view, key="before_share")
        show_prose(section("before", "share_note"), small=True)
    _blind_experiment(view)
    try_forced(view)


GATES = Part("before", "gates", _show_kept, group="reads")
VECTOR = Part("before", "vector", _show_summary, sites=("encoder.summary", *STATES), group="writes")
