"""Why residual connections? The gradient that is left at the first layer, by the depth of the stack."""

import numpy as np

from pages.figures.charts import HUES
from pages.figures.curves import GREY, Side, curves
from pages.kit.controls import Choice
from pages.kit.number_format import significant
from pages.kit.waiting import awaited
from pages.why.frame import SEED, Desk, Finding, link_to, question
from transformer_core.analysis.stream.depth import DEPTHS, WIDTH, Reach, reach_by_depth

NORM = Choice("why_residuals_norm", ("pre", "post", "none"), label="why.residuals.norm", words="why.residuals.{}")
DEPTH = Choice("why_residuals_depth", DEPTHS, label="why.residuals.depth", default=4, kind=int, form="steps")


def _outcome(found: Reach) -> str:
    left = found.without_residuals[found.norms.index("pre"), -1]
    return "vanished" if left < 0.01 else "weaker" if left < 0.5 else "whole"


def _experiment(desk: Desk) -> Finding:
    with desk.controls:
        norm, depth = NORM.show(), DEPTH.show()
        link_to("norm", desk.word("link"))
    with desk.picture:
        answer = awaited(reach_by_depth, desk.word("running"), key="why_residuals", height=560, seed=SEED)
    if answer is None:
        return Finding(None)
    found = answer.value
    row = found.norms.index(norm)
    series = {
        desk.word("with"): found.with_residuals[row],
        desk.word("without"): found.without_residuals[row],
        desk.word("all"): np.ones(len(DEPTHS)),
    }
    with desk.picture:
        chart = curves(
            found.depths,
            series,
            across=Side(desk.word("layers")),
            up=Side(desk.word("ratio"), log=True),
            upto=depth,
            hues=(HUES["residual"], HUES["key"], GREY),
            guides={desk.word("all"): DEPTHS[-1]},
            height=420,
        )
        desk.chart(chart, answer, "reach")
    place = DEPTHS.index(depth)
    numbers = {
        "norm": desk.word(norm),
        "depth": str(depth),
        "deepest": str(DEPTHS[-1]),
        "width": str(WIDTH),
        "with_now": significant(found.with_residuals[row, place], 3),
        "without_now": significant(found.without_residuals[row, place], 3),
        "bare": significant(found.without_residuals[found.norms.index("none"), -1]),
        "pre": significant(found.without_residuals[found.norms.index("pre"), -1], 3),
    }
    return Finding(_outcome(found), numbers)


RESIDUALS = question("residuals", ("vanished", "weaker", "whole"), _experiment, group="rest")
