"""What a finished run measured, and a prediction made while it was under way, answered by its numbers."""

from dataclasses import dataclass

import streamlit as st

from pages.train.same_but import LITTLE, same_but
from pages.ui.boxes import ask_first, lazy_box
from pages.ui.glossary import tell
from pages.ui.language import plain, section, t
from pages.ui.navigation import open_page
from pages.ui.runs import follow, is_live
from transformer_core.training.runs.beginning import UNDAMAGED
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.run_store import RunStore

MUCH = 0.10


@dataclass(frozen=True)
class Outcome:
    """A run's last measures.

    Args:
        step: steps taken before them.
        train, held_out: accuracy, from 0 to 1.
        baselines: held-out accuracy of simple rules, by name, and of a damaged model as it was.
    """

    step: int
    train: float
    held_out: float
    baselines: dict[str, float]

    @property
    def best_rule(self) -> str | None:
        """The best of the simple rules, None where there are none."""
        return max((name for name in self.baselines if name != UNDAMAGED), key=self.baselines.__getitem__, default=None)

    @property
    def verdict(self) -> str:
        """What the numbers show: "memorises", "nothing", "holds", or "measured" where nothing is there to compare."""
        if self.train - self.held_out >= MUCH:
            return "memorises"
        if self.best_rule is None:
            return "measured"
        return "holds" if self.held_out - self.baselines[self.best_rule] >= LITTLE else "nothing"


def outcome(store: RunStore) -> Outcome | None:
    """Return a run's last measures, None where there are none yet."""
    frames = store.frames()
    if not frames or {"train_accuracy", "held_out_accuracy"} - frames[-1].measures.keys():
        return None
    last = frames[-1]
    baselines = store.facts().get("baselines", {})
    return Outcome(last.step, last.measures["train_accuracy"], last.measures["held_out_accuracy"], baselines)


def verdict_words(found: Outcome) -> str:
    """Return what the numbers show, in words; nothing where there is nothing to compare them with."""
    rule = found.best_rule
    lead = 100 * (found.held_out - found.baselines[rule]) if rule else 0.0
    numbers = {"gap": f"{100 * (found.train - found.held_out):.0f}", "lead": f"{lead:+.1f}"}
    numbers["rule"] = t(f"baseline.{rule}") if rule else ""
    return {
        "memorises": lambda: t("result.memorises", gap=numbers["gap"]),
        "holds": lambda: t("result.holds", lead=numbers["lead"], rule=numbers["rule"]),
        "nothing": lambda: t("result.nothing", lead=numbers["lead"], rule=numbers["rule"]),
        "measured": lambda: "",
    }[found.verdict]()


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def show_results(store: RunStore) -> None:
    """Show the last measures beside those of simple rules, and what they mean."""
    found = outcome(store)
    if found is None:
        return
    kind, source = store.spec.data.kind, store.spec.data.source
    numbers = {t("result.held_out"): found.held_out, t("result.train"): found.train}
    numbers |= {_capital(t(f"baseline.{name}")): value for name, value in found.baselines.items()}
    said = t(
        f"result.of_{'pairs' if source == 'pairs' else kind}", step=f"{found.step:,}", held_out=f"{found.held_out:.1%}"
    )
    with st.container(border=True):
        for place, (label, value) in zip(st.columns(max(4, len(numbers))), numbers.items(), strict=False):
            place.metric(label, f"{value:.1%}")
        st.markdown(" ".join((said, verdict_words(found))))
        if kind == "classifier":
            _show_trust(store)
        for note in store.facts().get("notes", []):
            st.caption(plain(note))


def _show_trust(store: RunStore) -> None:
    last = next((layout for layout in reversed(store.layouts()) if layout.method == "tsne"), None)
    if last is None or {"trustworthiness", "neighbours_train", "neighbours_held_out"} - last.measures.keys():
        return
    st.caption(
        section("train", "trust").format(
            trust=f"{last.measures['trustworthiness']:.3f}",
            train=f"{last.measures['neighbours_train']:.1%}",
            held_out=f"{last.measures['neighbours_held_out']:.1%}",
        )
    )


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
        learned = store.spec
        if learned.network.network == "transformer" and learned.model.residual and learned.start is None:
            _show_residual(store)
