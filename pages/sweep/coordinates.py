"""The runs of a sweep of two settings as parallel coordinates, of which any axis can be brushed."""

import pandas as pd
import streamlit as st

from pages.kit.exports import offer_files
from pages.kit.experiment import say
from pages.language import section, t
from pages.sweep.figures import Axis, coordinates
from pages.train.settings import label_of, value_word
from transformer_core.training.runs.sweep import Outcome, Sweep

FEWEST = 2  # runs


def axes_of(sweep: Sweep, found: Outcome) -> list[Axis]:
    """Return the axes, with the value of each ended run on each: both settings, the seed, its best and its last."""
    rows = [
        (*(sweep.values[name].index(cell[name]) for name in sweep.values), column, found.best[at], found.final[at])
        for place, cell in enumerate(sweep.cells)
        for column in range(len(sweep.seeds))
        if not pd.isna(found.final[at := (place, column)])
    ]
    columns = list(zip(*rows, strict=True)) or [()] * 5
    named = [(label_of(name), [value_word(name, value) for value in some]) for name, some in sweep.values.items()]
    named.append((t("sweep.seed"), [str(seed) for seed in sweep.seeds]))
    measure = t(f"measure.{found.measure}")
    form = ".1%" if found.measure.endswith("accuracy") else ".3f"
    numbers = [t("sweep.best_of", measure=measure), t("sweep.last_of", measure=measure)]
    ordinal = [Axis(title, column, ticks) for (title, ticks), column in zip(named, columns, strict=False)]
    return ordinal + [Axis(title, column, (), form) for title, column in zip(numbers, columns[3:], strict=True)]


def show_coordinates(sweep: Sweep, found: Outcome) -> None:
    """Show a line a run through its two settings, its seed, and what it came to; only where there are two settings."""
    if len(sweep.values) != 2:
        return
    axes = axes_of(sweep, found)
    if len(axes[0].places) < FEWEST:
        return
    figure = coordinates(axes)
    config = {"toImageButtonOptions": {"filename": "sweep_coordinates", "scale": 2}, "displaylogo": False}
    st.markdown(f"**{t('sweep.coordinates')}**")
    st.plotly_chart(figure, width="stretch", key="sweep_coordinates", config=config)
    say(section("sweep", "coordinates").format(runs=len(axes[0].places)), small=True)
    offer_files(
        lambda: {"html": lambda: figure.to_html(include_plotlyjs=True, full_html=True)},
        key="sweep_coordinates_files",
        stem="sweep_coordinates",
        note=t("sweep.coordinates_file"),
        title=t("sweep.coordinates"),
    )
