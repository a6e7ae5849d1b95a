"""Controls: one object holds a control's name in the URL, what it can hold, its default and its words.

It shows its widget (show); it reads what that holds, from a session or from the link of a live picture (read); and it
says what a browser sends in its place (written). What depends on the page, such as the heads of a model, is a function
of the view. A control that was left at its default follows it, as where that is the last token of a text.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

import streamlit as st

from pages.kit.refusals import last_read, read_and_note
from pages.kit.url import (
    chosen,
    current,
    forget,
    held,
    keep,
    listed,
    read_number,
    read_switch,
    set_choice,
    whole_number,
    written_switch,
)
from pages.kit.view import View
from pages.language import t
from pages.link import linked

T = TypeVar("T")
N = TypeVar("N", int, float)
Of = T | Callable[[Any], T]  # itself, or by the view
MOST_BUTTONS = 16  # more options stand in a list
MOST_SEED = 9_999


def _of(value: Any, view: View | None) -> Any:
    return value(view) if callable(value) else value


def _words(label: Of[str], view: View | None) -> str:
    return label(view) if callable(label) else t(label)


@dataclass(frozen=True)
class Control(Generic[T]):
    """What all controls have.

    Args:
        name: in the URL, and from page to page.
    """

    name: str
    follows: ClassVar[Literal["choices", "sliders", "boxes"]] = "choices"  # how a browser finds what is chosen

    def read(self, view: View | None = None) -> T:
        """Return what is chosen, without the widget; what a link asks for and cannot be is refused on the page."""
        raise NotImplementedError

    def show(self, view: View | None = None) -> T:
        """Show the widget and return what it holds."""
        raise NotImplementedError

    def default_of(self, view: View | None = None) -> T:
        """Return what is chosen at first."""
        raise NotImplementedError

    def written(self, view: View | None = None) -> str:
        """Return what is chosen as a link has it; "" for the default, which may be another for another text."""
        value = self.read(view)
        return "" if value == self.default_of(view) else self.link_of(value)

    def link_of(self, value: T) -> str:
        """Return a value as a link has it."""
        return str(value)

    def options_of(self, view: View | None = None) -> Sequence[str]:
        """Return the options in the order in which they are shown; none where the browser cannot tell them."""
        return ()

    def take(self, value: T, view: View | None = None) -> None:
        """Choose a value in place of the widget; only in a callback."""
        forget(self.name)
        keep(self.name, self.link_of(value), self.link_of(self.default_of(view)))

    def forget(self) -> None:
        """Return to the default; only in a callback."""
        forget(self.name)


@dataclass(frozen=True)
class Choice(Control[T]):
    """One of a few options, as buttons or, where there are many, in a list.

    Args:
        options: as a link has them; or labels by option.
        label: key of the words above it, or the words by the view.
        words: key of an option's words with {} in its place; without it, an option is its own word.
        default: the first by default.
        kind: makes the value of an option.
        form: how it is shown; steps are a slider over the options.
        most_buttons: of more options there is a list.
        collapsed: hide the label, which screen readers still get.
        always: a link names the default, too, since another browser would choose otherwise.
    """

    options: Of[Sequence[object] | Mapping[str, str]]
    label: Of[str] = field(kw_only=True)
    words: str = field(default="", kw_only=True)
    default: Of[object] = field(default=None, kw_only=True)
    kind: Callable[[str], T] = field(default=cast(Callable[[str], T], str), kw_only=True)
    form: Literal["buttons", "list", "steps"] = field(default="buttons", kw_only=True)
    most_buttons: int = field(default=MOST_BUTTONS, kw_only=True)
    collapsed: bool = field(default=False, kw_only=True)
    always: bool = field(default=False, kw_only=True)

    def options_of(self, view: View | None = None) -> list[str]:
        return [str(option) for option in _of(self.options, view)]

    def _default(self, view: View | None, names: list[str]) -> str:
        default = _of(self.default, view)
        return names[0] if default is None else str(default)

    def default_of(self, view: View | None = None) -> T:
        return self.kind(self._default(view, self.options_of(view)))

    def _arguments(self, view: View | None, names: list[str]) -> dict[str, Any]:
        """Return what url.chosen takes."""

        def read(asked: Any) -> str | None:
            return asked if asked in names else None

        return {"default": self._default(view, names), "read": read, "options": listed(names)}

    def read(self, view: View | None = None) -> T:
        return self.kind(chosen(self.name, **self._arguments(view, self.options_of(view))))

    def show(self, view: View | None = None) -> T:
        options = _of(self.options, view)
        names = [str(option) for option in options]
        labels = {name: t(self.words.format(name)) if self.words else name for name in names}
        labels |= options if isinstance(options, Mapping) else {}
        label, arguments = _words(self.label, view), self._arguments(view, names)
        key, value = held(self.name, **arguments)
        hidden = "collapsed" if self.collapsed else "visible"
        if self.form == "steps":
            taken = st.select_slider(label, names, value, format_func=labels.__getitem__, key=key)
        elif self.form == "list" or len(names) > self.most_buttons:
            # In the browser a list holds the label that it shows: where labels change, it must be told of the choice.
            if st.session_state.get(f"labels of {key}") != labels:
                st.session_state[key] = value
            st.session_state[f"labels of {key}"] = labels
            place = names.index(value)
            taken = st.selectbox(label, names, place, format_func=labels.__getitem__, key=key, label_visibility=hidden)
        else:
            taken = st.segmented_control(
                label,
                names,
                default=value,
                format_func=labels.__getitem__,
                required=True,
                key=key,
                label_visibility=hidden,
                wrap=True,
            )
        taken = arguments["default"] if taken is None else taken
        keep(self.name, taken, "" if self.always else arguments["default"])
        return self.kind(taken)


def _numbered(name: str, count: str, label: str, in_list: bool) -> Choice[int]:
    """Return the choice of one of the parts that a model's configuration counts; it follows from page to page."""

    def numbers(view: View) -> range:
        return range(getattr(view.bundle.config, count))

    return Choice(name, numbers, label=label, kind=int, form="list" if in_list else "buttons")


def layer_control(label: str, *, in_list: bool = False) -> Choice[int]:
    """Return the choice of a layer."""
    return _numbered("layer", "n_layers", label, in_list)


def head_control(label: str, *, in_list: bool = False) -> Choice[int]:
    """Return the choice of a head of a layer."""
    return _numbered("head", "n_heads", label, in_list)


def token_control(name: str, label: str) -> Choice[int]:
    """Return the choice of a token of the text by its place."""

    def tokens(view: View) -> dict[str, str]:
        return {str(place): f"{place} · {token}" for place, token in enumerate(view.encoding.labels)}

    return Choice(name, tokens, label=label, kind=int, form="list")


@dataclass(frozen=True)
class Slider(Control[N]):
    """A number between two ends; nothing is shown where there is only one.

    Args:
        low, high, default, step: the ends, where it stands at first, and from one value to the next.
        label: key of the words above it, or the words by the view.
        kind: int or float.
        format: of the number shown, as of any slider of Streamlit.
    """

    low: Of[N]
    high: Of[N]
    default: Of[N]
    step: float = field(default=1, kw_only=True)
    label: Of[str] = field(kw_only=True)
    kind: type[N] = field(default=cast(type[N], int), kw_only=True)
    format: str | None = field(default=None, kw_only=True)
    follows: ClassVar[Literal["choices", "sliders", "boxes"]] = "sliders"

    def ends(self, view: View | None = None) -> tuple[N, N]:
        """Return both ends."""
        return self.kind(_of(self.low, view)), self.kind(_of(self.high, view))

    def default_of(self, view: View | None = None) -> N:
        return self.kind(_of(self.default, view))

    def _arguments(self, view: View | None) -> dict[str, Any]:
        """Return what url.chosen takes: how a value is read, and what stands in its place where that is outside."""
        (low, high), default = self.ends(view), self.default_of(view)

        def read(asked: Any) -> N | None:
            if self.kind is not int:
                return cast("N | None", read_number(asked, low, high))
            value = whole_number(asked, int(high), least=int(low))
            return None if value is None or (value - low) % self.step else cast(N, value)

        def nearest(asked: Any) -> N:
            value = read_number(asked, -math.inf, math.inf)
            inside = default if value is None else min(max(value, low), high)
            return self.kind(inside - (inside - low) % self.step if self.kind is int else inside)

        return {"default": default, "read": read, "options": f"{low} … {high}", "instead": nearest}

    def read(self, view: View | None = None) -> N:
        low, high = self.ends(view)
        return chosen(self.name, **self._arguments(view)) if low < high else low

    def show(self, view: View | None = None) -> N:
        low, high = self.ends(view)
        if low >= high:
            return low
        key, value = held(self.name, **self._arguments(view))
        step = self.kind(self.step)
        value = st.slider(_words(self.label, view), low, high, value, step, key=key, format=self.format)
        keep(self.name, str(value), str(self.default_of(view)))
        return value


@dataclass(frozen=True)
class Switch(Control[bool]):
    """On or off, as a link has it.

    Args:
        label: key of the words beside it.
    """

    default: bool
    label: Of[str] = field(kw_only=True)

    def default_of(self, view: View | None = None) -> bool:
        return self.default

    def link_of(self, value: bool) -> str:
        return written_switch(value)

    def read(self, view: View | None = None) -> bool:
        return chosen(self.name, self.default, read_switch, "on, off")

    def show(self, view: View | None = None) -> bool:
        key, value = held(self.name, self.default, read_switch, "on, off")
        value = st.toggle(_words(self.label, view), value, key=key)
        keep(self.name, written_switch(value), written_switch(self.default))
        return value


@dataclass(frozen=True)
class Text(Control[T]):
    """A box of text, read while a person types; where the text cannot be read, the last one that could stays.

    Args:
        default: what stands in it at first.
        label: key of the words above it, or the words by the view.
        parse: makes the value of the view and the text; it raises ValueError with why it cannot, in words for the page,
            and the default can always be read.
        most: characters that fit in it.
        height: in pixels, of a box for several lines; 0 for one line.
        pause: of the hand that types, until the page runs; None where it runs once the box is left.
        placeholder: what stands in it while it is empty.
    """

    default: Of[str]
    label: Of[str] = field(kw_only=True)
    parse: Callable[[Any, str], T] | None = field(default=None, kw_only=True)
    most: int | None = field(default=None, kw_only=True)
    height: int = field(default=0, kw_only=True)
    pause: Of[str] | None = field(default="0ms", kw_only=True)
    placeholder: str | None = field(default=None, kw_only=True)
    follows: ClassVar[Literal["choices", "sliders", "boxes"]] = "boxes"

    def _parsed(self, view: View | None, text: str) -> T:
        return cast(T, text) if self.parse is None else self.parse(view, text)

    def default_of(self, view: View | None = None) -> T:
        return self._parsed(view, _of(self.default, view))

    def read(self, view: View | None = None) -> T:
        """Return what was typed.

        Raises:
            ValueError: as parse does, of a text that no page has read yet.
        """
        return self._parsed(view, self.written(view))

    def written(self, view: View | None = None) -> str:
        if linked() is not None and (asked := current(self.name)) is not None:
            return str(asked)[: self.most]  # its default may take long to find
        default = str(_of(self.default, view))
        text = chosen(self.name, default, lambda asked: str(asked)[: self.most], "")
        if linked() is not None or self.parse is None:
            return text
        texts = (text, last_read(self.name), default)
        return next((one for one in texts if one is not None and self._can_read(view, one)), text)

    def _can_read(self, view: View | None, text: str) -> bool:
        try:
            self._parsed(view, text)
        except ValueError:
            return False
        return True

    def show(self, view: View | None = None) -> T:
        """Show the box, say in a line below where what is shown is of another text, and return the value."""
        self.show_box(view)
        return cast(T, self.note(view))

    def show_box(self, view: View | None = None) -> None:
        """Show the box alone."""
        default, label = str(_of(self.default, view)), _words(self.label, view)
        key, text = held(self.name, default, lambda asked: str(asked)[: self.most], "")
        box: dict[str, Any] = {"key": key, "max_chars": self.most, "placeholder": self.placeholder}
        if self.height:
            text = st.text_area(label, text, height=self.height, **box)
        else:
            text = st.text_input(label, text, live=_of(self.pause, view) or False, **box)
            st.session_state.setdefault("typed", {})[self.name] = text
        keep(self.name, text, default)

    def note(self, view: View | None = None) -> T | None:
        """Say in a line where what is shown is of another text than the one in the box, and return the value.

        Returns:
            None where neither the text nor the default can be read, with the reason on the page.
        """
        if self.parse is None:
            return cast(T, current(self.name))
        default = str(_of(self.default, view))
        return read_and_note(self.name, str(current(self.name)), default, lambda text: self._parsed(view, text))


@dataclass(frozen=True)
class Kept(Control[T]):
    """What a picture or a button sets, without a widget.

    Args:
        parse: makes the value of the view and what is kept, which is "" at first.
    """

    parse: Callable[[Any, str], T] = field(default=cast(Callable[[Any, str], T], lambda _, text: text), kw_only=True)

    def default_of(self, view: View | None = None) -> T:
        return self.parse(view, "")

    def read(self, view: View | None = None) -> T:
        return self.parse(view, self.written(view))

    def written(self, view: View | None = None) -> str:
        return str(current(self.name) or "")

    def set(self, value: str, *, link: bool = True) -> None:
        """Keep a value, and by default in the link, too."""
        set_choice(self.name, value)
        if link:
            keep(self.name, value, "")


@dataclass(frozen=True)
class Seed(Control[int]):
    """The seed of what a page draws, without a widget; a button takes the next one.

    Args:
        most: after it comes 0 again.
    """

    default: int = 0
    most: int = MOST_SEED

    def default_of(self, view: View | None = None) -> int:
        return self.default

    def read(self, view: View | None = None) -> int:
        return chosen(self.name, self.default, lambda asked: whole_number(asked, self.most), f"0 … {self.most}")

    def next(self) -> None:
        """Take the seed after the chosen one; only in a callback."""
        self.take((self.read() + 1) % (self.most + 1))


def show_in_columns(
    view: View | None, *controls: Control[Any], widths: Sequence[float] | None = None, **columns: Any
) -> list[Any]:
    """Show controls beside each other, and return what they hold.

    Args:
        widths: relative ones; equal by default.
        columns: as of Streamlit's columns.
    """
    values = []
    for place, control in zip(st.columns(widths or len(controls), **columns), controls, strict=True):
        with place:
            values.append(control.show(view))
    return values


class Values:
    """What the controls of a part hold: by control, so that each has its type.

    Args:
        held: by name.
    """

    def __init__(self, held: Mapping[str, Any]) -> None:
        self._held = held

    def __getitem__(self, control: Control[T]) -> T:
        return self._held[control.name]
