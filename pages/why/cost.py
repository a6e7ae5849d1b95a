"""What does attention cost? Timed in this process, and held against n^2 d."""

from pages.figures.charts import HUES
from pages.figures.curves import Side, curves
from pages.ui.asking import ask_once
from pages.ui.number_format import milliseconds
from pages.ui.url import choose, step_through
from pages.why.frame import SEED, Desk, Finding, Question, measure_again
from transformer_core.analysis.why.cost import LENGTHS, WIDTHS, Cost, time_attention

FIXED = {"length": (32, 64, 128, 256), "width": (32, 128, 512)}
FIXED_AT_FIRST = {"length": 64, "width": 128}


def _outcome(found: Cost) -> str:
    times = found.layer[-1] / found.layer[-2]
    return "two" if times < 2.5 else "three" if times < 3.5 else "four"


def _experiment(desk: Desk) -> Finding:
    with desk.controls:
        ways = {name: desk.word(f"along_{name}") for name in FIXED}
        along = choose(desk.word("along"), ways, name="why_cost_along", default="length")
        sizes = LENGTHS if along == "length" else WIDTHS
        upto = step_through(
            desk.word(f"upto_{along}"), sizes, name=f"why_cost_{along}", default=128 if along == "length" else 64
        )
        other = step_through(
            desk.word(f"other_{along}"), FIXED[along], name=f"why_cost_fixed_{along}", default=FIXED_AT_FIRST[along]
        )
        measurement = measure_again(desk.name)
    answer = ask_once(time_attention, along=along, other=other, seed=SEED, measurement=measurement)
    lengths = ask_once(time_attention, along="length", other=64, seed=SEED, measurement=measurement)
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
    numbers = {
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
    return Finding(_outcome(lengths.value), numbers, along)


COST = Question("cost", ("two", "three", "four"), _experiment)
