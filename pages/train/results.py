"""What a finished run measured, and a prediction made while it was under way, answered by its numbers."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import streamlit as st

from pages.kit.experiment import ask_first, lazy_box
from pages.kit.glossary import show_prose
from pages.kit.navigation import open_page
from pages.kit.number_format import significant
from pages.kit.runs import follow, is_live
from pages.language import joined, plain, section, t
from pages.train.variant import LITTLE, points, same_but
from transformer_core.analysis.coming_apart import are_separate, border_of
from transformer_core.shares import interval
from transformer_core.training.config import TrainConfig
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.records import Curves, Frame, StoredPoints
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.tasks.make import TRAINED_ON, UNDAMAGED

MUCH = 10.0  # points
DIVERGED = 2.0  # times the loss that a run began with, or that of guessing where it began with less
NO_NUMBER = re.compile(r"step ([0-9]+): the loss is ")  # as of loop.DivergedError


@dataclass(frozen=True)
class Divergence:
    """How a run went astray.

    Args:
        step: from which on its loss stays above DIVERGED times the usual one, or at which it was no number.
        usual: the loss that it began with, or that of guessing where that is more; in nats.
        end: the loss of what it learns from at the last frame; None for no number.
    """

    step: int
    usual: float
    end: float | None


def divergence(frames: Sequence[Frame], curves: Curves, *, guess: float, message: str = "") -> Divergence | None:
    """Return how a run diverged, None where its loss did not end above DIVERGED times the usual one.

    Args:
        guess: the loss of naming every class or token equally likely, in nats.
        message: of a run that failed.
    """
    losses = [frame.measures.get("train_loss") for frame in frames]
    if not losses or losses[0] is None:
        return None
    usual = max(guess, losses[0])
    border = DIVERGED * usual
    if found := NO_NUMBER.match(message):
        return Divergence(int(found[1]), usual, None)
    above = [loss is None or loss > border for loss in losses]
    if not above[-1]:
        return None
    first = len(above) - next((back for back, one in enumerate(reversed(above)) if not one), len(above))
    low, high = frames[first - 1].step, frames[first].step
    beyond = curves.step[(curves.step > low) & (curves.step <= high) & ~(curves.loss <= border)]
    return Divergence(int(beyond[0]) if beyond.size else high, usual, losses[-1])


@dataclass(frozen=True)
class Outcome:
    """A run's last measures.

    Args:
        step: steps taken before them.
        train, held_out: accuracy, from 0 to 1.
        baselines: held-out accuracy of simple rules, by name, and of a damaged model as it was.
        counts: of the examples that "train" and "held_out" are shares of; empty where nobody knows.
        diverged: how it went astray, None where it did not.
    """

    step: int
    train: float
    held_out: float
    baselines: dict[str, float]
    counts: Mapping[str, int] = field(default_factory=dict)
    diverged: Divergence | None = None

    @property
    def gap(self) -> float:
        """By how many points it does better on what it learned from, as shown."""
        return points(self.held_out, self.train)

    @property
    def lead(self) -> float | None:
        """By how many points it does better than the best simple rule, as shown; None where there is no rule."""
        return None if self.best_rule is None else points(self.baselines[self.best_rule], self.held_out)

    def spread(self, name: str) -> float:
        """Return half the 95 % interval of "train" or "held_out" in points; 0 where nobody knows of how many it is."""
        if not self.counts.get(name):
            return 0.0
        low, high = interval(getattr(self, name), self.counts[name])
        return 50 * (high - low)

    @property
    def best_rule(self) -> str | None:
        """The best of the simple rules, None where there are none."""
        rules = (name for name in self.baselines if name not in (UNDAMAGED, TRAINED_ON))
        return max(rules, key=self.baselines.__getitem__, default=None)

    @property
    def verdict(self) -> str:
        """What the numbers show.

        "diverged": its loss ended far above where it began; "memorises": MUCH or more better on what it learned from,
        and by more than so few examples can make; "holds": LITTLE or more better than the best rule, and likewise;
        "unsure": LITTLE or more, but no more than that; "nothing": less; "measured" where there is no rule.
        """
        if self.diverged is not None:
            return "diverged"
        if self.gap >= MUCH and self.gap > math.hypot(self.spread("train"), self.spread("held_out")):
            return "memorises"
        if self.lead is None:
            return "measured"
        if self.lead < LITTLE:
            return "nothing"
        return "holds" if self.lead > self.spread("held_out") else "unsure"


def healed_words(found: Outcome) -> str:
    """Return in words how a healed model compares with the undamaged one after the same training; nothing for others.

    They are told apart where the difference is more than both shares' intervals together make likely.
    """
    if TRAINED_ON not in found.baselines:
        return ""
    whole = found.baselines[TRAINED_ON]
    lead = points(whole, found.held_out)
    spread = math.hypot(found.spread("held_out"), replace(found, held_out=whole).spread("held_out"))
    case = "level" if abs(lead) <= spread else "above" if lead > 0 else "below"
    return t(f"result.healed_{case}", whole=f"{whole:.1%}", lead=f"{abs(lead):.1f}", step=f"{found.step:,}")


def outcome(store: RunStore) -> Outcome | None:
    """Return a run's last measures, None where there are none yet."""
    frames = store.frames()
    if not frames or {"train_accuracy", "held_out_accuracy"} - frames[-1].measures.keys():
        return None
    last = frames[-1]
    facts = store.facts()
    train, held_out = (last.measures[name] for name in ("train_accuracy", "held_out_accuracy"))
    guess = math.log(max(2, len(facts.get("labels", ())) or facts.get("model", {}).get("vocab_size", 0)))
    astray = divergence(frames, store.curves(), guess=guess, message=store.status().message)
    return Outcome(last.step, train, held_out, facts.get("baselines", {}), facts.get("counts", {}), astray)


def _what_to_try(training: TrainConfig) -> str:
    """Return what may keep a run from diverging: a tenth of its learning rate, and what its settings lack."""
    tries = [t("result.try_rate", rate=f"{training.learning_rate / 10:g}")]
    tries += [t("result.try_warm_up")] if not training.warm_up else []
    tries += [t("result.try_clip")] if training.clip_norm is None else []
    return t("result.try", tries=t("result.try_or").join(tries))


def diverged_words(found: Divergence, training: TrainConfig) -> str:
    """Return that a run diverged, at which step, and what to try."""
    numbers = {"step": f"{found.step:,}", "usual": significant(found.usual, 3), "times": f"{DIVERGED:g}"}
    if found.end is None:
        said = t("result.diverged_no_number", step=numbers["step"])
    else:
        said = t("result.diverged", end=significant(found.end, 3), **numbers)
    return joined(said, t("result.diverged_means"), _what_to_try(training))


def verdict_words(found: Outcome) -> str:
    """Return what the numbers show, in words; nothing where there is nothing to compare them with, or it diverged."""
    if found.verdict in ("measured", "diverged"):
        return ""
    if found.verdict == "memorises":
        return t("result.memorises", gap=f"{found.gap:.1f}")
    numbers = {"lead": f"{found.lead:+.1f}", "rule": t(f"baseline.{found.best_rule}")}
    if found.verdict == "unsure":
        numbers["spread"] = f"{found.spread('held_out'):.1f}"
    return t(f"result.{found.verdict}", **numbers)


def points_apart(train: float, held_out: float, points: StoredPoints) -> str:
    """Return which points are apart by what neighbours name rightly: "both", "train", "held_out" or "neither"."""
    parts = {"train": (train, ~points.held_out), "held_out": (held_out, points.held_out)}
    apart = [name for name, (share, part) in parts.items() if are_separate(share, points.labels[part])]
    return {0: "neither", 1: "".join(apart), 2: "both"}[len(apart)]


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
        if found.diverged is not None:
            st.warning(diverged_words(found.diverged, store.spec.training), icon=":material/trending_up:")
            return
        measured, points = _measured(store), store.points()
        apart = t(f"result.apart_{points_apart(*measured, points)}") if measured and points else ""
        st.markdown(joined(*filter(None, (said, healed_words(found), verdict_words(found), apart))))
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


GUESSES = ("as_well", "less", "hardly", "neither")


def separation(train: float, held_out: float, labels: np.ndarray) -> str:
    """Return how well held-out points separate beside training points, by the accuracy of their nearest neighbours.

    "neither": not even the training points are apart; "as_well": less than LITTLE worse; "hardly": less than half of
    the way from the commonest class to the training points.

    Shapes:
        labels: (point,), class numbers of the training points
    """
    if not are_separate(train, labels):
        return "neither"
    if points(held_out, train) < LITTLE:
        return "as_well"
    majority = 2 * border_of(labels) - 1
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
    points = store.points()
    if (came := outcome(store)) is not None and came.diverged is not None:
        st.caption(t("train_try.diverged"))
        return
    if found is None or points is None:
        if cover.open:
            st.caption(t("train_try.wait"))
        return
    apart = separation(*found, points.labels[~points.held_out])
    train, held_out = (f"{value:.1%}" for value in found)
    cover.judge(apart, t("train_try.measured", train=train, held_out=held_out))


def _show_residual(store: RunStore) -> None:
    show_prose(section("train", "try_residual"))
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
