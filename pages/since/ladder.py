"""The page's part on the whole ladder: what every model came to, and what each change was worth."""

import streamlit as st

from pages.figures.seeds import seeds_chart
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.experiment import say
from pages.kit.header import View
from pages.kit.number_format import markdown_table, minus
from pages.language import joined, t
from pages.room import Part
from transformer_core.analysis.gpt.ladder import RUNGS, Ladder, ladder
from transformer_core.analysis.gpt.rungs import WAYS


def drawing_of(answer: Answer[Ladder], key: str) -> Drawing:
    """Draw what some models of the ladder came to, a dot a seed."""
    found = answer.value
    names = [t(f"since.name_{rung}") for rung in found.rungs]
    words = {"value": t("since.nats"), "seed": t("since.seed"), "mean": t("since.mean")}
    return Drawing(key, seeds_chart(names, found.nats, words), answer, "since_ladder", t("since.ladder_label"))


def how_measured(found: Ladder) -> str:
    """Return in words how the ladder was measured."""
    made = found.measured
    numbers = {"steps": f"{made.steps:,}", "tokens": f"{made.tokens:,}", "asked": f"{made.asked:,}"}
    return joined(t("since.how", **numbers, seeds=found.nats.shape[1]), f"`{made.command}`")


def _show_ladder(view: View) -> None:
    """Show all rungs, what each was worth, and how it was measured."""
    answer = ask_once(ladder)
    found = answer.value
    show_drawing(drawing_of(answer, "since_ladder"))
    head = [t("since.rung"), t("since.source"), t("since.nats"), t("since.difference"), t("since.interval")]
    rows = []
    for place, rung in enumerate(RUNGS):
        worth = found.worth[place]
        ends = [minus(f"{one[place]:+.4f}") for one in (found.low, found.high)]
        interval = t("since.from_to", low=ends[0], high=ends[1]) if worth == worth else "–"
        rows.append(
            [
                t(f"since.name_{rung.name}"),
                rung.source,
                f"{found.nats[place].mean():.3f}",
                f"{worth:+.4f}" if worth == worth else "–",
                interval,
            ]
        )
    st.markdown(markdown_table(head, rows, right=3))
    kinds = ("better", "worse", "within")
    names = {kind: [t(f"since.name_{rung}") for rung in WAYS if found.outcome(rung) == kind] for kind in kinds}
    sentences = [
        t(f"since.all_{kind}", names=t("since.and").join(of_kind)) for kind, of_kind in names.items() if of_kind
    ]
    say(joined(*sentences))
    say(how_measured(found), small=True)


LADDER = Part("since", "ladder", _show_ladder)
