"""Dot product or additive attention, and what does attention cost? Both questions are timed by the server."""

from collections.abc import Sequence
from typing import Any

from pages.figures.charts import HUES
from pages.figures.curves import Side, curves
from pages.kit.asking import Answer
from pages.kit.controls import Choice
from pages.kit.number_format import milliseconds
from pages.kit.waiting import awaited, say_when_busy
from pages.language import t
from pages.why.frame import SEED, Desk, Finding, measure_again, question
from transformer_core.analysis.why.cost import LENGTHS as TIMED_LENGTHS
from transformer_core.analysis.why.cost import WIDTHS as TIMED_WIDTHS
from transformer_core.analysis.why.cost import Cost, time_attention
from transformer_core.analysis.why.scorings import WIDTHS as SCORED_WIDTHS
from transformer_core.analysis.why.scorings import ScoringTimes, spread_of_scorings, time_scorings

STEPS = ("scores", "softmax", "mixture")
HUES_OF_STEPS = (HUES["query"], HUES["weights"], HUES["value"])


def _size(name: str, sizes: Sequence[int], label: str, default: int) -> Choice[int]:
    return Choice(f"why_{name}", sizes, label=f"why.{label}", default=default, kind=int, form="steps")


ALONG = Choice("why_cost_along", ("length", "width"), label="why.cost.along", words="why.cost.along_{}")
UPTO = {
    "length": _size("cost_length", TIMED_LENGTHS, "cost.upto_length", 128),
    "width": _size("cost_width", TIMED_WIDTHS, "cost.upto_width", 64),
}
OTHER = {
    "length": _size("cost_fixed_length", (32, 64, 128, 256), "cost.other_length", 64),
    "width": _size("cost_fixed_width", (32, 128, 512), "cost.other_width", 128),
}
WIDTH = _size("scorings_width", SCORED_WIDTHS, "scorings.width", 32)
TOKENS = _size("scorings_tokens", (16, 32, 64, 128), "scorings.tokens", 64)


def _outcome_of_cost(found: Cost) -> str:
    times = found.layer[-1] / found.layer[-2]
    return "two" if times < 2.5 else "three" if times < 3.5 else "four"


def _numbers_of_steps(found: Cost) -> dict[str, str]:
    """Return each step's share of the time at the greatest size, and its slope, by the places of the message."""
    whole = sum(getattr(found, name)[-1] for name in STEPS)
    shares = {name: f"{getattr(found, name)[-1] / whole:.0%}" for name in STEPS}
    return shares | {f"{name}_slope": f"{getattr(found, f'{name}_slope'):.2f}" for name in STEPS}


def _show_cost(desk: Desk, answer: Answer[Cost], along: str, upto: int) -> None:
    """Show the times of a layer and of attention, what both multiply, and the times of attention's steps."""
    found = answer.value
    across = Side(desk.word(f"{along}_axis"), log=True)
    with desk.picture:
        series = {desk.word(name): 1_000 * getattr(found, name) for name in ("layer", "attention", "fused")}
        hues = (HUES["residual"], HUES["weights"], HUES["query"])
        up = Side(desk.word("milliseconds"), log=True)
        chart = curves(found.sizes, series, across=across, up=up, upto=upto, hues=hues)
        desk.chart(chart, answer, "time")
        series = {desk.word("layer"): found.layer_count, desk.word("attention"): found.attention_count}
        up = Side(desk.word("count"), log=True, format="~s")
        chart = curves(found.sizes, series, across=across, up=up, at=found.even, hues=hues)
        desk.chart(chart, answer, "counted")
        series = {desk.word(name): 1_000 * getattr(found, name) for name in STEPS}
        up = Side(desk.word("milliseconds"), log=True)
        chart = curves(found.sizes, series, across=across, up=up, upto=upto, hues=HUES_OF_STEPS)
        desk.chart(chart, answer, "steps")


def _cost(desk: Desk) -> Finding:
    with desk.controls:
        along = ALONG.show()
        upto, other = UPTO[along].show(), OTHER[along].show()
        measurement = measure_again(desk.name)
    said = t("await.timing")
    asked: dict[str, Any] = {"seed": SEED, "measurement": measurement}
    with desk.picture:
        answer = awaited(time_attention, said, key="why_cost", height=400, along=along, other=other, **asked)
        lengths = awaited(time_attention, said, key="why_cost_lengths", height=400, along="length", other=64, **asked)
    if answer is None or lengths is None:
        return Finding(None)
    found = answer.value
    _show_cost(desk, answer, along, upto)
    with desk.picture:
        say_when_busy(max(found.spread, lengths.value.spread))
    numbers = _numbers_of_steps(found) | {
        "other": str(other),
        "attention_slope": f"{found.attention_slope:.2f}",
        "fused_slope": f"{found.fused_slope:.2f}",
        "layer_slope": f"{found.layer_slope:.2f}",
        "attention_count_slope": f"{found.attention_count_slope:.2f}",
        "layer_count_slope": f"{found.layer_count_slope:.2f}",
        "low": str(found.sizes[-4]),
        "high": str(found.sizes[-1]),
        "layer": milliseconds(found.layer[-1]),
        "doubling": f"{found.layer[-1] / found.layer[-2]:.1f}",
        "even": f"{found.even:.0f}",
        "part": f"{found.attention_count[0] / found.layer_count[0]:.0%}",
        "late": f"{found.attention_count[-1] / found.layer_count[-1]:.0%}",
    }
    return Finding(_outcome_of_cost(lengths.value), numbers, along)


COST = question("cost", ("two", "three", "four"), _cost, group="attention")


def _outcome_of_scorings(found: ScoringTimes) -> str:
    return "alike" if found.ratio < 3 else "tens" if found.ratio < 30 else "hundred"


def _scorings(desk: Desk) -> Finding:
    with desk.controls:
        width, n_tokens = WIDTH.show(), TOKENS.show()
        measurement = measure_again(desk.name)
    asked: dict[str, Any] = {"n_tokens": n_tokens, "seed": SEED, "measurement": measurement}
    with desk.picture:
        timed = awaited(time_scorings, t("await.timing"), key="why_scorings", height=400, **asked)
        spread = awaited(spread_of_scorings, t("await.timing"), key="why_spread", height=400, seed=SEED)
    if timed is None or spread is None:
        return Finding(None)
    times, scores = timed.value, spread.value
    across = Side(desk.word("d_k"), log=True)
    with desk.picture:
        series = {desk.word("dot"): 1_000 * times.dot_product, desk.word("additive"): 1_000 * times.additive}
        up = Side(desk.word("milliseconds"), log=True)
        hues = (HUES["query"], HUES["positions"])
        chart = curves(times.widths, series, across=across, up=up, upto=width, hues=hues)
        desk.chart(chart, timed, "time")
        series = {
            desk.word("dot"): scores.dot_product,
            desk.word("additive"): scores.additive,
            desk.word("dot_divided"): scores.divided,
            desk.word("additive_divided"): scores.additive_divided,
        }
        hues = (HUES["query"], HUES["positions"], HUES["weights"], HUES["residual"])
        up = Side(desk.word("deviation"), log=True)
        chart = curves(scores.widths, series, across=across, up=up, upto=width, hues=hues)
        desk.chart(chart, spread, "spread")
        say_when_busy(times.spread)
    numbers = {
        "tokens": str(n_tokens),
        "ratio": f"{times.ratio:.0f}",
        "dot": milliseconds(times.dot_product[-1]),
        "additive": milliseconds(times.additive[-1]),
        "dot_slope": f"{times.dot_product_slope:.2f}",
        "additive_slope": f"{times.additive_slope:.2f}",
        "floats": f"{times.floats:,}",
        "spread_dot": f"{scores.dot_product_slope:.2f}",
        "spread_additive": f"{scores.additive_slope:.2f}",
    }
    return Finding(_outcome_of_scorings(times), numbers)


SCORINGS = question("scorings", ("alike", "tens", "hundred"), _scorings, group="attention")
