"""Waiting for answers that take longer than a moment: a box in their place, which looks again by itself."""

import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from html import escape
from typing import Any, Literal, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.kit.asking import Answer, ask_away, ask_once, forget_answer, question_of
from pages.kit.experiment import covered, say
from pages.kit.heavy import Job, pool
from pages.language import plain, stylesheet, t
from pages.serving.owners import person
from transformer_core.warm_process import ProcessDiedError

T = TypeVar("T")
Height = int | Literal["content"]  # in pixels
SECONDS_BETWEEN_LOOKS = 0.7
FAR_BEHIND, SECONDS_FAR_BEHIND = 2, 2.0  # from this place in the queue on, a page looks less often
SECONDS_AT_ONCE = 0.2  # so long a page waits before it shows a box
ROOM = 300
BRIEF = 40  # tokens: of so short a text, what runs the model once for each of them takes a moment
BUSY = 2.0  # times the least time, where half of the calls take that long


def watch(
    done: Callable[[], bool], show: Callable[[], object], *, key: str, seconds: float = SECONDS_BETWEEN_LOOKS
) -> None:
    """Show how far something is that is done elsewhere, and look again until it is done; then rerun the page.

    It stands in a container of the page. When a fragment runs again, Streamlit drops what it had not sent of it yet,
    and what follows it on the page would miss a place: "Bad delta path index".

    Args:
        key: unique on the page.
        seconds: between two looks.
    """
    waiting, again = not done(), False

    def look() -> None:
        nonlocal again
        if again and done() == waiting:  # not at first: a click that this run of the page answers would be lost
            st.rerun()
        again = True
        show()

    with st.container():
        st.fragment(look, run_every=seconds if waiting else None, key=key)()


def awaited(
    function: Callable[..., T],
    said: str,
    *,
    key: str,
    height: int = ROOM,
    brief: bool = False,
    stays: bool = False,
    **arguments: Any,
) -> Answer[T] | None:
    """Return an answer that takes longer than a moment; None while it is computed, with a box in its place.

    The box shows the place in the queue or how far it is, looks again by itself, and lets a person cancel.
    Where the last answer stays, the box lies over what is drawn of it, which is pale.

    Args:
        said: what is being done.
        key: unique on the page; one question is waited for there.
        height: of the box, about that of what comes.
        brief: it takes a moment only, for so little is asked; the page computes it itself.
        stays: meanwhile, return the last answer that came here of the same model, if any, as an old one; what is drawn
            of it follows in the container that this is called in, and is of its text: see View.of.
        arguments: as of ask.

    Raises:
        ValueError: as the function does.
    """
    if not stays:
        return ask_once(function, **arguments) if brief else _awaited(function, said, key, height, arguments)
    state, place = st.session_state, f"last {key}"
    last: Answer[T] | None = state.get(place)
    if last is not None and (last.function, last.arguments.get("bundle")) != (function, arguments.get("bundle")):
        last = None
    with st.container(key=f"slot_{key}"):
        if brief:
            answer = ask_once(function, **arguments)
        else:
            answer = _awaited(function, said, key, height if last is None else "content", arguments)
        if answer is None and last is not None:
            st.html(f'<i class="old"></i><style>{stylesheet("app_old")}</style>')
            return replace(last, old=True)
    if answer is not None:
        state[place] = answer
    return answer


def awaited_or_why(function: Callable[..., T], said: str, **asked: Any) -> Answer[T] | None:
    """Return an answer as awaited does; where it cannot be had, say why and return None."""
    try:
        return awaited(function, said, **asked)
    except ValueError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return None


def _awaited(
    function: Callable[..., T], said: str, key: str, height: Height, arguments: Mapping[str, Any]
) -> Answer[T] | None:
    """Return the answer, or show the box and return None."""
    state, question = st.session_state, question_of(function, arguments)
    stopped, waits = f"stopped {key}", f"waits {key}"
    if state.get(stopped) == question:
        _offer_again(t("await.cancelled"), lambda: state.pop(stopped, None), key=key, height=height)
        return None
    if "visit" not in state:
        state.visit = f"{person(st.context.headers.get('Cookie', ''), st.context.ip_address)} {secrets.token_hex(8)}"
    who = f"{state.visit} {key}"
    future = ask_away(function, who, **arguments)
    if state.get(waits) != (question, covered()):
        wait([future], SECONDS_AT_ONCE)
    state[waits] = question, covered()
    if future.done() and not future.cancelled():
        try:
            return Answer(future.result(), function, arguments)
        except ProcessDiedError:
            _offer_again(t("await.died"), lambda: forget_answer(function, arguments), key=key, height=height)
            return None

    def stop() -> None:
        state[stopped] = question
        job = ask_away(function, who, **arguments)
        if isinstance(job, Job):
            pool().leave(job, who)

    hidden_now = covered()
    watch(
        lambda: state.get(stopped) == question or ask_away(function, who, **arguments).done(),
        lambda: _show_waiting(ask_away(function, who, **arguments), said, None if hidden_now else stop, key, height),
        key=f"await_{key}",
        seconds=SECONDS_BETWEEN_LOOKS if _place(future) < FAR_BEHIND else SECONDS_FAR_BEHIND,
    )
    return None


def _place(future: Future[Any]) -> int:
    return pool().place(future) if isinstance(future, Job) else 0


def _offer_again(why: str, again: Callable[[], None], *, key: str, height: Height) -> None:
    """Show why an answer is not there, and a button that asks for it once more."""
    with _room(key, height):
        st.markdown(why, width="content")
        st.button(t("await.again"), icon=":material/play_arrow:", key=f"again_{key}", on_click=again)


def _show_waiting(future: Future[Any], said: str, stop: Callable[[], None] | None, key: str, height: Height) -> None:
    """Show how far an answer is; without `stop`, as under a cover, only that it is being computed."""
    place = _place(future)
    steps = future.steps if isinstance(future, Job) and not place else None
    said, share = t("await.queue", place=place) if place else said, ""
    if stop is None:
        said = ""
    elif steps is not None:
        said += f" {steps[0] / steps[1]:.0%}"
        share = f' value="{steps[0]}" max="{steps[1]}"'
    with _room(key, height):
        st.html(f'<div class="await"><progress aria-label="{escape(said)}"{share}></progress>{escape(said)}</div>')
        if stop is not None:
            st.button(t("await.cancel"), icon=":material/close:", type="tertiary", key=f"stop_{key}", on_click=stop)


def _room(key: str, height: Height) -> DeltaGenerator:
    return st.container(border=True, height=height, horizontal_alignment="center", gap="small", key=f"room_{key}")


def say_when_busy(spread: float) -> None:
    """Say that other work came between the calls of a measurement of times, where it did.

    Args:
        spread: as of Stopwatch.
    """
    if spread >= BUSY:
        say(t("await.busy", spread=f"{spread:.1f}"), small=True)
