"""The experiment of the page's part on heads: dropout on one head's weights, as in training."""

import numpy as np
import streamlit as st

from pages.attention.figures import side_by_side
from pages.figures.charts import HUES
from pages.figures.curves import Side, curves
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Seed, Slider
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.matrix import show_matrix
from pages.kit.verdict import outcome_word
from pages.kit.waiting import awaited
from pages.language import section, strings, t
from transformer_core.analysis.attention.dropped import DRAWS, DroppedWeights, dropped_weights
from transformer_core.layers.dropout import LEVELS

PERCENT = Slider("attention_dropout", 0, 90, 10, step=10, label="attention.dropout_share", format="%d%%")
N_DRAWS = Choice("attention_dropout_draws", DRAWS, label="attention.dropout_draws", default=64, kind=int, form="steps")
SEED = Seed("attention_dropout_seed")
SHORT = 16  # draws of a text, that a page reads at once
NEAR = 1e-6


@experiment("attention_dropout_open", "attention.try_dropout")
def try_dropout(view: View, layer: int, head: int) -> None:
    """Ask what the rows of a draw sum to, then show a draw, the mean over many, and what they do to the outcome."""
    share_place, draws_place, again_place = st.columns([2, 2, 1], vertical_alignment="bottom", gap="large")
    with share_place:
        percent = PERCENT.show()
    with draws_place:
        draws = N_DRAWS.show()
    with again_place:
        again, icon = t("attention.dropout_again"), ":material/casino:"
        st.button(again, icon=icon, on_click=SEED.next, key="attention_dropout_again")
    seed = SEED.read()
    asked = {"prompt": view.prompt, "layer": layer, "head": head, "percent": percent, "seed": seed, "draws": draws}
    answer = awaited(
        dropped_weights,
        t("attention.dropout_reading"),
        key="attention_dropout",
        height=420,
        brief=draws <= SHORT,
        **asked,
    )
    if answer is not None:
        _show(view, answer, f"{percent}%", f"{layer}.{head}.{percent}.{seed}.{draws}")


def _sums(found: DroppedWeights) -> str:
    real = found.row_sums[found.weights.sum(-1) > 0]  # rows of padding alone are 0 throughout
    if bool((np.abs(real - 1) < NEAR).all()):
        return "one"
    return "mixed" if bool((real > 1 + NEAR).any()) and bool((real < 1 - NEAR).any()) else "same_side"


def _show(view: View, answer: Answer[DroppedWeights], share: str, version: str) -> None:
    found = answer.value
    options = options_of("attention.sums_{}", ("one", "mixed", "same_side"))
    question = section("attention", "try_dropout").format(share=share)
    cover = ask_first(question, options, name="attention_dropout_sums", about=f"{view.name} {version}")
    low, high = (f"{value:.2f}" for value in (found.row_sums.min(), found.row_sums.max()))
    cover.judge(_sums(found), t("attention.sums_measured", low=low, high=high, mean=f"{found.row_sums.mean():.2f}"))
    with cover.picture():
        titles = options_of("attention.dropout_{}", ("none", "one", "mean"), draws=int(found.counts[-1]))
        words = strings("axis") | titles | {"weight": t("quantity.weights")}
        matrices = {"none": found.weights, "one": found.draw, "mean": found.mean}
        figure = side_by_side(matrices, view.encoding.labels, words, filename="attention_dropout")
        show_matrix(figure, answer, key="attention_dropped", version=version + view.encoding.text, files=True)
        _outcome(view, found)
        if len(found.counts) > 1 and found.probability:
            _nearer(answer)
        counted = {"share": share, "count": round(found.probability * LEVELS), "levels": LEVELS}
        say(section("attention", "dropout_after").format(**counted), small=True)


def _outcome(view: View, found: DroppedWeights) -> None:
    if found.winner < 0:
        say(t("attention.dropout_concludes_nothing"), small=True)
        return
    numbers = {
        "label": outcome_word(view, found.winner),
        "before": f"{found.before:.1%}",
        "first": f"{found.after[0]:.1%}",
        "mean": f"{found.after.mean():.1%}",
        "low": f"{found.after.min():.1%}",
        "high": f"{found.after.max():.1%}",
    }
    say(t("attention.dropout_outcome", draws=len(found.after), flips=found.flips, **numbers))


def _nearer(answer: Answer[DroppedWeights]) -> None:
    """Show how the mean comes back to the weights, beside one over the root of the number of draws."""
    found = answer.value
    guide = found.distances[0] / np.sqrt(found.counts)
    expected = t("attention.dropout_root")
    chart = curves(
        found.counts,
        {t("attention.dropout_distance"): found.distances, expected: guide},
        across=Side(t("attention.dropout_draws"), log=True),
        up=Side(t("attention.dropout_axis"), log=True),
        hues=(HUES["weights"], HUES["residual"]),
        guides={expected: float(found.counts[len(found.counts) // 2])},
        height=240,
    )
    label = t("attention.dropout_distance")
    show_chart(chart, answer, key="attention_nearer", stem="attention_dropout", label=label)
