"""Heads off: any number of heads, to zero, to their mean or to what they write for another text; how few are enough."""

import re
from contextlib import suppress
from dataclasses import replace
from textwrap import shorten
from typing import Any, get_args

import numpy as np
import streamlit as st

from pages.figures.curves import Side, curves
from pages.hall.tour import begin_tour
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Kept, Slider, Values
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, export_picture, show_picture
from pages.kit.number_format import minus
from pages.kit.text_set import show_set
from pages.kit.waiting import awaited, awaited_or_why
from pages.lab.figures import head_scatter, on_off_board
from pages.lab.outcome import (
    ANSWERS,
    MOST_AT_ONCE,
    ask_effect,
    can_answer,
    live_outcome,
    measured,
    show_answer,
    show_effect,
    show_on_set,
    show_words,
    signed_nats,
)
from pages.language import joined, plain, strings, t
from pages.room import Part
from transformer_core.analysis.lab.changes import Code
from transformer_core.analysis.lab.heads_off import (
    ORDERS,
    Boards,
    FewHeads,
    LabAblation,
    TwoAblations,
    attentions,
    compare_ablations,
    drawn_texts,
    few_heads,
    head_boards,
)
from transformer_core.analysis.lab.intervention import Effect, resampled
from transformer_core.analysis.lab.text_sets import Among
from transformer_core.analysis.rank_correlation import agreement_word

LECTURE = "the_lab"
ADDS = 0.1  # of the larger change
CLEARLY = 0.02  # of the areas, which lie between 0 and 1


Heads = set[tuple[str, int, int]]  # the kind, layer and head of each


def heads_in(text: str) -> Heads:
    """Return the heads that a text names, as the board and the link have them."""
    found = re.findall(r"(encoder|decoder|cross)\.([0-9]{1,3})\.([0-9]{1,3})", text[:20_000])
    return {(kind, int(layer), int(head)) for kind, layer, head in found}


def _heads_of(view: View, text: str) -> Heads:
    """Return the heads that a text names and the model has."""
    layers, heads, kinds = view.bundle.config.n_layers, view.bundle.config.n_heads, attentions(view.bundle)
    return {one for one in heads_in(text) if one[0] in kinds and one[1] < layers and one[2] < heads}


def _drawn_from(view: View) -> int:
    """Return how many other texts there are to resample from; 1 where none is asked for, or none can be read."""
    if HOW.read(view) == "resample":
        with suppress(ValueError):  # told where the answer is
            return len(drawn_texts(view.bundle))
    return 1


HOW = Choice[LabAblation]("lab_how", get_args(LabAblation), label="lab.how", words="lab.how_{}")
DRAW = Slider("lab_draw", 1, _drawn_from, 1, label="lab.draw")
KIND = Choice("lab_kind", lambda view: tuple(attentions(view.bundle)), label="lab.kind", words="lab.kind_{}")
OFF = Kept("lab_off", parse=_heads_of)
WAY = Choice[LabAblation]("lab_way", ("mean", "resample"), label="lab.way", words="lab.how_{}")
FEW_ON = Choice("lab_on", ("text", "set"), label="lab.few_on", words="lab.few_{}")


def _changes(view: View, values: Values) -> tuple[Code, ...]:
    """Return the heads that are off as changes."""
    scopes, how = attentions(view.bundle), (values[HOW], values[DRAW] - 1)
    return tuple(("head", scopes[kind][layer], head, *how) for kind, layer, head in sorted(values[OFF]))


def _keep(off: Heads) -> None:
    OFF.set("-".join(f"{kind}.{layer}.{head}" for kind, layer, head in sorted(off)))


def _asked(view: View, values: Values) -> dict[str, Any]:
    how = {"how": values[HOW], "draw": values[DRAW] - 1}
    return {"prompt": view.prompt, "answer": measured(view, values), **how}


def _board(view: View, values: Values, answer: Answer[Boards]) -> Picture:
    off, kind = values[OFF], values[KIND]
    version = f"{sorted(off)}|{values[HOW]}|{values[DRAW]}|{kind}|{view.encoding.text}"
    board = on_off_board(answer.value.change[kind], kind, off, strings("lab_heads"), strings("lab_board"))
    return Picture(f"lab_board_{kind}", board, answer, {"kind": kind}, pins=False, version=version)


def _picture(view: View, values: Values) -> Live:
    """Return the outcome without the heads that are off, and the board; of a large model the outcome alone."""
    live = live_outcome(view, ask_effect(view, _changes(view, values), measured(view, values)).value)
    if view.bundle.n_parameters > MOST_AT_ONCE:
        return live
    return replace(live, pictures=(_board(view, values, ask_once(head_boards, **_asked(view, values))),))


def _show(view: View) -> None:
    """Show the board of one kind of attention, the outcome without the heads that are off, and what few heads keep."""
    kinds = attentions(view.bundle)
    if not kinds:
        st.info(t("lab.no_heads"), icon=":material/info:")
        return
    if not can_answer(view):
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        show_answer(view)
        HOW.show()
        DRAW.show(view)
        if len(kinds) > 1:
            KIND.show(view)
        if st.button(t("lab.six"), icon=":material/tour:", type="tertiary", key="lab_six"):
            begin_tour(LECTURE)
    values = HEADS.values(view)
    off, changes = values[OFF], _changes(view, values)
    try:
        effect = ask_effect(view, changes, measured(view, values))
    except ValueError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    named = ", ".join(head_name(*one) for one in sorted(off)[:6]) + (" …" if len(off) > 6 else "")
    show_effect(view, effect, what=t("lab.what_heads", heads=named, how=t(f"lab.how_{values[HOW]}")), part="heads")
    _show_board(view, values, effect.value)
    if values[HOW] == "resample":
        _show_draws(view, values, changes)
    show_words(view, effect)
    among = show_set(view)
    show_on_set(view, changes, among, key="heads")
    _show_few(view, _asked(view, values), among)
    _show_ways(view, {"prompt": view.prompt, "answer": measured(view, values)})


def adds_up(together: float, apart: float) -> str:
    """Return how what several changes do together compares with the sum of what each does alone, in nats.

    "adds" where both differ by at most ADDS of the larger one, else "more" or "less".
    """
    if abs(together - apart) <= ADDS * max(abs(together), abs(apart)) + 1e-12:
        return "adds"
    return "more" if abs(together) > abs(apart) else "less"


def _show_board(view: View, values: Values, effect: Effect) -> None:
    answer: Answer[Boards] | None = awaited(
        head_boards,
        t("lab.reading_heads"),
        key="lab_boards",
        brief=view.bundle.n_parameters <= MOST_AT_ONCE,
        **_asked(view, values),
    )
    if answer is None:
        return
    off, kind, picture = values[OFF], values[KIND], _board(view, values, answer)
    show_picture(picture, on_turn=lambda text: _keep(heads_in(text)))
    HEADS.follow(view)
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
    if len(off) > 1:
        apart = sum(float(answer.value.change[one][layer, head]) for one, layer, head in off)
        together = effect.after - effect.before
        numbers = {"apart": signed_nats(apart), "together": signed_nats(together)}
        say(t(f"lab.together_{adds_up(together, apart)}", count=len(off), **numbers), small=True)


def _show_draws(view: View, values: Values, changes: tuple[Code, ...]) -> None:
    """Say which text the heads that are off write for, and what they do over all such texts."""
    drawn = shorten(drawn_texts(view.bundle)[values[DRAW] - 1], 100, placeholder=" …")
    text = t("lab.drawn", number=values[DRAW], text=plain(drawn))
    asked = {"prompt": view.prompt, "changes": changes, "answer": measured(view, values)}
    brief = view.bundle.n_parameters <= MOST_AT_ONCE
    answer = awaited(resampled, t("lab.reading_heads"), key="lab_draws", brief=brief, **asked) if changes else None
    if answer is not None:
        found = answer.value.moved
        numbers = {"mean": signed_nats(found.moved), "low": signed_nats(found.low), "high": signed_nats(found.high)}
        text = joined(text, t("lab.over_draws", count=_drawn_from(view), **numbers))
    say(text, small=True)


@experiment("lab_ways", "lab.ways", icon=":material/scatter_plot:")
def _show_ways(view: View, asked: dict[str, Any]) -> None:
    """Compare heads set to zero with heads set to their mean, or resampled, one by one."""
    asked = asked | {"how": (how := WAY.show())}
    options = options_of("lab.ways_{}", ("close", "loose", "none"))
    cover = ask_first(t("lab.ways_ask"), options, name="lab_ways", about=f"{view.bundle.name} {how}")
    with cover.picture():
        answer = awaited_or_why(compare_ablations, t("lab.reading_heads"), key="lab_ways", **asked)
        if answer is not None:
            found: TwoAblations = answer.value
            names = [head_name(*head) for head in found.heads]
            words = strings("lab_ways") | {"up": t(f"lab.how_{how}")}
            chart = head_scatter(found.zero, found.other, names, words, bounds=found.bounds)
            show_chart(chart, answer, key="lab_ways_dots", stem="lab_zero_and_mean", label=t("lab.ways"))
            say(t(f"lab.ways_note_{how}", count=found.draws), small=True)
    if answer is None:
        return
    if not np.isfinite(found.r):
        st.info(t("lab.ways_flat"), icon=":material/info:")
        return
    apart = int(np.abs(found.zero - found.other).argmax())
    numbers = {
        "r": minus(f"{found.r:+.2f}"),
        "without": minus(f"{found.r_without:+.2f}") if np.isfinite(found.r_without) else "–",
        "rho": minus(f"{found.order.rho:+.2f}"),
        "zero": minus(f"{found.zero[apart]:+.2f}"),
        "other": minus(f"{found.other[apart]:+.2f}"),
        "how": t(f"lab.how_{how}"),
    }
    most, other = (head_name(*found.heads[place]) for place in (found.most, apart))
    cover.judge(agreement_word(found.r), t("lab.ways_said", count=len(names), most=most, head=other, **numbers))


def head_name(kind: str, layer: int, head: int) -> str:
    """Return a head's name, as in ``encoder 0.2``."""
    return f"{kind} {layer}.{head}"


@experiment("lab_few", "lab.few", icon=":material/filter_alt:")
def _show_few(view: View, asked: dict[str, Any], among: Among) -> None:
    on = FEW_ON.show()
    if on == "set":
        if among is None:
            st.caption(t("lab.set_first"))
            return
        asked = asked | {"among": among}
    options = options_of("lab.few_{}", (*ORDERS, "alike"))
    cover = ask_first(t("lab.few_ask"), options, name="lab_orders", about=f"{view.bundle.name} {on}")
    with cover.picture():
        answer = awaited_or_why(few_heads, t("lab.reading_heads"), key="lab_few", **asked, on=on)
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


HEADS = Part("lab", "heads", _show, _picture, (HOW, DRAW, KIND, OFF, *ANSWERS), sites=None)
