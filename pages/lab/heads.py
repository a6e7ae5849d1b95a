"""Heads off: any number of heads, to zero or to their mean; and how few are enough."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from pages.figures.curves import Side, curves
from pages.lab.figures import on_off_board
from pages.lab.outcome import (
    MOST_AT_ONCE,
    ask_effect,
    can_answer,
    changed_in,
    choose_answer,
    live_outcome,
    show_effect,
    show_on_set,
    show_words,
)
from pages.ui.asking import Answer, ask_once
from pages.ui.charts import show_chart
from pages.ui.experiment import ask_first, lazy_box, say
from pages.ui.header import View
from pages.ui.language import strings, t
from pages.ui.live import Live, follow_finger
from pages.ui.matrix import Picture, export_picture, show_picture
from pages.ui.tour import begin_tour
from pages.ui.url import choose, chosen_option, current, keep, set_choice
from pages.ui.waiting import awaited
from transformer_core.analysis.attention.heads import Ablation
from transformer_core.analysis.lab.changes import Code, attentions
from transformer_core.analysis.lab.heads_off import ORDERS, Boards, FewHeads, few_heads, head_boards

OFF = re.compile(r"(encoder|decoder|cross)\.([0-9]{1,3})\.([0-9]{1,3})")
WAYS = ("zero", "mean")
LECTURE = "the_lab"
CLEARLY = 0.02  # of the areas, which lie between 0 and 1


def heads_off(view: View) -> set[tuple[str, int, int]]:
    """Return kind, layer and head of every head that is off."""
    layers, heads, kinds = view.bundle.config.n_layers, view.bundle.config.n_heads, attentions(view.bundle)
    found = OFF.findall(str(current("lab_off") or "")[:20_000])
    off = {(kind, int(layer), int(head)) for kind, layer, head in found}
    return {one for one in off if one[0] in kinds and one[1] < layers and one[2] < heads}


def chosen_way() -> Ablation:
    """Return what a head that is off is replaced by."""
    return "zero" if chosen_option("lab_how", WAYS, default="zero") == "zero" else "mean"


def changes_of_heads(view: View) -> tuple[Code, ...]:
    """Return the heads that are off as changes."""
    scopes, how = attentions(view.bundle), chosen_way()
    return tuple(("head", scopes[kind][layer], head, how) for kind, layer, head in sorted(heads_off(view)))


def _keep(off: set[tuple[str, int, int]]) -> None:
    said = "-".join(f"{kind}.{layer}.{head}" for kind, layer, head in sorted(off))
    set_choice("lab_off", said)
    keep("lab_off", said, "")


def _set(off: str) -> None:
    """Keep which heads are off, as the board names them."""
    _keep({(kind, int(layer), int(head)) for kind, layer, head in OFF.findall(off[:20_000])})


def _kind(view: View) -> str:
    """Return the kind of attention whose board is shown."""
    kinds = tuple(attentions(view.bundle))
    return chosen_option("lab_kind", kinds, default=kinds[0])


def _boards_asked(view: View) -> dict[str, Any]:
    return changed_in(view, how=chosen_way())


def _board(view: View, answer: Answer[Boards]) -> Picture:
    off, kind = heads_off(view), _kind(view)
    version = f"{sorted(off)}|{chosen_way()}|{kind}|{view.encoding.text}"
    words, ui = strings("lab_heads"), strings("matrix") | strings("lab_board")
    board = on_off_board(answer.value.change[kind], kind, off, words, ui, version=version)
    return Picture(f"lab_board_{kind}", board, answer, {"kind": kind}, pins=False)


def live_board(view: View) -> Live:
    """Return the outcome without the heads that are off, and the board; of a large model the outcome alone."""
    live = live_outcome(view, ask_effect(view, changes_of_heads(view)).value)
    if view.bundle.n_parameters > MOST_AT_ONCE:
        return live
    return replace(live, pictures=(_board(view, ask_once(head_boards, **_boards_asked(view))),))


def show_heads_off(view: View) -> None:
    """Show the board of one kind of attention, the outcome without the heads that are off, and what few heads keep."""
    kinds = attentions(view.bundle)
    if not kinds:
        st.info(t("lab.no_heads"), icon=":material/info:")
        return
    if not can_answer(view):
        return
    controls = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    with controls:
        choose_answer(view)
        choose(t("lab.how"), {way: t(f"lab.how_{way}") for way in WAYS}, name="lab_how", default="zero")
        if len(kinds) > 1:
            names = {one: t(f"lab.kind_{one}") for one in kinds}
            choose(t("lab.kind"), names, name="lab_kind", default=next(iter(kinds)))
        if st.button(t("lab.six"), icon=":material/tour:", type="tertiary", key="lab_six"):
            begin_tour(LECTURE)
    off = heads_off(view)
    effect = ask_effect(view, changes_of_heads(view))
    named = ", ".join(f"{one} {layer}.{head}" for one, layer, head in sorted(off)[:6]) + (" …" if len(off) > 6 else "")
    show_effect(view, effect, what=t("lab.what_heads", heads=named, how=t(f"lab.how_{chosen_way()}")), part="heads")
    _show_board(view, off)
    show_words(view, effect)
    show_on_set(view, changes_of_heads(view), key="heads")
    _show_few(view)


def _show_board(view: View, off: set[tuple[str, int, int]]) -> None:
    answer: Answer[Boards] | None = awaited(
        head_boards,
        t("lab.reading_heads"),
        key="lab_boards",
        brief=view.bundle.n_parameters <= MOST_AT_ONCE,
        **_boards_asked(view),
    )
    if answer is None:
        return
    kind, picture = _kind(view), _board(view, answer)
    show_picture(picture, on_turn=_set)
    followed: dict[str, tuple[Sequence[str], str]] = {"lab_how": (WAYS, chosen_way())}
    followed |= {name: ((), str(current(name) or "")) for name in ("lab_off", "lab_answer", "lab_target", "lab_kind")}
    follow_finger("lab", "heads", view, choices={name: one for name, one in followed.items() if one[1]})
    layers, heads = answer.value.change[kind].shape
    with st.container(horizontal=True, gap="small"):
        icon = ":material/restart_alt:"
        st.button(t("lab.all_on"), icon=icon, key="lab_all_on", on_click=_keep, args=(set(),), disabled=not off)
        turned = off ^ {(kind, layer, head) for layer, head in np.ndindex(layers, heads)}
        st.button(t("lab.turn"), icon=":material/invert_colors:", key="lab_turn", on_click=_keep, args=(turned,))
        export_picture(picture)
        here = sum(one == kind for one, _, _ in off)
        elsewhere = t("lab.off_elsewhere", count=len(off) - here) if len(off) > here else ""
        st.caption(t("lab.off_count", off=here, all=layers * heads) + elsewhere)


def _show_few(view: View) -> None:
    box = lazy_box(t("lab.few"), icon=":material/filter_alt:", key="lab_few")
    if box is None:
        return
    with box:
        on = choose(
            t("lab.few_on"), {"text": t("lab.few_text"), "set": t("lab.few_set")}, name="lab_on", default="text"
        )
        options = {name: t(f"lab.few_{name}") for name in (*ORDERS, "alike")}
        cover = ask_first(t("lab.few_ask"), options, name="lab_orders", about=f"{view.bundle.name} {on}")
        with cover.picture():
            answer = awaited(few_heads, t("lab.reading_heads"), key="lab_few", **_boards_asked(view), on=on)
            if answer is not None:
                _draw_few(answer, on)
        if answer is None:
            return
        found: FewHeads = answer.value
        best = np.argsort(-found.areas)
        apart = (found.areas[best[0]] - found.areas[best[1]]) / max(float(found.kept[0, 0]), 1e-9)
        outcome = ORDERS[int(best[0])] if apart > CLEARLY else "alike"
        cover.judge(outcome, t("lab.few_measured", **_areas(found), **_enough(found), all=int(found.off[-1])))


def _areas(found: FewHeads) -> dict[str, str]:
    return {f"area_{name}": f"{area:.3f}" for name, area in zip(ORDERS, found.areas, strict=True)}


def _enough(found: FewHeads) -> dict[str, str]:
    return {f"enough_{name}": str(int(count)) for name, count in zip(ORDERS, found.enough, strict=True)}


def _draw_few(answer: Answer[FewHeads], on: str) -> None:
    found = answer.value
    series = {t(f"lab.few_{name}"): kept for name, kept in zip(ORDERS, found.kept, strict=True)}
    up = Side(t(f"lab.few_up_{on}"), domain=(0.0, max(1.0, float(found.kept.max()))), format=".0%")
    chart = curves(found.off, series, across=Side(t("lab.few_across")), up=up, height=360)
    show_chart(chart, answer, key="lab_few_curves", stem="lab_few_heads", label=t("lab.few"))
    say(t("lab.few_note", passes=f"{found.passes:,}"), small=True)
