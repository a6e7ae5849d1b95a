"""What a mask does to the verdict, to a row that may see nothing, and which layers it takes."""

from dataclasses import replace

import numpy as np
import streamlit as st

from pages.masks.painter import Choices
from pages.ui.asking import ask
from pages.ui.boxes import ask_first, lazy_box
from pages.ui.glossary import tell
from pages.ui.language import plain, section, t
from pages.ui.verdict import concludes, outcome_word, show_outcome
from transformer_core.analysis.masks.masked_head import MaskedHead, masked_head, masked_row

A_LITTLE = 1.0  # percentage points
MOST_NAMED = 6


def _winner(probabilities: tuple[float, ...]) -> int:
    return max(range(len(probabilities)), key=probabilities.__getitem__)


def show_change(choices: Choices, found: MaskedHead) -> None:
    """Show the verdict before and after, the change, and how much of the text still reaches it."""
    if not concludes(choices.view):
        return
    before_place, after_place, change_place, reach_place = st.columns([2, 2, 1.1, 1.1], gap="medium")
    with before_place:
        st.caption(t("masks.before"))
        show_outcome(choices.view, found.before, beside=found.before)
    with after_place:
        st.caption(t("masks.after"))
        show_outcome(choices.view, found.after, beside=found.before)
    first = _winner(found.before)
    moved = 100 * (found.after[first] - found.before[first])
    with change_place:
        st.metric(t("masks.change", label=outcome_word(choices.view, first)), t("masks.points", moved=f"{moved:+.1f}"))
    with reach_place:
        reached = t("masks.reached", count=int(found.reach.sum()), all=len(found.reach))
        st.metric(t("masks.reach"), reached, help=t("masks.reach_help"))


def tell_deaf(choices: Choices, found: MaskedHead) -> None:
    """Say where nothing but the verdict's own token reaches it."""
    if found.before and int(found.reach.sum()) == 1:
        token = found.labels[int(found.reach.argmax())]
        st.info(t("masks.deaf", token=plain(token)), icon=":material/hearing_disabled:")


def show_wholly_masked(choices: Choices, found: MaskedHead) -> None:
    """Say why a row without any key has weights of 0, with what two other conventions give for that very row."""
    if not found.wholly_masked:
        return
    rows = found.wholly_masked
    row = rows[0]
    named = ", ".join(f"**{plain(found.labels[index])}** ({index})" for index in rows[:MOST_NAMED])
    more = t("masks.more_rows", count=len(rows) - MOST_NAMED) if len(rows) > MOST_NAMED else ""
    with st.container(border=True, key="masks_wholly_masked"):
        st.markdown(t("masks.wholly_masked", count=len(rows), rows=named + more))
        tell(section("masks", "wholly_masked"))
        one = ask(masked_row, **choices.arguments, row=row).value
        lines = [
            ("zeros", one.zeros, one.verdict_zeros),
            ("torch", one.torch_attention, one.verdict_zeros),
            ("softmax", one.softmax, one.verdict_softmax),
            ("large", one.large, one.verdict_large),
        ]
        head = [t("masks.convention"), t("masks.least"), t("masks.greatest"), t("masks.sum")]
        first = _winner(found.before) if found.before else None
        if first is not None:
            head.append(t("masks.verdict_then", label=outcome_word(choices.view, first)))
        table = [head, ["---", *["---:"] * (len(head) - 1)]]
        for name, weights, verdicts in lines:
            numbers = [f"{float(number):.4f}" for number in (weights.min(), weights.max(), weights.sum())]
            if first is not None:
                numbers.append(f"{verdicts[first]:.2%}" if np.isfinite(verdicts[first]) else "nan")
            table.append([t(f"masks.convention_{name}"), *numbers])
        st.markdown("\n".join(f"| {' | '.join(line)} |" for line in table))
        st.caption(
            t("masks.computed_on", row=plain(found.labels[row]), index=row, layer=choices.layer, head=choices.head)
        )


def compare_layers(choices: Choices) -> None:
    """Ask which moves the verdict more, this mask in every layer or in the chosen one alone, and measure."""
    box = lazy_box(t("try.heading"), icon=":material/science:", key="masks_try")
    if box is None:
        return
    with box:
        if not concludes(choices.view, key="concludes_try"):
            return
        options = {name: t(f"masks.guess_{name}") for name in ("all", "one", "neither")}
        cover = ask_first(
            section("masks", "try_layers").format(layer=choices.layer),
            options,
            name="masks_layers",
            about=choices.version,
        )
        moved = {}
        for name in ("all", "one"):
            found = ask(masked_head, **replace(choices, everywhere=name == "all").arguments).value
            first = _winner(found.before)
            moved[name] = 100 * (found.after[first] - found.before[first])
        apart = abs(moved["all"]) - abs(moved["one"])
        outcome = "neither" if abs(apart) < A_LITTLE else "all" if apart > 0 else "one"
        measured = t(
            "masks.measured_layers", layer=choices.layer, all=f"{moved['all']:+.2f}", one=f"{moved['one']:+.2f}"
        )
        cover.judge(outcome, measured)
