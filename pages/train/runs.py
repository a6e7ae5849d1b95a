"""The list of runs on this server: open, rename, resume, export, delete and import."""

import time

import streamlit as st

from pages.kit.runs import (
    bounds,
    follow,
    in_words,
    learned_words,
    listed_runs,
    own_runs,
    refuse_read_only,
    resume_run,
    run_list,
)
from pages.kit.uploads import let_go, upload
from pages.language import plain, t
from pages.serving.limits import limits
from pages.serving.owners import may_change
from pages.train.exports import run_zip
from pages.train.panel import attempt, state_words
from transformer_core.training.runs.exchange.import_run import MOST_PACKED
from transformer_core.training.runs.queue import damaged_queues
from transformer_core.training.runs.store.folder import owner_of
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import LONGEST_NAME
from transformer_core.untrusted.archives import MB

WIDTHS = (2.6, 1.5, 1.6, 1.1, 1.1, 0.5)
MOST_SHOWN = 30


def best_held_out(store: RunStore) -> str:
    """Return the best held-out accuracy of a run's frames, or a dash."""
    found = [frame.measures["held_out_accuracy"] for frame in store.frames() if "held_out_accuracy" in frame.measures]
    return f"{max(found):.1%}" if found else "–"


def show_damaged() -> None:
    """Say where the queue's table was damaged and made again, as long as the damaged file lies there."""
    names = damaged_queues(run_list().root)
    if names:
        st.warning(t("runs.damaged", file=plain(names[-1]), count=len(names)), icon=":material/build:")


def _rename(store: RunStore, key: str) -> None:
    attempt(lambda: run_list().rename(store.id, st.session_state[key]), store.owner)


def _delete(run: str, shown: str | None) -> None:
    attempt(lambda: run_list().delete(run, stop=True), owner_of(run_list().root / run))
    if shown == run:
        follow(None)


def _export(store: RunStore) -> None:
    st.download_button(
        t("runs.export"),
        lambda: run_zip(store.id),
        f"run_{store.id}.zip",
        "application/zip",
        icon=":material/folder_zip:",
        key=f"zip {store.id}",
        on_click="ignore",
        width="stretch",
    )


def _actions(store: RunStore, state: str, shown: str | None) -> None:
    """Show what can be done with one run."""
    box = st.popover("", icon=":material/more_vert:", key=f"actions {store.id}", on_change="rerun", help=t("runs.more"))
    if not box.open:
        return
    with box:
        if limits().read_only:
            _export(store)
            return
        key = f"name {store.id}"
        st.text_input(
            t("runs.name"), store.spec.name, max_chars=LONGEST_NAME, key=key, on_change=_rename, args=(store, key)
        )
        if state not in ("finished", "running", "starting", "queued", "paused"):
            st.button(
                t("run.take_up"),
                icon=":material/restart_alt:",
                key=f"resume {store.id}",
                width="stretch",
                on_click=attempt,
                args=(lambda: resume_run(store), store.owner),
            )
        _export(store)
        sure = st.checkbox(t("runs.sure"), key=f"sure {store.id}")
        st.button(
            t("runs.delete"),
            icon=":material/delete:",
            key=f"delete {store.id}",
            width="stretch",
            disabled=not sure,
            on_click=_delete,
            args=(store.id, shown),
        )


def _row(store: RunStore, shown: str | None) -> None:
    status = store.status()
    name, state, data, best, age, more = st.columns(WIDTHS, vertical_alignment="center")
    with name:
        st.button(
            plain(store.spec.name),
            key=f"open {store.id}",
            type="tertiary",
            icon=":material/visibility:" if store.id == shown else ":material/play_circle:",
            on_click=follow,
            args=(store.id,),
        )
    place = f" ({status.queue_place})" if status.queue_place else ""
    state.markdown(f"{state_words(status)}{place}")
    data.markdown(plain(learned_words(store.spec.data)))
    best.markdown(best_held_out(store))
    age.markdown(t("runs.ago", time=in_words(max(0.0, time.time() - status.updated))) if status.updated else "–")
    with more:
        _actions(store, status.state, shown)


def _import() -> None:
    """Take in a run that was exported, here or elsewhere."""
    if refuse_read_only():
        return
    given = upload(t("runs.import"), "zip", most_mb=MOST_PACKED // MB, key="import_zip")
    if given is None:
        return
    let_go("import_zip")

    def take() -> None:
        follow(own_runs().import_zip(given).id)

    attempt(take)
    st.rerun()


def show_runs(shown: str | None) -> None:
    """Show the runs that this visitor may change, the newest first."""
    runs = listed_runs()
    if not runs:
        st.caption(t("runs.none"))
    else:
        heads = ("runs.name", "runs.state", "setting.source", "runs.best", "runs.age")
        for place, key in zip(st.columns(WIDTHS), heads, strict=False):
            place.caption(t(key))
    for store in runs[:MOST_SHOWN]:
        _row(store, shown)
    _import()
    broken = {} if limits().read_only else run_list().broken()
    for run, why in broken.items():
        if not may_change(owner_of(run_list().root / run)):
            continue
        st.button(
            t("runs.delete_broken", run=run, error=plain(why)), key=f"broken {run}", on_click=_delete, args=(run, shown)
        )
    st.caption(t("runs.rule", most=bounds().runs, size=bounds().size >> 30))
