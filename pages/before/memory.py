"""What the encoder keeps of each word: its gates, and the one vector at its end (the parts gates and vector)."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from pages.before.figures import gates_figure, kept_bars, word_bars
from pages.before.recurrent import (
    choose_direction,
    directions,
    has_attention,
    has_gates,
    recurrent_config,
    word_options,
)
from pages.ui.asking import ask_once
from pages.ui.boxes import ask_first, lazy_box, say
from pages.ui.charts import show_chart
from pages.ui.exports import export_matrix
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.matrix import show_matrix
from pages.ui.number_format import percent
from pages.ui.pickers import shown_word
from pages.ui.url import switch
from transformer_core.analysis.before.alignments import one_vector
from transformer_core.analysis.before.gates import gates_of_sentence

MOST, HALF = 0.8, 0.4


def _show_survivors(view: View, *, key: str) -> None:
    """Show each word's share of the last state, for every direction."""
    answers = {name: ask_once(gates_of_sentence, **view.asked, direction=name) for name in directions(view)}
    series = {t(f"before.{name}"): answer.value.share for name, answer in answers.items()}
    chart = word_bars(answers["forward"].value.tokens, series, {"word": t("before.word"), "up": t("before.share_axis")})
    show_chart(chart, answers["forward"], key=key, stem="before_share", label=t("before.share_title"))
    found = [answer.value for answer in answers.values()]
    best = [max(shares) for shares in zip(*(one.share.tolist() for one in found), strict=True)]
    least = min(range(len(best)), key=best.__getitem__)
    word = plain(shown_word(found[0].tokens[least]))
    say(t("before.least_measured", place=least, word=word, share=percent(best[least])))


def _tell_extremes(view: View, tokens: Sequence[str], kept: np.ndarray) -> None:
    """Say at which words least and most is kept, special tokens left out."""
    words = [place for place, special in enumerate(view.encoding.special) if not special]
    if len(words) < 2:
        return
    least, most = min(words, key=kept.__getitem__), max(words, key=kept.__getitem__)
    st.caption(
        t(
            "before.kept_measured",
            least=plain(shown_word(tokens[least])),
            low=f"{kept[least]:.0%}",
            most=plain(shown_word(tokens[most])),
            high=f"{kept[most]:.0%}",
        )
    )


def _end_experiment(view: View, direction: str) -> None:
    box = lazy_box(t("before.try_gates"), icon=":material/science:", key="before_gates_open")
    if box is None:
        return
    with box:
        answer = ask_once(gates_of_sentence, **view.asked, direction=direction)
        found = answer.value
        options = word_options(found.tokens, found.share)
        question = section("before", "try_gates").format(direction=t(f"before.{direction}"))
        cover = ask_first(
            question, options, name="before_end", about=f"{direction} {view.bundle.name} {view.encoding.text}"
        )
        most = int(found.share.argmax())
        far = 0 if found.last else len(found.tokens) - 1
        measured = t(
            "before.end_measured",
            word=plain(shown_word(found.tokens[most])),
            share=f"{found.share[most]:.1%}",
            first=plain(shown_word(found.tokens[far])),
            little=percent(found.share[far]),
        )
        cover.judge(str(most), measured)
        with cover.picture():
            _show_survivors(view, key="before_end")


def gates_part(view: View) -> None:
    """Show the gates as matrices, what is kept at each word as bars, and the experiment."""
    if not has_gates(view):
        return
    direction_place, sort_place = st.columns([3, 2], vertical_alignment="bottom")
    with direction_place:
        direction = choose_direction(view, name="before_direction")
    with sort_place:
        sort = switch(t("before.sort"), name="before_sort", default=True)
    answer = ask_once(gates_of_sentence, **view.asked, direction=direction)
    found, said = answer.value, strings("before")
    matrix_place, bars_place = st.columns([7, 4], gap="large")
    with matrix_place:
        figure = gates_figure(
            found.gates,
            found.names,
            found.tokens,
            said,
            strings("matrix"),
            kept=found.kept,
            sort=sort,
            version=f"{direction}|{sort}|{view.encoding.text}",
            note=section("before", "gates_note"),
        )
        show_matrix(figure, answer, key="before_gates")
        export_matrix(figure, answer, key="before_gates")
    with bars_place:
        st.markdown(f"**{t('before.kept_title')}**")
        kept = found.kept.mean(1)
        show_chart(
            kept_bars(found.tokens, kept, said),
            answer,
            key="before_kept",
            stem="before_kept",
            label=t("before.kept_title"),
        )
        _tell_extremes(view, found.tokens, kept)
    _end_experiment(view, direction)


def _blind_experiment(view: View) -> None:
    box = lazy_box(t("before.try_vector"), icon=":material/science:", key="before_vector_open")
    if box is None:
        return
    with box:
        if not has_attention(view):
            return
        options = {name: t(f"before.blind_{name}") for name in ("most", "half", "few")}
        question = section("before", "try_vector")
        cover = ask_first(question, options, name="before_blind", about=f"{view.bundle.name} {view.encoding.text}")
        found = ask_once(one_vector, **view.asked).value
        outcome = "most" if found.kept >= MOST else "half" if found.kept >= HALF else "few"
        measured = t("before.blind_measured", kept=f"{found.kept:.0%}")
        cover.judge(outcome, measured)
        with cover.picture():
            for name, words in (("looking", found.looking), ("blind", found.blind)):
                say(f"{t(f'before.{name}')} **{plain(words) or '…'}**")
            say(section("before", "vector_after"), small=True)


def vector_part(view: View) -> None:
    """Show how many numbers the summary has, what is left of each word in it, and the experiment."""
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
        tell(section("before", "share_note"), small=True)
    _blind_experiment(view)
