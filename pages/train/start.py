"""The button that starts a run, and beside it the time that the run will take."""

from dataclasses import replace

import streamlit as st

from pages.train.data import Learned
from pages.train.estimate import estimate
from pages.ui.boxes import watch
from pages.ui.language import plain, t
from pages.ui.runs import follow, in_words, launcher, learned_words, run_list
from pages.ui.url import forget
from transformer_core.training.runs.errors import RunError
from transformer_core.training.spec import RunSpec


def _show_estimate(spec: RunSpec, learned: Learned) -> None:
    """Show the estimate, or that it is being measured."""
    found = estimate(spec, learned.data, learned.name)
    if not found.done():
        st.metric(t("train.takes"), "…")
        st.caption(t("train.measuring"))
        return
    problem = found.exception()
    if problem is not None:
        words = str(problem) if isinstance(problem, ValueError) else type(problem).__name__
        st.warning(t("train.no_estimate", error=plain(words)), icon=":material/timer_off:")
        return
    known = found.result()
    st.metric(t("train.takes"), t("train.about", time=in_words(known.seconds)))
    st.caption(
        t(
            "train.takes_of",
            steps=f"{known.steps:,}",
            step=f"{1_000 * known.seconds_a_step:.0f}",
            frames=known.frames,
            frame=f"{1_000 * known.seconds_a_frame:.0f}",
        )
    )


def _start(spec: RunSpec, learned: Learned) -> None:
    try:
        store = run_list().create(replace(spec, name=run_list().free_name(spec.name)), data=learned.data)
        launcher().start(store)
    except RunError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    forget("branch")
    follow(store.id)
    st.rerun()


def show_start(spec: RunSpec | None, problem: str, learned: Learned) -> None:
    """Show the time that a run will take and the button that starts it, or why it cannot start."""
    with st.container(border=True):
        if spec is None:
            st.warning(t("train.impossible", error=plain(problem)), icon=":material/block:")
        else:
            st.markdown(t("train.learns_from", learned=f"**{plain(learned_words(spec.data))}**"))
            watch(
                lambda: estimate(spec, learned.data, learned.name).done(),
                lambda: _show_estimate(spec, learned),
                key="estimate",
            )
        pressed = st.button(
            t("train.start"), type="primary", icon=":material/play_arrow:", width="stretch", disabled=spec is None
        )
        st.caption(t("train.leave"))
    if pressed and spec is not None:
        _start(spec, learned)
