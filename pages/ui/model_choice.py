"""The model that a person chose, on every page that can read it; elsewhere the page's own, and the choice is kept."""

from collections.abc import Sequence

import streamlit as st

from pages.ui.language import plain, t
from pages.ui.models import kind_of, model_names
from pages.ui.url import choose_from_list, listed, refuse, set_choice, widget_key

MOST_KEPT = 8


def _preferred() -> list[str]:
    return st.session_state.setdefault("models", [])


def prefer_model(name: str) -> None:
    """Let this model be the first choice of every page that can read its kind."""
    st.session_state.models = [name, *(other for other in _preferred() if other != name)][:MOST_KEPT]


def choose_model(kinds: Sequence[str], default: str | None) -> str | None:
    """Show the models of these kinds, beginning with the last that was chosen among them; None where there is none.

    Args:
        kinds: that the page can read, the likeliest first.
        default: the model to begin with where none was chosen; by default the first of the first kind.
    """
    linked = None if widget_key("model") in st.session_state else st.query_params.get("model")
    names = model_names(st.session_state.get(widget_key("model"), linked), kinds)
    if not names:
        return None
    if default in names:
        names = {default: names[default]} | names
    if linked is not None and linked not in _preferred():
        if linked in names or kind_of(linked) is not None:
            prefer_model(linked)
        else:
            refuse("model", linked, listed(list(names)))
    usual = next((name for name in _preferred() if name in names), next(iter(names)))
    if widget_key("model") not in st.session_state:
        set_choice("model", usual)
    chosen = choose_from_list(t("header.model"), names, name="model")
    if chosen is not None and chosen != usual:
        prefer_model(chosen)
    return chosen


def other_kind(chosen: str) -> str | None:
    """Say in one line that the model last chosen is of a kind that this page cannot read; None where it can."""
    last = next(iter(_preferred()), chosen)
    kind = kind_of(last)
    if last == chosen or kind is None:
        return None
    return t("model.elsewhere", name=last, kind=t(f"kind.{kind}"), shown=chosen)


def _take(name: str) -> None:
    prefer_model(name)
    set_choice("model", name)


def offer_model(message: str, kinds: Sequence[str], *, key: str = "offer") -> None:
    """Say in one line why a part needs another kind of model, with a button that switches to the first there is.

    Args:
        key: of the button.
    """
    st.info(message, icon=":material/info:")
    name = next((name for name in _preferred() if kind_of(name) in kinds), next(iter(model_names(None, kinds)), None))
    said, icon = t("outcome.switch", name=plain(name or "")), ":material/swap_horiz:"
    if name is not None and st.button(said, icon=icon, on_click=_take, args=(name,), key=key):
        st.rerun(scope="app")
