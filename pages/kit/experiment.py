"""Experiments on a page: a question comes before a measured answer, in a box that computes only once it is open.

The picture of an answer is always there, drawn from the answer itself. Until a person has answered or asked to be
shown, it is pale, its marks are blurred, and none of its words are there.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.kit.asking import Answer
from pages.kit.url import current, keep, read_switch, widget_key, written_switch
from pages.language import joined, t, with_minus

P = ParamSpec("P")
T = TypeVar("T")
SHOWN = "shown"
FIRST_WIDE = 0x2E80  # from here on, characters are about twice as wide
_covered: ContextVar[bool] = ContextVar("covered", default=False)
_pending: ContextVar[bool] = ContextVar("pending", default=False)
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


def experiment(
    key: str,
    heading: str | Callable[P, str] = "try.heading",
    *,
    icon: str = ":material/science:",
    opened: bool = False,
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Let what a function shows stand in a box that computes only once it is open (a decorator).

    Args:
        key, opened: as of lazy_box.
        heading: key of its words, or the words by what the function takes.
    """

    def decorate(function: Callable[P, None]) -> Callable[P, None]:
        @wraps(function)
        def show(*args: P.args, **named: P.kwargs) -> None:
            label = heading(*args, **named) if callable(heading) else t(heading)
            box = lazy_box(label, icon=icon, key=key, opened=opened)
            if box is not None:
                with box:
                    function(*args, **named)

        return show

    return decorate


def options_of(words: str, names: Iterable[str], **values: object) -> dict[str, str]:
    """Return the options of a question with their labels.

    Args:
        words: key of a label with {} in the place of its option.
        values: that are put into the labels.
    """
    return {name: t(words.format(name), **values) for name in names}


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


@contextmanager
def while_asked(open_question: bool) -> Iterator[None]:
    """Let what is shown inside know whether a question about the page, as a lecture's scene asks one, is open."""
    token = _pending.set(open_question)
    try:
        yield
    finally:
        _pending.reset(token)


def is_asked() -> bool:
    """Tell whether a question about the page is open."""
    return _pending.get()


def hidden(text: str) -> str:
    """Return a text as it is; under a cover, letters of no meaning in the place of its own."""
    if not covered():
        return text
    unset = text.replace("$", "")  # letters of no meaning are no formula
    return re.sub(r"[^\W_]", lambda letter: "口" if ord(letter[0]) >= FIRST_WIDE else "n", unset)


def say(text: str, *, at: DeltaGenerator | None = None, small: bool = False) -> None:
    """Write Markdown; what stands for it under a cover takes the same room and is not seen.

    Args:
        at: where; by default where the script is.
        small: as a caption.
    """
    place = at or st
    (place.caption if small else place.markdown)(hidden(text))


def say_number(label: str, number: str, *, at: DeltaGenerator | None = None, note: str | None = None) -> None:
    """Show a number under its name; under a cover, a dash in its place.

    Args:
        at: where; by default where the script is.
        note: what the number means, for those who ask.
    """
    (at or st).metric(label, "–" if covered() else with_minus(number), help=note)


@contextmanager
def as_old(answer: Answer[Any], *, key: str) -> Iterator[None]:
    """Let what is said inside be pale where it is said of an old answer.

    Args:
        key: unique on the page.
    """
    with st.container(key=f"{'old' if answer.old else 'new'}_{key}"):
        yield


@dataclass(frozen=True)
class Cover:
    """A question, what a person answered, and whether its picture is open.

    Args:
        name: of the question, in the URL.
        options: labels by option.
        guess: the option chosen; None where a person asked to be shown, or answered for something else.
        open: somebody answered, or asked to be shown.
        place: below the question, where the answer is judged, also after its picture was shown.
    """

    name: str
    options: Mapping[str, str]
    guess: str | None
    open: bool
    place: DeltaGenerator

    @contextmanager
    def picture(self, part: str = "") -> Iterator[None]:
        """Cover what is drawn inside, until the question is answered.

        Args:
            part: tells the covers of one question apart where it has several.
        """
        with st.container(key=f"cover_{self.name}{part}"), _under(covered() or not self.open, _asked.get()):
            _mark(self.open)
            yield

    def judge(self, outcome: str, sentence: str = "", *, of: Answer[Any] | None = None) -> None:
        """Compare the guess with what was measured, below the question, and say what that was.

        Args:
            outcome: the option that came true.
            sentence: what was measured, in Markdown.
            of: the answer that says so; of an old one it is pale.
        """
        measured = self.options.get(outcome, outcome).rstrip(".。")  # the sentence around it has its own full stop
        if self.guess is None:
            lead = t("try.shown", outcome=measured)
        else:
            lead = t("try.right") if self.guess == outcome else t("try.wrong", outcome=measured)
        words = joined(lead, sentence) if sentence else lead
        with self.place, nullcontext() if of is None else as_old(of, key=self.name):
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
        return Cover(name, options, None, above.open, st.container())
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
            word, icon, on_click, args = "cover", "visibility_off", _cover_again, (name, key)
        else:
            word, icon, on_click, args = "show", "visibility", _open, (name, True)
        st.button(
            t(f"try.{word}"),
            icon=f":material/{icon}:",
            type="tertiary",
            key=f"{'hide' if open_now else 'show'}_{name}",
            on_click=on_click,
            args=args,
        )
    keep(SHOWN, ".".join(sorted(_shown())), "")
    return Cover(name, options, guess if open_now else None, open_now, st.container())


def _shown() -> set[str]:
    """Return the questions whose pictures are open."""
    return set(re.findall(r"[a-z0-9_]{1,60}", str(current(SHOWN) or "")[:2_000]))


def _open(name: str, shown: bool) -> None:
    names = _shown() | {name} if shown else _shown() - {name}
    keep(SHOWN, ".".join(sorted(names)), "")


def _cover_again(name: str, key: str) -> None:
    st.session_state[key] = None
    _open(name, False)
