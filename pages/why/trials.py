"""Short trainings on the Why? page: shown as curves and as one dot a run."""

from collections.abc import Callable, Sequence

import streamlit as st

from pages.figures.charts import PALETTE
from pages.figures.curves import Side, curves, dots
from pages.ui.asking import Answer
from pages.ui.boxes import awaited
from pages.ui.language import t
from pages.ui.number_format import percent
from pages.ui.url import slide
from pages.why.frame import Desk
from transformer_core.analysis.why.short_training import Trial

RUNS = 3
SEEDS = 20
LEAST_CLEAR = 0.01


def trial(desk: Desk, train: Callable[..., Trial], variants: Sequence[str], **options: str) -> Trial | None:
    """Show a short training; None until it has ended, where nobody asked to see it yet."""
    with desk.controls:
        first = int(slide(t("why.trial_seed"), 0, SEEDS, name="why_seed", default=0))
        st.caption(t("why.trial_note", runs=RUNS))
    asked = {"seeds": tuple(range(first, first + RUNS)), **options}
    with desk.picture:
        wanted = t("why.trial_running") if desk.open else None
        axes = t("why.trial_step"), t("why.trial_loss")
        answer = awaited(train, *axes, key=f"why_{desk.name}", wanted=wanted, **asked)
        if answer is not None:
            _show(desk, answer, variants)
    return None if answer is None else answer.value


def _show(desk: Desk, answer: Answer[Trial], variants: Sequence[str]) -> None:
    found = answer.value
    names = {variant: desk.word(f"variant_{variant}") for variant in variants}
    left, right = st.columns([3, 2])
    with left:
        losses = {
            name: found.losses[[own == variant for own in found.variants]].mean(0) for variant, name in names.items()
        }
        up = Side(t("why.trial_loss"))
        chart = curves(found.steps, losses, across=Side(t("why.trial_step")), up=up, hues=PALETTE, height=300)
        desk.chart(chart, answer, "trial_curves")
    with right:
        chart = dots(
            [names[variant] for variant in found.variants],
            found.accuracy,
            [names[variant] for variant in found.variants],
            across="",
            up=Side(t("why.trial_accuracy"), format=".0%"),
            details=[t("why.trial_run", seed=seed) for seed in found.seeds],
            rules={t("why.trial_chance"): found.chance},
            hues=PALETTE,
            height=300,
        )
        desk.chart(chart, answer, "trial_dots")


def clearly(found: Trial, variant: str, reference: str) -> str:
    """Return whether a variant is "worse", "same" or "better": beyond what seeds alone change."""
    gap, noise = found.gap(variant, reference), max(found.noise(variant, reference), LEAST_CLEAR)
    return "same" if abs(gap) <= noise else "better" if gap > 0 else "worse"


def trial_numbers(found: Trial, variant: str, reference: str) -> dict[str, str]:
    """Return what a sentence on two variants needs."""
    return {
        "gap": f"{100 * found.gap(variant, reference):+.1f}",
        "noise": f"{100 * found.noise(variant, reference):.1f}",
        "variant": percent(float(found.of(variant, found.accuracy).mean())),
        "reference": percent(float(found.of(reference, found.accuracy).mean())),
        "runs": str(RUNS),
    }
