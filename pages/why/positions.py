"""Add positions or concatenate them? A short training of both, and of neither, on a task of pure order."""

import streamlit as st

from pages.figures.curves import Side, bars
from pages.ui.asking import ask
from pages.ui.navigation import page_path
from pages.why.frame import Desk, Finding, Question
from pages.why.trials import clearly, trial, trial_numbers
from transformer_core.analysis.why.joined_positions import LENGTH, SYMBOLS, joined_sizes, train_joined_positions

VARIANTS = ("added", "concatenated", "none")


def _experiment(desk: Desk) -> Finding:
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
        if page_path("positions").exists():
            st.page_link(page_path("positions"), label=desk.word("link"), icon=":material/waves:")
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


POSITIONS = Question("positions", ("worse", "same", "better"), _experiment)
