"""What a run came to, said in a sentence that is computed from its numbers."""

from dataclasses import dataclass

import streamlit as st

from pages.ui.language import plain, section, t
from transformer_core.training.runs.store.run_store import RunStore

MUCH = 0.10
LITTLE = 0.02


@dataclass(frozen=True)
class Outcome:
    """A run's last measures.

    Args:
        step: steps taken before them.
        train, held_out: accuracy, from 0 to 1.
        baselines: held-out accuracy of simple rules, by name.
    """

    step: int
    train: float
    held_out: float
    baselines: dict[str, float]

    @property
    def best_rule(self) -> str | None:
        """The best of the simple rules, None where there are none."""
        return max(self.baselines, key=self.baselines.__getitem__, default=None)

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
    told = {"gap": f"{100 * (found.train - found.held_out):.0f}", "lead": f"{lead:+.1f}"}
    told["rule"] = t(f"baseline.{rule}") if rule else ""
    return {
        "memorises": lambda: t("result.memorises", gap=told["gap"]),
        "holds": lambda: t("result.holds", lead=told["lead"], rule=told["rule"]),
        "nothing": lambda: t("result.nothing", lead=told["lead"], rule=told["rule"]),
        "measured": lambda: "",
    }[found.verdict]()


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def show_results(store: RunStore) -> None:
    """Show the last measures beside those of simple rules, and what they mean."""
    found = outcome(store)
    if found is None:
        return
    kind = store.spec.data.kind
    numbers = {t("result.held_out"): found.held_out, t("result.train"): found.train}
    numbers |= {_capital(t(f"baseline.{name}")): value for name, value in found.baselines.items()}
    with st.container(border=True):
        for place, (label, value) in zip(st.columns(4), numbers.items(), strict=False):
            place.metric(label, f"{value:.1%}")
        st.markdown(
            " ".join(
                (
                    t(f"result.of_{kind}", step=f"{found.step:,}", held_out=f"{found.held_out:.1%}"),
                    verdict_words(found),
                )
            )
        )
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
