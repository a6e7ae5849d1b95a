"""The losses of an honest and a cheating run, step by step.

Arrays come from transformer_core.analysis.masks.training_without_mask. Read next: matrix.py.
"""

from collections.abc import Mapping

import altair as alt
import numpy as np

from pages.figures.charts import HUES, records

SERIES = ("honest", "honest_held_out", "cheater", "cheater_masked")
HUES_OF = (HUES["query"], HUES["query"], HUES["key"], HUES["positions"])
DASHES_OF = ([1, 0], [2, 2], [1, 0], [6, 3])


def losses(arrays: Mapping[str, np.ndarray], words: Mapping[str, str]) -> alt.LayerChart | alt.FacetChart:
    """Draw both training losses, and the held-out losses of both with the causal mask on.

    Args:
        arrays: honest.loss, honest.held_out, cheater.loss, cheater.held_out_masked, measured_at and guessing.
        words: the names of SERIES, "step", "loss" and "guessing".
    """
    steps = np.arange(1, len(arrays["honest.loss"]) + 1)
    at = arrays["measured_at"]
    parts = {
        "honest": (steps, arrays["honest.loss"]),
        "honest_held_out": (at, arrays["honest.held_out_masked"]),
        "cheater": (steps, arrays["cheater.loss"]),
        "cheater_masked": (at, arrays["cheater.held_out_masked"]),
    }
    data = records(
        step=np.concatenate([part[0] for part in parts.values()]),
        loss=np.concatenate([part[1] for part in parts.values()]),
        series=[words[name] for name, part in parts.items() for _ in part[0]],
    )
    names = [words[name] for name in SERIES]
    legend = alt.Legend(title=None, orient="top", columns=2, labelLimit=420, symbolStrokeWidth=3)
    lines = (
        alt.Chart(data)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("step:Q", title=words["step"], scale=alt.Scale(domain=[0, int(steps[-1])], nice=False)),
            y=alt.Y("loss:Q", title=words["loss"], scale=alt.Scale(zero=True)),
            color=alt.Color("series:N", scale=alt.Scale(domain=names, range=list(HUES_OF)), legend=legend),
            strokeDash=alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=list(DASHES_OF)), legend=legend),
            tooltip=[alt.Tooltip("series:N"), alt.Tooltip("step:Q"), alt.Tooltip("loss:Q", format=".3f")],
        )
    )
    guessing = float(arrays["guessing"])
    level = records(loss=[guessing], label=[words["guessing"]])
    rule = alt.Chart(level).mark_rule(strokeDash=[1, 3], color=HUES["residual"]).encode(y="loss:Q")
    label = alt.Chart(level).mark_text(align="right", dy=-6).encode(y="loss:Q", x=alt.value("width"), text="label:N")
    return alt.layer(rule, label, lines).properties(width="container", height=330)
