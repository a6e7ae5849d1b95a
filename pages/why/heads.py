"""Why several heads? What the heads of a trained layer look at, and what heads cost."""

from typing import Any

from pages.figures.charts import HUES
from pages.figures.curves import GREY, Side, curves
from pages.figures.matrix import Panel, Scale
from pages.kit.asking import Answer, ask
from pages.kit.controls import Choice
from pages.kit.experiment import say
from pages.kit.number_format import markdown_table, milliseconds, significant
from pages.kit.waiting import awaited, say_when_busy
from pages.language import t
from pages.why.frame import LAYER, SEED, Desk, Finding, measure_again, question
from transformer_core.analysis.why.many_heads import OwnHeads, cost_of_heads, heads_of_layer

PART = Choice("why_heads_part", ("looks", "cost"), label="why.heads.part", words="why.heads.part_{}")
TOKENS = Choice(
    "why_heads_tokens", (16, 32, 64, 128, 256), label="why.heads.tokens", default=64, kind=int, form="steps"
)
WIDTH = 64
NO_MATTER = 0.1  # of a time


def _outcome(found: OwnHeads) -> str:
    share = found.targets / len(found.weights)
    return "few" if share < 1 / 3 else "half" if share < 2 / 3 else "many"


def _looks(desk: Desk, answer: Answer[OwnHeads], layer: int) -> Finding:
    found, scale = answer.value, Scale.of("probability")
    names = [t("axis.head", number=head) for head in range(len(found.weights))]
    parts = enumerate(zip(names, found.weights, strict=True))
    matrices = [Panel(f"head{head}", name, weights, scale) for head, (name, weights) in parts]
    with desk.picture:
        joined = Panel("joined", desk.word("joined"), found.joined, scale, role="residual")
        desk.matrices([*matrices, joined], answer, "looks", columns=3, version=f"{layer}|{desk.view.encoding.text}")
    n_heads = len(found.weights)
    numbers = {
        "n_heads": str(n_heads),
        "layer": str(layer),
        "targets": f"{found.targets:.1f}",
        "divergence": f"{found.mean_divergence:.2f}",
        "entropy": f"{found.entropy:.2f}",
        "joined_entropy": f"{found.joined_entropy:.2f}",
    }
    return Finding(_outcome(found), numbers, "looks")


def _clock(ratio: float) -> str:
    """Return what the clock says of eight heads, whose time is so many times that of one."""
    return "same" if abs(ratio - 1) < NO_MATTER else "longer" if ratio > 1 else "shorter"


def _cost(desk: Desk, outcome: str) -> Finding:
    with desk.controls:
        n_tokens = TOKENS.show()
        measurement = measure_again(desk.name)
    asked: dict[str, Any] = {"d_model": WIDTH, "n_tokens": n_tokens, "seed": SEED, "measurement": measurement}
    with desk.picture:
        answer = awaited(cost_of_heads, t("await.timing"), key="why_heads_cost", **asked)
    if answer is None:
        return Finding(None)
    found = answer.value
    across = Side(desk.word("heads"), log=True)
    with desk.picture:
        relative = {
            desk.word(name): getattr(found, name) / getattr(found, name)[0]
            for name in ("seconds", "exponentials", "multiplications", "parameters")
        }
        hues = (HUES["positions"], HUES["weights"], HUES["query"], GREY)
        chart = curves(
            found.heads, relative, across=across, up=Side(desk.word("times"), log=True), hues=hues, height=330
        )
        desk.chart(chart, answer, "cost")
        columns = ("heads", "parameters", "multiplications", "exponentials", "seconds", "difference")
        rows = [
            (*(f"{count:,}" for count in counts), milliseconds(float(seconds)), significant(difference))
            for *counts, seconds, difference in zip(*(getattr(found, column) for column in columns), strict=True)
        ]
        say(markdown_table([desk.word(column) for column in columns], rows))
        say_when_busy(found.spread)
    at = found.heads.tolist().index(8)
    ratio = found.seconds[at] / found.seconds[0]
    numbers = {
        "width": str(WIDTH),
        "tokens": str(n_tokens),
        "parameters": f"{found.parameters[0]:,}",
        "multiplications": f"{found.multiplications[0]:,}",
        "clock": desk.word(
            f"clock_{_clock(ratio)}",
            one=milliseconds(float(found.seconds[0])),
            eight=milliseconds(float(found.seconds[at])),
            ratio=f"{ratio:.1f}",
        ),
        "difference": significant(float(found.difference[at])),
    }
    return Finding(outcome, numbers, "cost")


def _experiment(desk: Desk) -> Finding:
    with desk.controls:
        part = PART.show()
        layer = LAYER.show(desk.view) if part == "looks" else 0
    answer = ask(heads_of_layer, prompt=desk.view.prompt, layer=layer)
    return _looks(desk, answer, layer) if part == "looks" else _cost(desk, _outcome(answer.value))


HEADS = question("heads", ("few", "half", "many"), _experiment, group="attention", covers=False)
