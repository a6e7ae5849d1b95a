"""Short trainings: may K = V, and are positions added or concatenated? Curves, and one dot for each run."""

from collections.abc import Callable, Sequence

import streamlit as st

from pages.figures.charts import HUES, PALETTE
from pages.figures.curves import Side, bars, curves, dots
from pages.kit.asking import Answer, ask
from pages.kit.controls import Slider
from pages.kit.device import show_processor
from pages.kit.number_format import percent
from pages.kit.waiting import awaited
from pages.language import language, t
from pages.why.frame import Desk, Finding, link_to, question
from transformer_core.analysis.short_training import Trial
from transformer_core.analysis.why.joined_positions import LENGTH, SYMBOLS, joined_sizes, train_joined_positions
from transformer_core.analysis.why.projections import parameters_saved, train_shared_values

RUNS = 3
FIRST_SEED = Slider("why_seed", 0, 20, 0, label="why.trial_seed")
LEAST_CLEAR = 0.01
VARIANTS = ("added", "concatenated", "none")


def _show_trial(desk: Desk, answer: Answer[Trial], variants: Sequence[str]) -> None:
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


def trial(desk: Desk, train: Callable[..., Trial], variants: Sequence[str], **options: str) -> Trial | None:
    """Train and show the curves and accuracies; return the result, or None while it is not there.

    The training starts once the picture is open.
    """
    with desk.controls:
        first = FIRST_SEED.show()
        st.caption(t("why.trial_note", runs=RUNS))
        show_processor()
    asked = {"seeds": tuple(range(first, first + RUNS)), **options}
    with desk.picture:
        answer = awaited(train, t("why.trial_running"), key=f"why_{desk.name}", height=400, **asked)
        if answer is not None:
            _show_trial(desk, answer, variants)
    return None if answer is None else answer.value


def clearly(found: Trial, variant: str, reference: str) -> str:
    """Return whether a variant is "worse", "same" or "better" by more than seeds alone change."""
    gap, noise = found.gap(variant, reference), max(found.noise(variant, reference), LEAST_CLEAR)
    return "same" if abs(gap) <= noise else "better" if gap > 0 else "worse"


def trial_numbers(found: Trial, variant: str, reference: str) -> dict[str, str]:
    """Return the values of a sentence that compares two variants."""
    return {
        "gap": f"{100 * found.gap(variant, reference):+.1f}",
        "noise": f"{100 * found.noise(variant, reference):.1f}",
        "variant": percent(float(found.of(variant, found.accuracy).mean())),
        "reference": percent(float(found.of(reference, found.accuracy).mean())),
        "runs": str(RUNS),
    }


def _values(desk: Desk) -> Finding:
    answer = ask(parameters_saved, bundle=desk.view.bundle)
    saved = answer.value
    with desk.picture:
        chart = bars(
            [desk.word("attention"), desk.word("whole")],
            {
                desk.word("variant_own"): [saved.own, saved.whole_own],
                desk.word("variant_shared"): [saved.shared, saved.whole_shared],
            },
            across="",
            up=Side(desk.word("parameters"), format="~s"),
            hues=(HUES["value"], HUES["key"]),
        )
        desk.chart(chart, answer, "saved")
    found = trial(desk, train_shared_values, ("own", "shared"), language=language())
    if found is None:
        return Finding(None)
    numbers = {
        "saved": f"{saved.own - saved.shared:,}",
        "of_attention": percent(1 - saved.shared / saved.own),
        "of_whole": percent(1 - saved.whole_shared / saved.whole_own),
        **trial_numbers(found, "shared", "own"),
    }
    return Finding(clearly(found, "shared", "own"), numbers)


VALUES = question("values", ("worse", "same", "better"), _values, group="projections")


def _positions(desk: Desk) -> Finding:
    answer = ask(joined_sizes)
    sizes = answer.value
    with desk.picture:
        chart = bars(
            [desk.word(f"variant_{name}") for name in VARIANTS],
            {desk.word("parameters"): [getattr(sizes, name) for name in VARIANTS]},
            across="",
            up=Side(desk.word("parameters"), format="~s"),
            height=240,
        )
        desk.chart(chart, answer, "sizes")
    with desk.controls:
        link_to("positions", desk.word("link"))
    found = trial(desk, train_joined_positions, VARIANTS)
    if found is None:
        return Finding(None)
    numbers = {
        "length": str(LENGTH),
        "symbols": str(SYMBOLS),
        "extra": f"{sizes.concatenated - sizes.added:,}",
        "none": f"{found.of('none', found.accuracy).mean():.0%}",
        "chance": f"{found.chance:.0%}",
        "loss_added": f"{found.of('added', found.losses).mean():.2f}",
        "loss_concatenated": f"{found.of('concatenated', found.losses).mean():.2f}",
        **trial_numbers(found, "concatenated", "added"),
    }
    return Finding(clearly(found, "concatenated", "added"), numbers)


POSITIONS = question("positions", ("worse", "same", "better"), _positions, group="rest")
