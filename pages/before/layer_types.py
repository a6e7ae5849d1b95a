"""The experiment of the page's part on time: table 1 of the paper for attention, recurrence and convolution."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import streamlit as st

from pages.figures.charts import HUES
from pages.figures.curves import Side, curves
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, show_in_columns
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.number_format import markdown_table, milliseconds
from pages.kit.waiting import awaited, say_when_busy
from pages.language import section, t
from transformer_core.analysis.before.layer_types import KERNELS, LENGTHS, PATHS, SYSTEMS, LayerTypes, layer_types

COLOURS = (HUES["weights"], HUES["query"], HUES["positions"], HUES["key"])
LENGTH = Choice("before_layers_length", LENGTHS, label="before.layers_length", default=128, kind=int, form="steps")
KERNEL = Choice("before_kernel", KERNELS, label="before.kernel", default=3, kind=int, form="steps")
SEED = 0
ROOM = 1.5


@experiment("before_layers_open", "before.try_layers")
def try_layer_types(d_model: int, measurement: int) -> None:
    """Show what one layer of each type multiplies, waits for and takes, and how far a signal travels in it."""
    length, kernel = show_in_columns(None, LENGTH, KERNEL, gap="large")
    asked: dict[str, Any] = {"d_model": d_model, "kernel": kernel, "seed": SEED, "measurement": measurement}
    answer = awaited(layer_types, t("before.measuring"), key="before_layers", height=620, **asked)
    if answer is None:
        return
    operations_place, paths_place = st.columns(2, gap="large")
    with operations_place:
        _curve(answer, "operations", answer.value.operations, SYSTEMS, length, format="~s")
    with paths_place:
        _curve(answer, "paths", answer.value.paths, PATHS, length, format=",")
    _fastest(answer, length, d_model, kernel)


def _curve(
    answer: Answer[LayerTypes],
    what: str,
    rows: np.ndarray,
    names: tuple[str, ...],
    length: int,
    format: str | None = None,
) -> None:
    title = t(f"before.layers_{what}")
    say(f"**{title}**")
    ends = (max(float(rows.min()) / ROOM, 1e-9), float(rows.max()) * ROOM)
    chart = curves(
        answer.value.lengths,
        {t(f"before.layer_{name}"): row for name, row in zip(names, rows, strict=True)},
        across=Side(t("before.positions"), log=True),
        up=Side(t(f"before.layers_{what}_axis"), log=True, domain=ends, format=format),
        at=float(length),
        hues=COLOURS,
        height=280,
    )
    show_chart(chart, answer, key=f"before_layers_{what}", label=title)


def say_timed(measured: float, spread: float) -> None:
    """Say when times were measured, and that the machine was busy where they differ much.

    Args:
        measured: in seconds since 1970; spread: as of say_when_busy.
    """
    st.caption(t("before.timed", when=f"{datetime.fromtimestamp(measured, UTC):%Y-%m-%d %H:%M:%S}"))
    say_when_busy(spread)


def _fastest(answer: Answer[LayerTypes], length: int, d_model: int, kernel: int) -> None:
    """Ask whose layer is fastest at this length, then show all times and the table."""
    found = answer.value
    column = int(np.searchsorted(found.lengths, length))
    options = options_of("before.layer_{}", SYSTEMS)
    question = section("before", "try_layers").format(length=f"{length:,}", width=d_model)
    about = f"{length} {d_model} {kernel}"
    cover = ask_first(question, options, name="before_layers_fastest", about=about)
    cover.judge(SYSTEMS[int(found.seconds[:, column].argmin())])
    with cover.picture():
        _curve(answer, "times", 1_000 * found.seconds, SYSTEMS, length)
        st.markdown(_table(found, column, kernel))
        said = {"projections": f"{found.projections[column]:,}", "dilated": f"{found.paths[-1, column]:,}"}
        say(t("before.layers_measured", length=f"{length:,}", **said))
        say(t("before.layers_overtaken", width=d_model, first=f"{found.overtaken():,}"))
        say_timed(found.measured, found.spread)
        say(section("before", "layers_after"), small=True)


FORMULAS = {
    "attention": ("O(n²·d)", "O(1)", "O(1)"),
    "recurrent": ("O(n·d²)", "O(n)", "O(n)"),
    "convolution": ("O(k·n·d²)", "O(1)", "O(n/k), O(logₖ n)"),
}


def _table(found: LayerTypes, column: int, kernel: int) -> str:
    head = [t(f"before.layers_head_{name}") for name in ("layer", "operations", "steps", "path", "time")]
    rows = []
    for row, name in enumerate(found.systems):
        complexity, steps, path = FORMULAS[name]
        called = t(f"before.layer_{name}") + (f" (k = {kernel})" if name == "convolution" else "")
        rows.append(
            (
                called,
                f"{found.operations[row, column]:,} · {complexity}",
                f"{found.steps[row, column]:,} · {steps}",
                f"{found.paths[row, column]:,} · {path}",
                milliseconds(found.seconds[row, column]).replace(" ", "\u00a0"),
            )
        )
    return markdown_table(head, rows, right=4)
