"""The runs of a sweep of two settings as parallel coordinates, of which any axis can be brushed."""

import pandas as pd

from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.experiment import say
from pages.language import section, t
from pages.sweep.figures import Axis, coordinates
from pages.train.settings import label_of, value_word
from transformer_core.training.runs.sweep import Outcome, Sweep

FEWEST = 2  # runs


def ended(sweep: Sweep, found: Outcome) -> list[tuple[int, int]]:
    """Return the cell and the place of the seed of each run that has ended."""
    return [
        (cell, seed)
        for cell in range(len(sweep.cells))
        for seed in range(len(sweep.seeds))
        if not pd.isna(found.final[cell, seed])
    ]


def axes_of(sweep: Sweep, found: Outcome) -> list[Axis]:
    """Return the axes with the place of each ended run: the settings, the seed, its best measure and its last."""
    runs = ended(sweep, found)
    axes = [
        Axis(
            label_of(name),
            [values.index(sweep.cells[cell][name]) for cell, _ in runs],
            [value_word(name, value) for value in values],
        )
        for name, values in sweep.values.items()
    ]
    axes.append(Axis(t("sweep.seed"), [seed for _, seed in runs], [str(seed) for seed in sweep.seeds]))
    share = found.measure.endswith("accuracy")
    best, last = ([float(values[run]) for run in runs] for values in (found.best, found.final))
    return [
        *axes,
        Axis(t("sweep.best"), best, percent=share),
        Axis(t("sweep.last"), last, percent=share),
    ]


def show_coordinates(sweep: Sweep, found: Outcome, answer: Answer[Outcome], names: list[str]) -> None:
    """Show a line a run through its two settings, its seed and what it came to; only where there are two settings.

    Args:
        names: of the cells.
    """
    runs = ended(sweep, found)
    if len(sweep.values) < 2 or len(runs) < FEWEST:
        return
    chart = coordinates(axes_of(sweep, found), [f"{names[cell]} · {sweep.seeds[seed]}" for cell, seed in runs])
    show_chart(chart, answer, key="sweep_lines", label=t("sweep.coordinates"))
    say(section("sweep", "coordinates").format(runs=len(runs), measure=t(f"measure.{found.measure}")), small=True)
