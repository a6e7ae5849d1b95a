"""Boxes that compute only once they are open, and the question that comes before a measured answer.

The picture of an answer is always there, drawn from the answer itself. Until a person has answered or asked to be
shown, it is pale, its marks are blurred, and none of its words are there.
"""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from html import escape
from typing import Any, Literal, ParamSpec, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.asking import Answer, ask_away, ask_once, forget_answer, question_of
from pages.ui.box_styles import OLD
from pages.ui.heavy import Job, ProcessDiedError, pool
from pages.ui.language import t
from pages.ui.url import current, keep, read_switch, widget_key, written_switch
from pages.ui.who import person

P = ParamSpec("P")
T = TypeVar("T")
Height = int | Literal["content"]  # in pixels
SECONDS_BETWEEN_LOOKS = 0.7
FAR_BEHIND, SECONDS_FAR_BEHIND = 2, 2.0  # from this place in the queue on, a page looks less often
SECONDS_AT_ONCE = 0.2  # so long a page waits before it shows a box
ROOM = 300
BRIEF = 40  # tokens: of so short a text, what runs the model once for each of them takes a moment
BUSY = 2.0  # times the least time, where half of the calls take that long
SHOWN = "shown"
FIRST_WIDE = 0x2E80  # from here on, characters are about twice as wide
_covered: ContextVar[bool] = ContextVar("covered", default=False)
_asked: ContextVar["Asked | None"] = ContextVar("asked", default=None)


def lazy_box(label: str, *, icon: str, key: str, opened: bool = False) -> DeltaGenerator | None:
    """Show a box whose state is in the URL; None while it is closed.

    Args:
        key: names the state in the URL; boxes of one name on several pages are open or closed together.
        opened: whether it is open at first.
    """
    widget, asked = widget_key(key), read_switch(current(key))
    was = st.session_state.get(widget, opened if asked is None else asked)
    st.session_state[widget] = was  # to Streamlit, a box with other words on it is another one
    box = st.expander(label, icon=icon, key=widget, on_change="rerun")
    keep(key, written_switch(bool(box.open)), written_switch(opened))
    return box if box.open else None


def covered() -> bool:
    """Tell whether what is drawn now lies under a cover."""
    return _covered.get()


@contextmanager
def _under(under: bool, asked: "Asked | None") -> Iterator[None]:
    """Cover what is shown inside, or not, and let a question about the whole part be asked of it."""
    tokens = _covered.set(under), _asked.set(asked)
    try:
        yield
    finally:
        _covered.reset(tokens[0])
        _asked.reset(tokens[1])


def _mark(is_open: bool) -> None:
    """Tell the entry script's style whether a container is covered."""
    st.html(f'<i class="{"open" if is_open else "covered"}"></i>')


def hidden(text: str) -> str:
    """Return a text as it is; under a cover, letters of no meaning in the place of its own."""
    if not covered():
        return text
    unset = text.replace("$", "")  # letters of no meaning are no formula
    return re.sub(r"[^\W_]", lambda letter: "口" if ord(letter[0]) >= FIRST_WIDE else "n", unset)


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
            st.html(f'<i class="old"></i><style>{OLD}</style>')
            return replace(last, old=True)
    if answer is not None:
        state[place] = answer
    return answer


@contextmanager
def as_old(answer: Answer[Any], *, key: str) -> Iterator[None]:
    """Let what is said inside be pale where it is said of an old answer.

    Args:
        key: unique on the page.
    """
    with st.container(key=f"{'old' if answer.old else 'new'}_{key}"):
        yield


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


def say(text: str, *, at: DeltaGenerator | None = None, small: bool = False) -> None:
    """Write Markdown; what stands for it under a cover takes the same room and is not seen.

    Args:
        at: where; by default where the script is.
        small: as a caption.
    """
    place = at or st
    (place.caption if small else place.markdown)(hidden(text))


def say_when_busy(spread: float) -> None:
    """Say that other work came between the calls of a measurement of times, where it did.

    Args:
        spread: as of Stopwatch.
    """
    if spread >= BUSY:
        say(t("await.busy", spread=f"{spread:.1f}"), small=True)


def say_number(label: str, number: str, *, at: DeltaGenerator | None = None, note: str | None = None) -> None:
    """Show a number under its name; under a cover, a dash in its place.

    Args:
        at: where; by default where the script is.
        note: what the number means, for those who ask.
    """
    (at or st).metric(label, "–" if covered() else number, help=note)


@dataclass(frozen=True)
class Cover:
    """A question, what a person answered, and whether its picture is open.

    Args:
        name: of the question, in the URL.
        options: labels by option.
        guess: the option chosen; None where a person asked to be shown, or answered for something else.
        open: somebody answered, or asked to be shown.
    """

    name: str
    options: Mapping[str, str]
    guess: str | None
    open: bool

    @contextmanager
    def picture(self, part: str = "") -> Iterator[None]:
        """Cover what is drawn inside, until the question is answered.

        Args:
            part: tells the covers of one question apart where it has several.
        """
        with st.container(key=f"cover_{self.name}{part}"), _under(covered() or not self.open, _asked.get()):
            _mark(self.open)
            yield

    def judge(self, outcome: str, sentence: str = "") -> None:
        """Compare the answer with what was measured, in a line of its own, and say what that was.

        Args:
            outcome: the option that came true.
            sentence: what was measured, in Markdown.
        """
        measured = self.options.get(outcome, outcome).rstrip(".。")  # the sentence around it has its own full stop
        if self.guess is None:
            lead = t("try.shown", outcome=measured)
        else:
            lead = t("try.right") if self.guess == outcome else t("try.wrong", outcome=measured)
        words = f"{lead}\n\n{sentence}" if sentence else lead
        if covered():
            say(words)
            return
        with self.picture("_judged"):
            say(words)


@dataclass(frozen=True)
class Asked:
    """A question about all that a part computes, which is asked elsewhere, as a lecture's scene does.

    Args:
        name: of the question, as of ask_first; it stands in the place of those that the part would ask.
        left_open: names of the figures that do not answer it.
    """

    name: str
    left_open: frozenset[str]

    @property
    def open(self) -> bool:
        """Whether somebody answered, or asked to be shown."""
        return self.name in _shown()

    @contextmanager
    def about(self, place: str) -> Iterator[None]:
        """Cover all that is computed inside but the figures that stay open; the controls can be used.

        Args:
            place: unique on the page.
        """
        with st.container(key=f"asked_{place}"), _under(not self.open, self):
            _mark(self.open)
            yield


def fragment(function: Callable[P, T]) -> Callable[P, T]:
    """Let a part run again alone, as st.fragment does, under the covers and the question that it was first shown under.

    Args:
        function: shows the part.
    """

    @wraps(function)
    def show(*args: P.args, **named: P.kwargs) -> T:
        under, asked = covered(), _asked.get()

        @st.fragment
        @wraps(function)
        def again() -> T:
            with _under(under, asked):
                return function(*args, **named)

        return again()

    return show


@contextmanager
def figure(name: str, key: str) -> Iterator[None]:
    """Show a figure, which stays open where a question about the whole part leaves it so.

    Args:
        name: by which a lecture knows it; key: unique on the page.
    """
    asked = _asked.get()
    if asked is None or name not in asked.left_open:
        yield
        return
    with st.container(key=f"leftopen_{key}"), _under(False, asked):
        yield


def ask_first(question: str, options: Mapping[str, str], *, name: str, about: str = "") -> Cover:
    """Ask what a person expects before they see it: one tap answers, another one shows.

    Args:
        question: in Markdown.
        options: labels by option.
        name: of the question, the same at every run and one on all pages.
        about: what it is asked about; once the picture is open, an answer for something else is judged no more.
    """
    above = _asked.get()
    if above is not None:
        return Cover(name, options, None, above.open)
    key = f"predict {name} {about}"
    open_now, given = name in _shown(), st.session_state.get(key)
    with st.container(key=f"question_{name}"):
        st.markdown(question)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"ask_{name}"):
        guess = st.pills(
            question,
            list(options),
            default=given if given in options else None,
            format_func=options.__getitem__,
            key=key,
            on_change=_open,
            args=(name, True),
            label_visibility="collapsed",
            wrap=True,
        )
        if open_now:
            st.button(
                t("try.cover"),
                icon=":material/visibility_off:",
                type="tertiary",
                key=f"hide_{name}",
                on_click=_cover_again,
                args=(name, key),
            )
        else:
            st.button(
                t("try.show"),
                icon=":material/visibility:",
                type="tertiary",
                key=f"show_{name}",
                on_click=_open,
                args=(name, True),
            )
    keep(SHOWN, ".".join(sorted(_shown())), "")
    return Cover(name, options, guess if open_now else None, open_now)


def _shown() -> set[str]:
    """Return the questions whose pictures are open."""
    return set(re.findall(r"[a-z0-9_]{1,60}", str(current(SHOWN) or "")[:2_000]))


def _open(name: str, shown: bool) -> None:
    names = _shown() | {name} if shown else _shown() - {name}
    keep(SHOWN, ".".join(sorted(names)), "")


def _cover_again(name: str, key: str) -> None:
    st.session_state[key] = None
    _open(name, False)
