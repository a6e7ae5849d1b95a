"""The experiment on gates and reach: does a unit's gate tell how far back the unit listens?"""

from pages.before.figures import ranges_chart
from pages.before.recurrent import direction_control, show_direction, worded
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.waiting import awaited
from pages.language import section, strings, t
from transformer_core.analysis.before.gate_ranges import GateRanges, gate_ranges
from transformer_core.analysis.rank_correlation import LOOSE

DIRECTION = direction_control("before_ranges_direction")


@experiment("before_ranges_open", "before.try_ranges")
def try_ranges(view: View) -> None:
    """Ask which gate goes with a unit's range, then show every unit's gates over its range."""
    direction = show_direction(view, DIRECTION)
    answer = awaited(
        gate_ranges,
        t("before.ranges_measuring"),
        key="before_ranges",
        bundle=view.bundle,
        direction=direction,
    )
    if answer is not None:
        _show(view, answer, about=f"{view.bundle.name} {direction}")


def _show(view: View, answer: Answer[GateRanges], *, about: str) -> None:
    found = answer.value
    options = options_of("before.ranges_{}", (*found.names, "none"))
    cover = ask_first(section("before", "try_ranges"), options, name="before_ranges", about=about)
    best = max(range(len(found.names)), key=lambda place: abs(found.correlations[place].rho))
    goes = abs(found.correlations[best].rho) >= LOOSE
    said = [
        t("before.ranges_rho", gate=t(f"before.ranges_{name}"), rho=f"{one.rho:+.2f}")
        for name, one in zip(found.names, found.correlations, strict=True)
    ]
    cover.judge(found.names[best] if goes else "none", " · ".join(said))
    with cover.picture():
        names = [t(f"before.ranges_{name}") for name in found.names]
        chart = ranges_chart(found.units, found.ranges, found.gates, names, strings("before"))
        show_chart(chart, answer, key="before_ranges_chart", stem="before_ranges", label=t("before.ranges_label"))
        numbers = {"units": len(found.units), "texts": found.n_texts, "window": found.window}
        mean = f"{found.ranges.mean():.1f}"
        say(worded(view, "ranges_measured", **numbers, mean=mean, farthest=f"{found.ranges.max():.1f}"))
        say(section("before", "ranges_after"), small=True)
