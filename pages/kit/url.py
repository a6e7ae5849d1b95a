"""What a person set follows them from page to page and is in the URL, so that a link rebuilds the screen.

Streamlit drops a widget's value when the page changes, and its own binding writes translated labels (and texts of any
length) to the URL; so the session keeps each choice by name, and a page's widget starts from it.

A link has a bound in bytes, since servers and messengers refuse longer ones. What does not fit is kept in the session
alone, and the link itself names it (LEFT_OUT): whoever shares or opens the link is told.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

import streamlit as st

from pages.language import plain, t
from pages.link import LEAVES, linked
from pages.serving.inside_streamlit import is_back_or_forward

LONGEST_LINK, LONGEST_ADDRESS = 4_000, 300  # bytes of a link, and those of them for all but what was chosen
LEFT_OUT = "without"  # names, in a link, of what did not fit in it
WIDGET = re.compile("(?!lang@)[a-z0-9_]+@[a-z_]*|(former )?default .*|predict .*|models|last_read")
T = TypeVar("T")


def _kept() -> dict[str, Any]:
    return st.session_state.setdefault("kept", {})


def arrive(language: str) -> None:
    """Take in the link that a run begins with; only at its start.

    What was too long for a link that was opened is said once. After the browser's Back or Forward, what was chosen is
    what the link says, but for the language and what the link has no room for.

    Args:
        language: to begin with where the URL names none; what a person chooses later stays.
    """
    st.query_params.pop(LEAVES, None)
    if "kept" not in st.session_state and LEFT_OUT in st.query_params:
        names = plain(st.query_params.pop(LEFT_OUT)[:80]).replace(".", ", ")
        st.toast(t("url.left_out", names=names), icon=":material/link_off:", duration="long")
    if is_back_or_forward():
        stays = {"lang", *left_out()}
        st.session_state.kept = {name: value for name, value in _kept().items() if name in stays}
    if "lang" not in st.query_params:
        _kept().setdefault("lang", language)


def go_to(page: str) -> None:
    """Name the page that this run shows, and keep what was typed on the page before since that was last run.

    Where a box has another default since the language or the model is another, the browser sends the former one once
    more as it leaves: nobody typed that.
    """
    for name, read in st.session_state.pop("typed", {}).items():
        text = st.session_state.get(widget_key(name), read)
        if text not in (read, st.session_state.get(_former_key(name))):
            _kept()[name] = text
    st.session_state.page = page


def widget_key(name: str) -> str:
    """Return the key of a choice's widget on the page that is shown."""
    return f"{name}@{st.session_state.get('page', '')}"


def chosen(
    name: str, default: T, read: Callable[[Any], T | None], options: str, *, instead: Callable[[Any], T] | None = None
) -> T:
    """Return a choice without showing its widget: what that holds, else the one kept, else the URL's, else the default.

    What can no longer be, as options go with the text or the model, needs no words; what a link asks for is refused in
    words.

    Args:
        name: the choice's name in the URL and from page to page.
        read: returns the value for what is held or what the URL says, None where that cannot be.
        options: what can be, in words.
        instead: returns what follows on a value that can no longer be; by default it is the default.
    """
    asked = current(name)
    value = default if asked is None or _left_at(name, asked, default) else read(asked)
    if value is not None:
        return value
    if linked() is None and widget_key(name) not in st.session_state and name not in _kept():
        refuse(name, str(asked), options)
        remember(name, None)
        return default
    return default if instead is None else instead(asked)


def _default_key(name: str) -> str:
    return f"default {widget_key(name)}"


def _former_key(name: str) -> str:
    return f"former {_default_key(name)}"


def _left_at(name: str, asked: Any, default: Any) -> bool:
    """Return whether a widget was left at the default that it had before, and has another one now."""
    if linked() is not None:
        return False
    before = st.session_state.get(_default_key(name), default)
    return before != default and asked == before


def held(name: str, default: T, read: Callable[[Any], T | None], options: str, **rest: Any) -> tuple[str, T]:
    """Return the key of this page's widget of a choice, and what it shall show.

    The widget must take that as its default, too: in the browser, one that comes back to the page begins with its
    default, while the server still has what it held before.

    Args:
        name, default, read, options, rest: as of chosen.
    """
    value = chosen(name, default, read, options, **rest)
    if (former := st.session_state.get(_default_key(name), default)) != default:
        st.session_state[_former_key(name)] = former
    st.session_state[_default_key(name)] = default
    return put(name, value), value


def put(name: str, value: Any) -> str:
    """Let this page's widget of a choice hold a value, and return its key."""
    key = widget_key(name)
    before = st.session_state.get(key)
    if type(before) is not type(value) or before != value:
        st.session_state[key] = value
    return key


def refuse(name: str, asked: str, options: str) -> None:
    """Say that a link asks for what cannot be."""
    message = t("url.unknown", name=name, asked=plain(asked[:80]), options=options)
    st.toast(message, icon=":material/link_off:", duration="long")


def keep(name: str, value: str, default: str) -> None:
    """Keep a choice for other pages, and in the URL where there is room for it; a default is neither.

    Another page may have another default: a person who chose nothing sees each page's own.
    """
    if value == default:
        _kept().pop(name, None)
    else:
        _kept()[name] = value
    remember(name, value if value != default else None)


def set_choice(name: str, value: str) -> None:
    """Make a choice in place of its widget; only before that widget is shown, as in a callback."""
    st.session_state[widget_key(name)] = value


def current(name: str) -> Any:
    """Return a choice without showing its widget: what that holds, else the one kept, else the URL's, else None."""
    link = linked()
    if link is not None:
        return link.said.get(name)
    _places()[name] = st.session_state.get("page")
    return st.session_state.get(widget_key(name), _kept().get(name, st.query_params.get(name)))


def in_url(name: str) -> str:
    """Return what the URL says by a name that no widget has, "" where it says nothing."""
    link = linked()
    return (st.query_params if link is None else link.said).get(name, "")


def forget(*names: str) -> None:
    """Forget choices, so that their widgets return to their defaults; only before those are shown, as in a callback."""
    for name in names:
        _kept().pop(name, None)
        st.session_state.pop(widget_key(name), None)
        remember(name, None)


def forget_all() -> None:
    """Forget every choice but the language, on all pages; only before another link is opened."""
    state = st.session_state
    state.kept = {name: value for name, value in _kept().items() if name == "lang"}
    for key in [key for key in state if isinstance(key, str) and WIDGET.fullmatch(key)]:
        del state[key]


def left_out() -> list[str]:
    """Return the names of what the URL has no room for."""
    return [name for name in st.query_params.get(LEFT_OUT, "").split(".") if name]


def in_bytes(said: Mapping[str, str]) -> int:
    """Return how long a link is that says this, the server's address included."""
    return LONGEST_ADDRESS + len(urlencode(said))


def _places() -> dict[str, str | None]:
    """Return on which page each choice was read last."""
    return st.session_state.setdefault("places", {})


def _make_room(name: str, value: str) -> bool:
    """Tell whether the URL has room for a value, once it holds nothing long that only other pages show.

    What another page shows is kept for it, also where only a link had brought it.
    """
    page = st.session_state.get("page")
    _places()[name] = page
    said = {**st.query_params.to_dict(), name: value}
    elsewhere = [other for other in said if _places().get(other, page) != page]
    for other in sorted(elsewhere, key=lambda other: len(said[other]), reverse=True):
        if in_bytes(said) <= LONGEST_LINK:
            break
        _kept().setdefault(other, said[other])
        del said[other], st.query_params[other]
    return in_bytes(said) <= LONGEST_LINK


def remember(name: str, value: str | None) -> None:
    """Write a value to the URL where it has room for it, or take it out."""
    missing = [other for other in left_out() if other != name]
    if value is not None and not _make_room(name, value):
        value = None
        missing.append(name)
    for written, said in ((name, value), (LEFT_OUT, ".".join(missing) or None)):
        if said is None:
            st.query_params.pop(written, None)
        elif st.query_params.get(written) != said:
            st.query_params[written] = said


def listed(options: Sequence[str]) -> str:
    """Return what can be chosen, in words: where there is much, the first and the last."""
    return ", ".join(options) if len(options) <= 12 else f"{options[0]} … {options[-1]}"


def written(name: str) -> str | None:
    """Return what a person wrote into a box of text; None where that holds its default."""
    text = current(name)
    return None if text in (None, st.session_state.get(_default_key(name))) else str(text)


def read_number(asked: Any, least: float, most: float) -> float | None:
    """Return the number from `least` to `most` that a value or its text in a link means, None where it is none."""
    try:
        value = float(asked)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if least <= value <= most else None


def whole_number(asked: Any, most: int, *, least: int = 0) -> int | None:
    """Return the whole number that read_number would, None where that has a fraction."""
    value = read_number(asked, least, most)
    return int(value) if value is not None and value.is_integer() else None


def read_switch(asked: Any) -> bool | None:
    """Return what a switch's value or its text in the URL means, None where it is neither on nor off."""
    return {"on": True, "off": False, "true": True, "false": False}.get(str(asked).lower())


def written_switch(value: bool) -> str:
    """Return how the URL has a switch."""
    return "on" if value else "off"
