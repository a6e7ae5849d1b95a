"""Deletion test of the measures: hide words in the order of each measure, and see how fast the verdict falls."""

import streamlit as st

from pages.encoder.figures import stage_lines
from pages.encoder.names import class_name, measure_names
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.waiting import awaited
from pages.language import section, t
from transformer_core.analysis.encoder.faithfulness import (
    FEWEST_WORDS,
    Deletion,
    DeletionOnReviews,
    deletion,
    deletion_on_reviews,
)
from transformer_core.analysis.encoder.measures import MEASURES, hiding_token
from transformer_core.analysis.encoder.saliency import Baseline


def show_deletion(view: View, *, steps: int, baseline: Baseline) -> None:
    """Show how fast the verdict falls in the order of each measure; nothing where too few words can be hidden."""
    if hiding_token(view.bundle) is None or len(view.encoding) - sum(view.encoding.special) < FEWEST_WORDS:
        return
    st.subheader(t("encoder.believe_heading"), anchor=False)
    show_prose(section("encoder", "believe"))
    asked = {"prompt": view.prompt, "steps": steps, "baseline": baseline}
    answer = awaited(deletion, t("encoder.hiding"), key="encoder_believe", **asked)
    if answer is None:
        return
    label = class_name(view, answer.value.winner)
    _show_falls(answer, t("encoder.axis_left", label=label), key="encoder_believe")
    found = answer.value
    key = "encoder.believe_here" if found.area[found.best] < found.area[-1] else "encoder.believe_none"
    st.markdown(t(key, label=label, **_areas(found)))


def beats_chance(found: DeletionOnReviews) -> bool:
    """Tell whether the best measure's order does better than a random one, by more than its standard error."""
    return bool(found.area[found.best] + found.error[found.best] < found.area[-1])


def show_deletion_on_reviews(view: View, count: int) -> None:
    """Show the same test over the built-in reviews, and which measure does best there."""
    if hiding_token(view.bundle) is None:
        return
    asked = {"bundle": view.bundle, "count": count}
    answer = awaited(deletion_on_reviews, t("encoder.reading", count=count), key="encoder_believe_reviews", **asked)
    if answer is None:
        return
    found = answer.value
    st.markdown(
        t(
            "encoder.believe_reviews" if beats_chance(found) else "encoder.believe_no_review",
            count=found.reviews,
            error=f"{100 * found.error[found.best]:.0f}",
            wins=int(found.wins[found.best]),
            **_areas(found),
        )
    )
    _show_falls(answer, t("encoder.axis_left_reviews"), key="encoder_believe_reviews")


def _show_falls(answer: Answer[Deletion] | Answer[DeletionOnReviews], value: str, *, key: str) -> None:
    found = answer.value
    names = [*measure_names(), t("encoder.random_order")]
    chart = stage_lines(
        [f"{share:.0%}" for share in found.shares],
        dict(zip(names, found.left, strict=True)),
        {"stage": t("encoder.axis_hidden"), "value": value},
        domain=(0.0, 1.0),
        format=".1%",
    )
    show_chart(chart, answer, key=key, label=t("encoder.believe_heading"))
    order = sorted(range(len(names)), key=lambda place: found.area[place])
    st.caption(" · ".join(f"{names[place]} {found.area[place]:.0%}" for place in order))


def _areas(found: Deletion | DeletionOnReviews) -> dict[str, str]:
    names = dict(zip(MEASURES, measure_names(), strict=True))
    return {
        "best": names[MEASURES[found.best]],
        "area": f"{found.area[found.best]:.0%}",
        "random": f"{found.area[-1]:.0%}",
    }
