"""What an administrator sees: people, waits, runs and opened models, each with its owner."""

import os
import sqlite3
import time
from collections.abc import Iterable

import streamlit as st

from pages.hall.listening import close_room, rooms
from pages.kit.device import device_of_server
from pages.kit.heavy import pool
from pages.kit.models import opened_models
from pages.kit.number_format import markdown_table
from pages.kit.runs import in_words, learned_words, run_list
from pages.language import joined, plain, t
from pages.serving.owners import visitor
from pages.serving.traffic import COUNTER, SECONDS_LOOKED_BACK

SECONDS_BETWEEN_LOOKS = 5.0
MB = 1e6
LENGTH_OF_OWNER = 6


def _name(owner: str) -> str:
    """Return what an owner is called here: the beginning of the hash."""
    if not owner:
        return t("server.nobody")
    return t("server.you") if owner == visitor() else f"`{owner[:LENGTH_OF_OWNER]}`"


def _milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1_000 * seconds:,.0f} ms"


def _memory() -> float:
    """Return the bytes that the server's process holds."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@st.fragment(run_every=SECONDS_BETWEEN_LOOKS)
def show_traffic() -> None:
    """Show how many people are there, what they wait for, and what computes; it looks again by itself."""
    found = COUNTER.look()
    states = [store.status().state for store in run_list().live()]
    computed, queued = pool().counts()
    numbers = {
        "people": f"{found.people:,}",
        "changes": f"{found.changes:.1f}",
        "median": _milliseconds(found.median),
        "slow": _milliseconds(found.slow),
        "running": f"{states.count('running')}",
        "waiting": f"{states.count('queued')}",
        "heavy": f"{computed}",
        "heavy_waiting": f"{queued}",
    }
    if os.path.exists("/proc/self/statm"):
        numbers["memory"] = f"{_memory() / MB:,.0f} MB"
    with st.container(horizontal=True, gap="medium"):
        for name, value in numbers.items():
            st.metric(t(f"server.{name}"), value, width="content")
    last = t("server.last", seconds=f"{SECONDS_LOOKED_BACK:.0f}")
    st.caption(joined(last, t("server.device", device=plain(device_of_server()))))


def _show_table(title: str, heads: Iterable[str], rows: list[tuple[str, ...]]) -> None:
    st.subheader(t(title), anchor=False)
    if not rows:
        st.caption(t("server.none"))
        return
    names = [t(head) for head in heads]
    st.markdown(markdown_table(names, rows))


def show_runs() -> None:
    """Show every run with its owner."""
    rows = []
    for store in run_list().all():
        status = store.status()
        ago = t("runs.ago", time=in_words(max(0.0, time.time() - status.updated))) if status.updated else "–"
        name = f"[{plain(store.spec.name)}](./train?run={store.id})"
        rows.append(
            (
                name,
                _name(store.owner),
                t(f"state.{status.state}"),
                plain(learned_words(store.spec.data)),
                ago,
            )
        )
    _show_table("server.runs", ("runs.name", "server.owner", "runs.state", "setting.source", "runs.age"), rows)


def show_rooms() -> None:
    """Show every room of a lecture with its owner, and what closes it."""
    st.subheader(t("server.rooms"), anchor=False)
    try:
        there = rooms().all()
    except (OSError, sqlite3.Error):
        st.error(t("room.unusable"), icon=":material/error:")
        return
    if not there:
        st.caption(t("server.none"))
    for code, owner, lecture, used, answers in there:
        with st.container(horizontal=True, vertical_alignment="center"):
            ago = t("runs.ago", time=in_words(max(0.0, time.time() - used)))
            said = t("server.room", code=code, lecture=plain(lecture), count=answers, ago=ago)
            st.markdown(f"{said} · {_name(owner)}", width="content")
            st.button(
                t("server.close"), icon=":material/close:", key=f"close {code}", on_click=close_room, args=(code,)
            )


def show_models() -> None:
    """Show every opened model with its owner and its size."""
    rows = [
        (
            f"[{plain(name)}](./my_model?model={name})",
            _name(model.owner),
            t("server.yes") if model.shared else t("server.no"),
            t(f"my_model.from_{model.origin}"),
            f"{model.size / MB:,.1f} MB",
        )
        for name, model in opened_models().all().items()
    ]
    heads = ("header.model", "server.owner", "server.shared", "server.origin", "my_model.bytes")
    _show_table("server.models", heads, rows)
