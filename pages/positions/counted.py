"""The experiment of the page's part on the sum: places numbered 1 ... n, or pos / length, beside the sinusoids."""

import numpy as np
import streamlit as st

from pages.figures.charts import HUES
from pages.figures.curves import Side, curves
from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.language import plain, section, t
from transformer_core.analysis.positions.counted import LENGTHS, SCHEMES, CountedPositions, counted_positions

LENGTH = Choice("positions_counted", LENGTHS, label="positions.counted_length", default=64, kind=int, form="steps")
HUES_OF_SCHEMES = (HUES["key"], HUES["query"], HUES["positions"])


def _measured(found: CountedPositions, length: int) -> str:
    counted, share, sines = range(len(SCHEMES))
    return t(
        "positions.counted_measured",
        length=length,
        counted=f"{found.lengths[counted, -1]:.1f}",
        sines=f"{found.lengths[sines, -1]:.2f}",
        cosine=f"{found.cosines[counted, -1]:.2f}",
        sines_cosine=f"{found.cosines[sines, -1]:.2f}",
        short=int(found.sizes[0]),
        long=int(found.sizes[-1]),
        step_short=f"{found.steps[share, 0]:.3f}",
        step_long=f"{found.steps[share, -1]:.4f}",
    )


@experiment("positions_counted_open", "positions.try_counted")
def try_counted(view: View) -> None:
    """Ask which scheme drowns the token at the end of a text, then show lengths, likeness and steps of all three."""
    length = LENGTH.show(view)
    try:
        answer = ask_once(counted_positions, prompt=view.prompt, length=length)
    except ValueError as error:
        st.info(t("positions.cannot", error=plain(str(error))), icon=":material/info:")
        return
    found = answer.value
    names = options_of("positions.scheme_{}", SCHEMES)
    about = f"{view.bundle.name} {length} {view.encoding.text}"
    cover = ask_first(section("positions", "try_counted"), names, name="positions_counted_guess", about=about)
    cover.judge(SCHEMES[int(found.cosines[:, -1].argmin())])
    with cover.picture():
        likeness, steps = st.columns(2, gap="large")
        with likeness:
            chart = curves(
                np.arange(length),
                dict(zip(names.values(), found.cosines, strict=True)),
                across=Side(t("positions.axis_position")),
                up=Side(t("positions.counted_cosine")),
                hues=HUES_OF_SCHEMES,
                points=False,
            )
            label = t("positions.counted_cosine")
            show_chart(chart, answer, key="positions_counted", label=label)
        with steps:
            chart = curves(
                found.sizes,
                dict(zip(names.values(), found.steps, strict=True)),
                across=Side(t("positions.counted_length"), log=True),
                up=Side(t("positions.counted_step"), log=True),
                hues=HUES_OF_SCHEMES,
            )
            label = t("positions.counted_step")
            show_chart(chart, answer, key="positions_steps", label=label)
        say(_measured(found, length))
        say(section("positions", "counted_after"), small=True)
