"""The panel of a run: how it is doing, and the buttons that pause, resume and stop it."""

from collections.abc import Callable

import streamlit as st

from pages.kit.device import device_of_run
from pages.kit.refusals import in_own_words
from pages.kit.runs import LIVE, in_words, is_live, resume_run
from pages.kit.waiting import watch
from pages.language import plain, t
from pages.serving.limits import limits
from pages.serving.owners import may_change
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.runner import runner
from transformer_core.training.runs.store.records import Status
from transformer_core.training.runs.store.run_store import RunStore

ICONS = {
    "queued": ":material/hourglass_top:",
    "starting": ":material/rocket_launch:",
    "running": ":material/directions_run:",
    "paused": ":material/pause_circle:",
    "stopped": ":material/stop_circle:",
    "finished": ":material/check_circle:",
    "failed": ":material/error:",
    "interrupted": ":material/power_off:",
}


def state_words(status: Status) -> str:
    """Return a run's state with its sign."""
    return f"{ICONS[status.state]} {t(f'state.{status.state}')}"


def progress_words(status: Status) -> str:
    """Return how far a run has come, in a line."""
    parts = [f"**{state_words(status)}**"]
    if status.state == "queued":
        parts.append(t("run.place", place=status.queue_place))
    if status.shortage is not None:
        lack = status.shortage
        parts.append(t("run.shortage", needs=lack.needs, whole=lack.whole, free=lack.free))
    if status.total_steps:
        parts.append(t("run.step", step=f"{status.step:,}", total=f"{status.total_steps:,}"))
        parts.append(t("run.epoch", epoch=f"{status.epoch:.1f}"))
    if status.seconds:
        parts.append(t("run.took", time=in_words(status.seconds)))
    if status.state == "running" and status.seconds_left is not None:
        parts.append(t("run.left", time=in_words(status.seconds_left)))
    return " · ".join(parts)


def attempt(act: Callable[[], object], owner: str | None = None) -> None:
    """Do what a button asks for; what goes wrong is said on the page.

    Args:
        owner: of the run that it changes; nothing is done where that is somebody else's.
    """
    if owner is not None and not may_change(owner):
        return
    try:
        act()
    except RunError as error:
        st.toast(plain(str(error)), icon=":material/error:")


def _button(store: RunStore, key: str, icon: str, act: Callable[[], object], *, first: bool = False) -> None:
    kind = "primary" if first else "secondary"
    st.button(t(key), icon=icon, type=kind, key=f"{key} {store.id}", on_click=attempt, args=(act, store.owner))


def _buttons(store: RunStore, status: Status) -> None:
    """Show the buttons that make sense in this state."""
    if limits().read_only:
        return
    with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        if status.state == "paused":
            _button(store, "run.resume", ":material/play_arrow:", lambda: resume_run(store), first=True)
        elif status.state in ("starting", "running"):
            _button(store, "run.pause", ":material/pause:", lambda: runner().ask(store, "pause"))
        if status.state in LIVE:
            _button(store, "run.stop", ":material/stop:", lambda: runner().ask(store, "stop"))
        elif status.state != "finished":
            _button(store, "run.take_up", ":material/restart_alt:", lambda: resume_run(store), first=True)


def show_panel(store: RunStore) -> None:
    """Show a run's state until it has finished; the film tells it from then on.

    While it is live the panel looks again by itself, and nothing else on the page runs.
    """

    def show() -> None:
        status, device = store.status(), device_of_run(store)
        if device is not None:
            st.caption(t("run.device", device=plain(device)))
        if status.state == "finished":
            return
        words_place, buttons_place = st.columns([3, 1], vertical_alignment="center")
        with words_place:
            share = status.step / status.total_steps if status.total_steps else 0.0
            st.progress(min(1.0, share), progress_words(status))
        with buttons_place:
            if may_change(store.owner):
                _buttons(store, status)
            else:
                st.caption(t("run.of_another"))
        if status.state == "interrupted":
            st.warning(t("run.interrupted", error=plain(status.message)), icon=ICONS[status.state])
        elif status.message:
            show_prose = st.error if status.state == "failed" else st.warning
            show_prose(t("run.failed", error=plain(in_own_words(status.message))), icon=ICONS[status.state])

    watch(lambda: not is_live(store.status()), show, key=f"panel {store.id}")
