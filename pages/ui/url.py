"""What a person set follows them from page to page and is in the URL, so that a link rebuilds the screen.

Streamlit drops a widget's value when the page changes, and its own binding writes translated labels (and texts of any
length) to the URL; so the session keeps each choice by name, and a page's widget starts from it. Read next: header.py.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.ui.language import plain, t

MOST_IN_URL = 2_000


def _kept() -> dict[str, Any]:
    return st.session_state.setdefault("kept", {})


def start_in(language: str) -> None:
    """Keep a language to begin with where the URL names none; what a person chooses later stays."""
    if "lang" not in st.query_params:
        _kept().setdefault("lang", language)


def widget_key(name: str) -> str:
    """Return the key of a choice's widget on the page that is shown."""
    return f"{name}@{st.session_state.get('page', '')}"


def recall(name: str, default: str) -> str:
    """Give this page's widget its value where it has none: the one kept, else the URL's, else the default.

    Returns:
        The widget's key.
    """
    key = widget_key(name)
    if key not in st.session_state:
        st.session_state[key] = _kept().get(name, st.query_params.get(name, default))
    return key


def keep(name: str, value: str, default: str) -> None:
    """Keep a choice for other pages, and in the URL where it is not too long for one; a default is neither.

    Another page may have another default: a person who chose nothing sees each page's own.
    """
    if value == default:
        _kept().pop(name, None)
    else:
        _kept()[name] = value
    remember(name, value if value != default and len(value) <= MOST_IN_URL else None)


def set_choice(name: str, value: str) -> None:
    """Make a choice in place of its widget; only before that widget is shown, as in a callback."""
    st.session_state[widget_key(name)] = value


def current(name: str) -> Any:
    """Return a choice without showing its widget: what that holds, else the one kept, else the URL's, else None."""
    return st.session_state.get(widget_key(name), _kept().get(name, st.query_params.get(name)))


def forget(*names: str) -> None:
    """Let choices go, so that their widgets start anew; only before those are shown, as in a callback."""
    for name in names:
        _kept().pop(name, None)
        st.session_state.pop(widget_key(name), None)
        remember(name, None)


def forget_beyond(name: str, count: int) -> None:
    """Let a number go that another model allowed; one that a link brings is left for its widget to refuse in words."""
    known = str(st.session_state.get(widget_key(name), _kept().get(name, "")))
    if known.isascii() and known.isdigit() and (len(known) > 6 or int(known) >= count):
        forget(name)


def remember(name: str, value: str | None) -> None:
    """Write a value to the URL, or take it out."""
    if value is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value


def _allow(key: str, name: str, options: Sequence[str], default: str) -> None:
    """Put the default in place of a choice that is not there, and say so."""
    asked = st.session_state[key]
    if asked not in options:
        shown = ", ".join(options) if len(options) <= 12 else f"{options[0]} … {options[-1]}"
        message = t("url.unknown", name=name, asked=plain(str(asked)[:80]), options=shown)
        st.toast(message, icon=":material/link_off:", duration="infinite")
        st.session_state[key] = default


def choose(
    label: str, options: Mapping[str, str], *, name: str, default: str, collapsed: bool = False, always: bool = False
) -> str:
    """Show a segmented control.

    Args:
        options: labels by option.
        name: the choice's name in the URL and from page to page.
        default: the option that the URL leaves out.
        collapsed: hide the label, which screen readers still get.
        always: write the default to the URL, too, since without it another browser would choose otherwise.
    """
    key = recall(name, default)
    _allow(key, name, list(options), default)
    visibility = "collapsed" if collapsed else "visible"
    chosen = st.segmented_control(
        label,
        list(options),
        format_func=options.__getitem__,
        required=True,
        key=key,
        label_visibility=visibility,
        wrap=True,
    )
    keep(name, chosen or default, "" if always else default)
    return chosen or default


def choose_from_list(label: str, options: Mapping[str, str], *, name: str) -> str | None:
    """Show a list of options with their labels to select from; None where there is nothing in it."""
    if not options:
        return None
    names = list(options)
    key = recall(name, names[0])
    _allow(key, name, names, names[0])
    chosen = st.selectbox(label, names, format_func=options.__getitem__, key=key)
    keep(name, chosen, names[0])
    return chosen


def write(label: str, *, name: str, default: str) -> str:
    """Show a line of text that is read at every key."""
    text = st.text_input(label, key=recall(name, default), live="0ms")
    keep(name, text, default)
    return text


def slide(
    label: str, low: float, high: float, *, name: str, default: float, step: float = 1, format: str | None = None
) -> float:
    """Show a slider; what a link asks for beyond its ends is answered with the default and a message.

    Args:
        low, high, default, step: all whole for a whole number, which is then an int.
        name: the choice's name in the URL.
        format: of the number shown, as of any slider.
    """
    kind = int if all(float(value).is_integer() for value in (low, high, default, step)) else float
    key = widget_key(name)
    if not isinstance(st.session_state.get(key), int | float):
        asked = str(_kept().get(name, st.query_params.get(name, default)))
        st.session_state[key] = _number(asked, name, kind(low), kind(high), kind(default))
    bounded, ends = kind(min(max(st.session_state[key], low), high)), (kind(low), kind(high), kind(step))
    if bounded != st.session_state[key] or st.session_state.get(f"{key} ends") != ends:
        st.session_state[key] = bounded  # to Streamlit, a slider with other ends is another one
    st.session_state[f"{key} ends"] = ends
    value = st.slider(label, kind(low), kind(high), step=kind(step), key=key, format=format)
    keep(name, str(value), str(kind(default)))
    return value


def _number(asked: str, name: str, low: float, high: float, default: float) -> float:
    try:
        value = type(default)(float(asked))
    except (ValueError, OverflowError):
        value = None
    if value is None or not low <= value <= high:
        message = t("url.unknown", name=name, asked=plain(asked[:80]), options=f"{low} … {high}")
        st.toast(message, icon=":material/link_off:", duration="infinite")
        return default
    return value


def switch(label: str, *, name: str, default: bool) -> bool:
    """Show a toggle; in the URL it is on or off."""
    key = widget_key(name)
    if not isinstance(st.session_state.get(key), bool):
        asked = _kept().get(name, st.query_params.get(name, "on" if default else "off"))
        st.session_state[key] = asked == "on" if asked in ("on", "off") else default
    value = st.toggle(label, key=key)
    keep(name, "on" if value else "off", "on" if default else "off")
    return value


def cell_from_url(size: int) -> tuple[int, int] | None:
    """Return the pinned cell (row, col) that the URL names, where both lie within `size`."""
    found = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", st.query_params.get("cell", ""))
    if found is None:
        return None
    row, col = map(int, found.groups())
    return (row, col) if row < size and col < size else None
