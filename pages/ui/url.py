"""What a person set is in the URL, so that a link rebuilds the screen in any language.

Read next: header.py.
"""

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.ui.language import t


def warn_of_unknown(name: str, options: Sequence[str]) -> None:
    """Say so where the URL asks for a choice that is not there; the control then takes its default."""
    asked = st.query_params.get(name)
    if asked is not None and asked not in options:
        shown = ", ".join(options) if len(options) <= 12 else f"{options[0]} … {options[-1]}"
        message = t("url.unknown", name=name, asked=asked[:80], options=shown)
        st.toast(message, icon=":material/link_off:", duration="infinite")


def choose(label: str, options: Mapping[str, str], *, key: str, default: str, collapsed: bool = False) -> str:
    """Show a segmented control whose option, not its translated label, stands in the URL.

    Streamlit's own binding writes the label, so that a link would break in another language.

    Args:
        options: labels by option.
        key: the name in the URL and in the session.
        default: the option that the URL leaves out.
        collapsed: hide the label, which screen readers still get.
    """
    if key not in st.session_state:
        warn_of_unknown(key, list(options))
        asked = st.query_params.get(key)
        st.session_state[key] = asked if asked in options else default
    elif st.session_state[key] not in options:
        st.session_state[key] = default
    chosen = st.segmented_control(
        label,
        list(options),
        format_func=options.__getitem__,
        required=True,
        key=key,
        persist_state="session",
        label_visibility="collapsed" if collapsed else "visible",
    )
    remember(key, chosen if chosen != default else None)
    return chosen or default


def remember(name: str, value: str | None) -> None:
    """Write a value to the URL, or take it out."""
    if value is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value


def cell_from_url(size: int) -> tuple[int, int] | None:
    """Return the pinned cell (row, col) that the URL names, where both lie within `size`."""
    row, _, col = st.query_params.get("cell", "").partition(".")
    if not (row.isdecimal() and col.isdecimal()):
        return None
    return (int(row), int(col)) if int(row) < size and int(col) < size else None
