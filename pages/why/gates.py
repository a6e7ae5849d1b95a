"""Why GELU? ReLU, dropout and GELU as gates; their gradients on the typed sentence; a short training."""

from pages.figures.charts import HUES
from pages.figures.curves import Side, bars, curves
from pages.kit.asking import ask
from pages.kit.controls import Choice
from pages.kit.number_format import percent
from pages.kit.verdict import is_dense
from pages.language import language, t
from pages.why.frame import SEED, Desk, Finding, link_to, question
from pages.why.trials import trial, trial_numbers
from transformer_core.analysis.feed_forward.bernoulli import gates
from transformer_core.analysis.why.gates import OwnGates, own_gates, train_activations

PART = Choice("why_gates_part", ("coin", "sentence", "training"), label="why.gates.part", words="why.gates.part_{}")
DRAWS = Choice(
    "why_gates_draws", (1, 4, 16, 64, 256, 1024, 4096), label="why.gates.draws", default=4, kind=int, form="steps"
)
COLOURS = (HUES["query"], HUES["positions"], HUES["value"])


def _outcome(own: OwnGates) -> str:
    silent = own.silent_relu.mean()
    return "quarter" if silent < 0.25 else "half" if silent < 0.6 else "most"


def _coin(desk: Desk, outcome: str) -> Finding:
    with desk.controls:
        draws = DRAWS.show()
    answer = ask(gates, draws=draws, seed=SEED)
    found = answer.value
    across = Side("x")
    names = {name: desk.word(name) for name in ("relu", "gelu", "dropout")}
    with desk.picture:
        series = {shown: getattr(found, f"{name}_gate") for name, shown in names.items()}
        up = Side(desk.word("kept"), format=".0%")
        desk.chart(curves(found.x, series, across=across, up=up, hues=COLOURS, points=False), answer, "gate")
        series = {
            desk.word("tossed_gelu"): found.tossed_gelu,
            desk.word("tossed_dropout"): found.tossed_dropout,
            names["gelu"]: found.gelu,
            names["dropout"]: found.dropout,
            names["relu"]: found.relu,
        }
        hues = (HUES["positions"], HUES["value"], HUES["positions"], HUES["value"], HUES["query"])
        chart = curves(
            found.x,
            series,
            across=across,
            up=Side(desk.word("out"), domain=(-4.0, 4.0)),
            hues=hues,
            guides={names["gelu"]: 3.2, names["dropout"]: 3.6, names["relu"]: -2.5},
            height=340,
        )
        desk.chart(chart, answer, "mean")
    with desk.controls:
        link_to("feed_forward", desk.word("link"), feed_forward_part="bernoulli")
    return Finding(outcome, {"draws": f"{draws:,}", "error": f"{found.error:.3f}"}, "coin")


def _sentence(desk: Desk, own: OwnGates, answer, outcome: str) -> Finding:
    series = {desk.word("relu"): own.silent_relu, desk.word("gelu"): own.silent_gelu}
    layers = [t("axis.layer", number=layer) for layer in range(len(own.silent_relu))]
    up = Side(desk.word("silent"), domain=(0.0, 1.0), format=".0%")
    with desk.picture:
        desk.chart(bars(layers, series, across="", up=up, hues=COLOURS, height=320), answer, "own")
    numbers = {
        "relu": percent(float(own.silent_relu.mean())),
        "gelu": percent(float(own.silent_gelu.mean())),
        "activation": desk.view.bundle.config.activation,
        "negligible": f"{own.negligible:g}",
    }
    return Finding(outcome, numbers, "sentence")


def _training(desk: Desk, outcome: str) -> Finding:
    found = trial(desk, train_activations, ("gelu", "relu"), language=language())
    if found is None:
        return Finding(None)
    return Finding(outcome, trial_numbers(found, "relu", "gelu"), "training")


def _experiment(desk: Desk) -> Finding:
    if not is_dense(desk.view):
        return Finding(None)
    with desk.controls:
        part = PART.show()
    answer = ask(own_gates, prompt=desk.view.prompt)
    outcome = _outcome(answer.value)
    if part == "coin":
        return _coin(desk, outcome)
    return _sentence(desk, answer.value, answer, outcome) if part == "sentence" else _training(desk, outcome)


GATES = question("gates", ("quarter", "half", "most"), _experiment, group="rest")
