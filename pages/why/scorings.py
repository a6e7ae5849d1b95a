"""Dot product or additive attention? Their times and the spread of their scores, as heads grow wider."""

from pages.figures.charts import HUES
from pages.figures.curves import Side, curves
from pages.ui.asking import ask_once
from pages.ui.number_format import milliseconds
from pages.ui.url import step_through
from pages.why.frame import SEED, Desk, Finding, Question, measure_again
from transformer_core.analysis.why.scorings import WIDTHS, ScoringTimes, spread_of_scorings, time_scorings

LENGTHS = (16, 32, 64, 128)


def _outcome(found: ScoringTimes) -> str:
    return "alike" if found.ratio < 3 else "tens" if found.ratio < 30 else "hundred"


def _experiment(desk: Desk) -> Finding:
    with desk.controls:
        width = step_through(desk.word("width"), WIDTHS, name="why_scorings_width", default=32)
        n_tokens = step_through(desk.word("tokens"), LENGTHS, name="why_scorings_tokens", default=64)
        measurement = measure_again(desk.name)
    timed = ask_once(time_scorings, n_tokens=n_tokens, seed=SEED, measurement=measurement)
    spread = ask_once(spread_of_scorings, seed=SEED)
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
    return Finding(_outcome(times), numbers)


SCORINGS = Question("scorings", ("alike", "tens", "hundred"), _experiment)
