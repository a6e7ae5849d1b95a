"""Induction heads: whether the chosen model has one, which shipped models have none, and one that comes into being."""

import numpy as np
import streamlit as st

from pages.attention.figures import side_by_side
from pages.figures.charts import HUES, PALETTE
from pages.figures.curves import Side, curves, dots
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Slider
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.matrix import show_matrix
from pages.kit.number_format import markdown_table
from pages.kit.waiting import awaited_or_why
from pages.language import joined, strings, t
from transformer_core.analysis.corpus.head_measures import MEASURES, CorpusHeads
from transformer_core.analysis.corpus.induction import INDUCES_FROM
from transformer_core.analysis.corpus.induction_learned import EVERY, InductionLearned, induction_learned
from transformer_core.evaluation.induction import induction_measured

SEED = Slider("corpus_seed", 0, 20, 0, label="why.trial_seed")
SUDDEN_STEPS, SUDDEN_SHARE = 150, 0.5  # so much of the whole rise within so few steps is called sudden


def how_many(count: int) -> str:
    """Return which option of the question a count of induction heads is."""
    return "none" if count == 0 else "one" if count == 1 else "several"


@experiment("corpus_induction_open", "attention.induction_heading", icon=":material/repeat:")
def show_induction(view: View, answer: Answer[CorpusHeads]) -> None:
    """Ask how many induction heads the model has, then show every head's score, and those of the shipped models."""
    found, at = answer.value, MEASURES.index("induction")
    scores = found.values[at]
    there = np.flatnonzero(np.isfinite(scores))
    if not there.size:
        st.info(t("measure_lacks.induction"), icon=":material/info:")
        return
    options = options_of("attention.induction_{}", ("none", "one", "several"))
    cover = ask_first(t("attention.induction_ask"), options, name="corpus_induction", about=view.bundle.name)
    best = int(there[np.argmax(scores[there])])
    kind, layer, head = found.heads[best]
    numbers = {
        "layer": layer,
        "head": head,
        "score": f"{scores[best]:.3f}",
        "low": f"{found.bounds[0, at, best]:.3f}",
        "high": f"{found.bounds[1, at, best]:.3f}",
        "chance": f"{found.chance[at, best]:.3f}",
        "border": f"{INDUCES_FROM:.1f}",
        "sequences": found.sequences,
        "count": f"{found.counts[at, best]:,}",
    }
    induces = int(found.induces.sum())
    looks = "" if kind == "decoder" else t("attention.induction_sees_all")
    cover.judge(how_many(induces), joined(t("attention.induction_said", **numbers), looks))
    with cover.picture():
        layers = [str(found.heads[place][1]) for place in there]
        chart = dots(
            layers,
            scores[there],
            layers,
            across=t("attention.layer"),
            up=Side(t("measure.induction"), format=".2f", domain=(0.0, 1.0)),
            details=["{}.{}".format(*found.heads[place][1:]) for place in there],
            rules={
                t("attention.induction_border"): INDUCES_FROM,
                t("attention_corpus.uniform"): chance_of(found, best),
            },
            hues=PALETTE * len(set(layers)),
            height=300,
        )
        label = t("attention.induction_heading")
        show_chart(chart, answer, key="corpus_induction_dots", stem="induction", label=label)
        _show_shipped()


def chance_of(found: CorpusHeads, place: int) -> float:
    """Return the induction of a head that looks at everything it may see alike."""
    return float(found.chance[MEASURES.index("induction"), place])


def _show_shipped() -> None:
    """Say which shipped models have an induction head and which have none, a row each."""
    measured = induction_measured()
    having = [row.model for row in measured.rows if row.induces]
    kind = "some" if having else "none"
    values = {"count": len(measured.rows), "models": ", ".join(having), "sequences": measured.sequences}
    say(t(f"attention.induction_shipped_{kind}", border=f"{INDUCES_FROM:.1f}", **values))
    rows = [
        (
            row.model,
            f"{row.layer}.{row.head}",
            f"{row.score:.3f}",
            f"{row.low:.3f} … {row.high:.3f}",
            f"{row.chance:.3f}",
            f"{row.queries:,}",
        )
        for row in measured.rows
    ]
    names = ("model", "head", "value", "bounds", "uniform", "count")
    say(markdown_table([t(f"attention.corpus_{name}") for name in names], rows, right=4))
    say(t("attention.induction_command", command=measured.command), small=True)


def rises(found: InductionLearned) -> str:
    """Return how a head's induction rose: "never" to the border; "sudden" where SUDDEN_SHARE of the whole rise came
    within SUDDEN_STEPS; else "steady".
    """
    if found.appears < 0:
        return "never"
    scores = found.induction[:, found.layer, found.head]
    span = max(1, SUDDEN_STEPS // EVERY)
    most = max(float(scores[min(at + span, len(scores) - 1)] - scores[at]) for at in range(len(scores) - 1))
    return "sudden" if most >= SUDDEN_SHARE * float(scores.max() - scores[0]) else "steady"


@experiment("corpus_learned_open", "attention.learned_heading", icon=":material/model_training:")
def show_learned(view: View) -> None:
    """Ask how an induction head comes into being, then train a model of two layers and show its scores by step."""
    del view  # the model that learns is one of its own
    options = options_of("attention.learned_{}", ("steady", "sudden", "never"))
    cover = ask_first(t("attention.learned_ask"), options, name="corpus_learned")
    seed = SEED.show()
    with cover.picture():
        answer = awaited_or_why(induction_learned, t("attention.learned_running"), key="corpus_learned", seed=seed)
        if answer is not None:
            _show_curves(answer)
            _show_matrices(answer)
    if answer is None:
        return
    found = answer.value
    at = found.layer, found.head
    numbers = {
        "layer": found.layer,
        "head": found.head,
        "step": f"{found.appears:,}",
        "border": f"{INDUCES_FROM:.1f}",
        "score": f"{found.induction[-1][at]:.2f}",
        "low": f"{found.low[-1][at]:.2f}",
        "high": f"{found.high[-1][at]:.2f}",
        "chance": f"{found.chance:.2f}",
        "helper": f"{found.helper[0]}.{found.helper[1]}",
        "previous": f"{found.previous[-1][found.helper]:.2f}",
        "again": f"{found.loss_again[-1]:.2f}",
        "first": f"{found.loss_first[-1]:.2f}",
        "guess": f"{found.guess:.2f}",
    }
    outcome = rises(found)
    appeared = "never" if outcome == "never" else "said"
    cover.judge(outcome, t(f"attention.learned_measured_{appeared}", **numbers))


def _show_curves(answer: Answer[InductionLearned]) -> None:
    found = answer.value
    scores_place, losses_place = st.columns(2, gap="large")
    across = Side(t("why.trial_step"))
    hues = (HUES["weights"], HUES["positions"])
    with scores_place:
        series = {
            t("attention.learned_induction", name=f"{found.layer}.{found.head}"): found.induction[
                :, found.layer, found.head
            ],
            t("attention.learned_previous", name="{}.{}".format(*found.helper)): found.previous[:, *found.helper],
        }
        at = float(found.appears) if found.appears >= 0 else None
        up = Side(t("quantity.weights"), domain=(0.0, 1.0), format=".1f")
        chart = curves(found.steps, series, across=across, up=up, hues=hues, at=at, height=300)
        label = t("attention.learned_scores")
        show_chart(chart, answer, key="corpus_learned_scores", stem="induction_by_step", label=label)
    with losses_place:
        series = {t("attention.learned_first"): found.loss_first, t("attention.learned_again"): found.loss_again}
        up = Side(t("attention.learned_nats"))
        chart = curves(found.steps, series, across=across, up=up, hues=PALETTE, at=at, height=300)
        label = t("attention.learned_losses")
        show_chart(chart, answer, key="corpus_learned_losses", stem="induction_losses", label=label)


def _show_matrices(answer: Answer[InductionLearned]) -> None:
    """Show the head's weights on one sequence before the training and after it."""
    found, name = answer.value, f"{answer.value.layer}.{answer.value.head}"
    matrices = {moment: getattr(found, moment)[found.layer, found.head] for moment in ("before", "after")}
    words = strings("axis") | {moment: t(f"attention.learned_{moment}", name=name) for moment in matrices}
    words |= {"weight": t("quantity.weights")}
    figure = side_by_side(matrices, found.symbols, words, filename="induction_learned")
    show_matrix(figure, answer, key="corpus_learned_matrices", version=name, files=True)
    say(t("attention.learned_note", period=found.period), small=True)
