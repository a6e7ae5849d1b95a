"""Gradients by depth of six untrained stacks, with residuals and without, and the loss of two trained ones.

Arrays come from transformer_core.analysis.stream.depth and .deep_training. Read next: ../../ui/norm.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import DASHES, HUES, Chart, records
from pages.figures.log_axis import LABELS

Words = Mapping[str, str]
MEASURES = ("input_gradients", "parameter_gradients", "activations", "apart")
HUES_OF_NORMS = {"pre": HUES["query"], "post": HUES["positions"], "none": HUES["key"]}
LEAST = 1e-40


def depth_chart(profiles: Sequence[Mapping[str, Any]], words: Words, *, measure: str) -> Chart:
    """Draw one measure by depth, the stacks with residuals and without side by side on one axis.

    Args:
        profiles: each with norm, residual and the measure, (layer).
        measure: one of MEASURES; what is 0 or not finite has no place on the logarithmic axis.
    """
    columns: dict[str, list[Any]] = {name: [] for name in ("layer", "value", "norm", "kind")}
    for profile in profiles:
        values = profile[measure]
        columns["layer"] += range(len(values))
        columns["value"] += [float(value) if np.isfinite(value) and value > LEAST else None for value in values]
        columns["norm"] += [words[f"stack_{profile['norm']}"]] * len(values)
        columns["kind"] += [words["with_residuals"] if profile["residual"] else words["without_residuals"]] * len(
            values
        )
    shown = [words[f"stack_{name}"] for name in HUES_OF_NORMS]
    scale, axis = alt.Scale(type="log"), alt.Axis(labelExpr=LABELS, tickCount=6)
    dash = alt.Scale(domain=shown, range=[list(dash) for dash in DASHES[: len(shown)]])
    kinds = [words["with_residuals"], words["without_residuals"]]
    base = alt.Chart(records(**columns)).encode(
        x=alt.X("layer:Q", title=words["axis_layer"], scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", title=words[f"measure_{measure}"], scale=scale, axis=axis),
        color=alt.Color(
            "norm:N",
            scale=alt.Scale(domain=shown, range=list(HUES_OF_NORMS.values())),
            title=None,
            legend=alt.Legend(orient="top", labelLimit=300),
        ),
        strokeDash=alt.StrokeDash("norm:N", scale=dash, title=None),
        tooltip=["kind:N", "norm:N", "layer:Q", alt.Tooltip("value:Q", format=".3e")],
    )
    lines = base.mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(size=16))
    panels = [
        lines.transform_filter(alt.datum.kind == kind).properties(width="container", height=220, title=kind)
        for kind in kinds
    ]
    return alt.vconcat(*panels, spacing=12).resolve_scale(y="shared", x="shared", color="shared", strokeDash="shared")


def training_chart(found: Mapping[str, np.ndarray], words: Words) -> Chart:
    """Draw the loss by step of the stack with residuals and of the one without, and what blind guessing costs.

    Args:
        found: with_residuals, without_residuals and guessing.
    """
    names = {"with_residuals": HUES["value"], "without_residuals": HUES["key"]}
    shown = [words[name] for name in names]
    data = records(
        step=np.concatenate([np.arange(1, len(found[name]) + 1) for name in names]),
        loss=np.concatenate([found[name] for name in names]).round(5),
        of=np.repeat(shown, [len(found[name]) for name in names]),
    )
    dash = alt.Scale(domain=shown, range=[list(dash) for dash in DASHES[:2]])
    lines = (
        alt.Chart(data)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("step:Q", title=words["axis_step"], scale=alt.Scale(nice=False)),
            y=alt.Y("loss:Q", title=words["axis_loss"]),
            color=alt.Color(
                "of:N",
                scale=alt.Scale(domain=shown, range=list(names.values())),
                title=None,
                legend=alt.Legend(orient="top", labelLimit=300),
            ),
            strokeDash=alt.StrokeDash("of:N", scale=dash, title=None),
            tooltip=["of:N", "step:Q", "loss:Q"],
        )
    )
    label = records(loss=[float(found["guessing"])], label=[words["guessing"]])
    rule = alt.Chart(label).mark_rule(color=HUES["residual"], strokeDash=[4, 4]).encode(y="loss:Q")
    text = (
        alt.Chart(label).mark_text(align="right", dx=-4, dy=-8).encode(y="loss:Q", x=alt.value("width"), text="label:N")
    )
    return alt.layer(rule, lines, text).properties(width="container", height=260)
