"""Same but: from one run a second one with exactly one thing changed, and a prediction of what that does."""

from dataclasses import replace
from typing import Any, get_args

import streamlit as st

from pages.kit.experiment import lazy_box
from pages.kit.glossary import show_prose
from pages.kit.runs import begin_run, follow, is_live, refuse_read_only
from pages.kit.url import current, keep
from pages.language import plain, section, t
from pages.serving.owners import may_change
from pages.train.settings import label_of, value_word
from transformer_core.config import Positions
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.settings import called, change, settings
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import RECURRENT_KINDS, AlignmentChoice, InitialWeights, Network, Origin, RunSpec

LITTLE = 2.0  # points
GUESSES = ("better", "same", "worse")
NONE = "none"  # who foretells nothing is shown what came of it
NETWORKS = get_args(Network)
SWITCHES = ("residual", "scale_scores", "scale_embeddings")
DECODERS = ("gpt", "translation")


def one_changes(spec: RunSpec) -> dict[str, tuple[str, Any]]:
    """Return every single change that is offered for a run: a setting and its other value, by a name for both."""
    now = settings(spec)
    found = _of_recurrent(spec, now) if spec.network.network != "transformer" else _of_transformer(spec, now)
    branched = spec.origin is not None and spec.origin.frame is not None
    if spec.data.kind in RECURRENT_KINDS and not branched:  # no network begins with another one's weights
        found += [("network", name) for name in NETWORKS]
    if spec.data.kind == "classifier":
        found.append(("softmax_before_loss", not now["softmax_before_loss"]))
    return {f"{name}={value}": (name, value) for name, value in found if now[name] != value}


def _of_recurrent(spec: RunSpec, now: dict[str, Any]) -> list[tuple[str, Any]]:
    found = [("initial", value) for value in get_args(InitialWeights)]
    if spec.data.kind == "translation":
        found = [("alignment", name) for name in get_args(AlignmentChoice)] + found
    if spec.data.kind == "classifier":
        found.append(("summary", "mean" if now["summary"] == "last" else "last"))
    other = "one_hot" if spec.kind == "lm" else "bidirectional"
    return [*found, (other, not now[other])]


def _of_transformer(spec: RunSpec, now: dict[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = [("residual", not now["residual"]), ("positions", "none")]
    found += [("activation", "relu" if now["activation"] != "relu" else "gelu")]
    found += [("norm_order", "post" if now["norm_order"] == "pre" else "pre")]
    found += [(name, not now[name]) for name in SWITCHES[1:]]
    found += [("initial", "unit" if now["initial"] == "usual" else "usual")]
    found += [("positions", value) for value in get_args(Positions) if value != "none"]
    if spec.data.kind in DECODERS:
        found.append(("causal", not now["causal"]))
    if spec.data.kind == "classifier":
        found.append(("pooling", "mean" if now["pooling"] == "cls" else "cls"))
    return found


def same_but(store: RunStore, name: str, value: Any) -> RunStore:
    """Start a run like another in all but one setting, seed and data included, and return it.

    Raises:
        RunError: it cannot be made or started.
        ValueError: the change does not go with the rest.
    """
    spec = change(store.spec, **{name: value})
    began = store.spec.origin
    origin = began if began is not None and began.frame is not None else Origin(run=store.id)
    file = spec.data.file
    named = replace(spec, name=called(store.spec, store.spec, spec), origin=origin)
    return begin_run(named, None if file is None else store.folder / file)


def offer_same_but(store: RunStore, *, expanded: bool) -> None:
    """Let a person change one thing of a run and predict what that does; then start it as the other run.

    A run that learned from somebody's own data is that person's to repeat; one that heals a model keeps its settings.
    """
    if store.spec.data.file is not None and not may_change(store.owner):
        return
    if store.spec.start is not None:  # its weights are of a model that has these settings
        return
    box = lazy_box(t("compare.same_but"), icon=":material/fork_right:", key="same_but_open", opened=expanded)
    if box is not None:
        with box:
            if not refuse_read_only():
                _show_changes(store)


def _show_changes(store: RunStore) -> None:
    changes = one_changes(store.spec)
    now = settings(store.spec)
    arrows = {
        option: f"{label_of(name)}: {value_word(name, now[name])} → {value_word(name, value)}"
        for option, (name, value) in changes.items()
    }
    guesses = {name: t(f"guess.{name}") for name in GUESSES}
    show_prose(section("compare", "same_but"))
    what, guess_place, start = st.columns([2, 2, 1], vertical_alignment="bottom", gap="medium")
    with what:
        chosen = st.selectbox(
            t("compare.change"), list(changes), format_func=arrows.__getitem__, key=f"change {store.id}"
        )
    with guess_place:
        guess = st.radio(
            t("compare.guess"),
            GUESSES,
            format_func=guesses.__getitem__,
            index=None,
            horizontal=True,
            key=f"guess {store.id} {chosen}",
        )
    with start:
        pressed = st.button(t("compare.start"), type="primary", icon=":material/fork_right:", width="stretch")
    if not pressed:
        return
    try:
        made = same_but(store, *changes[chosen])
    except (RunError, ValueError) as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    follow(made.id, name="other")
    keep("guess", f"{made.id}.{guess or NONE}", "")
    st.rerun()


def points(first: float, second: float) -> float:
    """Return by how many points of a hundred a share is higher than another, to the tenth that is shown."""
    return round(100 * (second - first), 1)


def measured_change(first: float, second: float) -> str:
    """Return what became of the held-out accuracy: "better", "worse", or "same" by less than two points, as shown."""
    moved = points(first, second)
    return "same" if abs(moved) < LITTLE else "better" if moved > 0 else "worse"


def show_answer(first: RunStore, second: RunStore) -> None:
    """Once both runs rest, say whether the prediction came true, by their held-out accuracy."""
    run, _, guess = (current("guess") or "").partition(".")
    if run != second.id or guess not in (*GUESSES, NONE):
        return
    keep("guess", f"{run}.{guess}", "")
    if is_live(first.status()) or is_live(second.status()):
        if guess != NONE:
            st.caption(t("compare.foretold", guess=t(f"guess.{guess}")))
        return
    ends = [store.frames()[-1:] for store in (first, second)]
    if not all(ends) or any("held_out_accuracy" not in end[0].measures for end in ends):
        return
    before, after = (end[0].measures["held_out_accuracy"] for end in ends)
    came = measured_change(before, after)
    if guess == NONE:
        said = t("try.shown", outcome=t(f"guess.{came}"))
    else:
        said = t("compare.right") if came == guess else t("compare.wrong", guess=t(f"guess.{guess}"))
    moved = f"{points(before, after):+.1f}"
    measured = t("compare.measured", before=f"{before:.1%}", after=f"{after:.1%}", moved=moved)
    st.success(f"{said} {measured}", icon=":material/science:")
