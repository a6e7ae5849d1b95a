"""Where a form begins: a preset, or another run whose settings, and weights where it is a branch, are taken over."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from pages.train.settings import ALL
from pages.ui.glossary import tell
from pages.ui.language import plain, section, t
from pages.ui.runs import find_run
from pages.ui.url import choose, current, forget, keep
from transformer_core.training.runs.presets import PRESETS
from transformer_core.training.runs.settings import settings
from transformer_core.training.spec import Origin, RunSpec

FORM = (*(one.name for one in ALL), "path", "passage")
DATA = ("source", "path", "passage")
BRANCH = re.compile(r"([a-z0-9]{1,32})(?:\.([0-9]{1,4}))?")


@dataclass(frozen=True)
class Base:
    """What a form begins with.

    Args:
        spec: the settings where nothing is changed.
        origin: the run that they are of; None for a preset.
        data: that run's file, None where it has none.
    """

    spec: RunSpec
    origin: Origin | None = None
    data: Path | None = None

    @property
    def usual(self) -> dict[str, Any]:
        """Every setting where nothing is changed."""
        return settings(self.spec)

    @property
    def has_weights(self) -> bool:
        """Whether the weights are taken over, too."""
        return self.origin is not None and self.origin.frame is not None


def gave_data() -> bool:
    """Tell whether a person gave data of their own: a file, a place or a text. Another preset must learn from them."""
    text = current("passage")
    given = {"table": st.session_state.get("table"), "imdb": current("path"), "characters": text, "masked_words": text}
    return bool(given.get(current("source")))


def begin_with(run: str, frame: int | None) -> None:
    """Fill the form with a run's settings, to go on from one of its frames or, with None, from fresh weights."""
    forget(*FORM, "run", "frame", "step")
    keep("branch", run if frame is None else f"{run}.{frame}", "")


def choose_base() -> Base:
    """Show the presets, or the run that the form was filled from, and return what was chosen."""
    asked = current("branch")
    if asked:
        found = BRANCH.fullmatch(asked)
        store = find_run(found[1]) if found else None
        if found and store is not None:
            keep("branch", asked, "")
            frame = int(found[2]) if found[2] else None
            return _of_run(store, frame)
        st.warning(t("run.gone", run=plain(asked[:80])), icon=":material/link_off:")
        forget("branch")
    names = {name: t(f"preset.{name}") for name in PRESETS}
    chosen = choose(t("train.preset"), names, name="preset", default="quick")
    if st.session_state.setdefault("form_of", chosen) != chosen:
        forget(*(set(FORM) - set(DATA) if gave_data() else FORM))
        st.session_state.form_of = chosen
    base = Base(PRESETS[chosen])
    if not (gave_data() and current("source") != base.usual["source"]):
        tell(section("train", f"preset_{chosen}"))  # it speaks of the preset's own data
    return base


def _of_run(store: Any, frame: int | None) -> Base:
    file = store.spec.data.file
    told = {"name": plain(store.spec.name), "run": store.id}
    with st.container(border=True):
        if frame is None:
            st.markdown(t("train.same_settings", **told))
        else:
            steps = {one.number: one.step for one in store.frames()}
            st.markdown(t("train.branch", **told, step=steps.get(frame, "?"), frame=frame))
        if st.button(t("train.leave_branch"), icon=":material/undo:"):
            forget(*FORM, "branch")
            st.rerun()
    return Base(store.spec, Origin(run=store.id, frame=frame), None if file is None else store.folder / file)
