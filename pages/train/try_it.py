"""Try this: a prediction asked while the run is under way, and answered by its numbers when it has ended."""

import streamlit as st

from pages.train.results import LITTLE
from pages.train.same_but import same_but
from pages.ui.boxes import ask_first, lazy_box
from pages.ui.glossary import tell
from pages.ui.language import plain, section, t
from pages.ui.navigation import open_page
from pages.ui.runs import follow, is_live
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.run_store import RunStore

GUESSES = ("as_well", "less", "hardly")


def separation(train: float, held_out: float, majority: float) -> str:
    """Return how well held-out points separate beside training points, by the accuracy of their nearest neighbours.

    "as_well" is within two points; "hardly" is less than half of the way from the commonest class to the training
    points.
    """
    if train - held_out < LITTLE:
        return "as_well"
    return "hardly" if held_out - majority < (train - majority) / 2 else "less"


def _measured(store: RunStore) -> tuple[float, float] | None:
    needed = ("neighbours_train", "neighbours_held_out")
    for layout in reversed(store.layouts()):
        if all(name in layout.measures for name in needed):
            return layout.measures[needed[0]], layout.measures[needed[1]]
    return None


def _show_separation(store: RunStore) -> None:
    options = {name: t(f"train_try.{name}") for name in GUESSES}
    cover = ask_first(section("train", "try_separate"), options, name="train_separate", about=store.id)
    found = None if is_live(store.status()) else _measured(store)
    if found is None:
        if cover.open:
            st.caption(t("train_try.wait"))
        return
    came = separation(*found, store.facts().get("baselines", {}).get("majority", 0.0))
    train, held_out = (f"{value:.1%}" for value in found)
    cover.judge(came, t("train_try.measured", train=train, held_out=held_out))


def _show_residual(store: RunStore) -> None:
    tell(section("train", "try_residual"))
    if st.button(t("train_try.no_residual"), icon=":material/fork_right:"):
        try:
            made = same_but(store, "residual", False)
        except (RunError, ValueError) as error:
            st.error(plain(str(error)), icon=":material/error:")
            return
        follow(made.id, name="other")
        open_page("compare")


def show_try(store: RunStore) -> None:
    """Ask for predictions about a run."""
    box = lazy_box(t("train_try.heading"), icon=":material/science:", key="try_open")
    if box is None:
        return
    with box:
        if store.spec.data.kind == "classifier":
            _show_separation(store)
        if store.spec.model.residual:
            _show_residual(store)
