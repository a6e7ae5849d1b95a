"""Figures of norm and residual: a vector before and after its norm, the stream as a sum, and stacks by depth.

Arrays come from transformer_core.analysis.stream: normalization, residual_sum and depth.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import HUES, LABELS, Chart, dashes_of, hued, records, tooltips
from pages.figures.forms import Filled, form, named
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

Words = Mapping[str, str]
BEFORE, AFTER, OTHER = HUES["residual"], HUES["query"], HUES["positions"]
HALF_BAR = 0.4
TITLE_OF_ROWS = "data('levels').length ? data('levels')[0].title : ''"  # it holds the vector's numbers


def _across(count: int, *, title: str | None) -> alt.X:
    scale = alt.Scale(domain=[-0.5, count - 0.5], nice=False)
    return alt.X("low:Q", scale=scale, title=title, axis=alt.Axis(tickCount=8, labels=title is not None))


def _dimensions() -> alt.Chart:
    ends = {"low": f"datum.dimension - {HALF_BAR}", "high": f"datum.dimension + {HALF_BAR}"}
    return named("dimensions").transform_calculate(**ends)


def _bars(field: str, hue: str, count: int, *, y: str, title: str | None = None) -> alt.Chart:
    return (
        _dimensions()
        .mark_rect(color=hue)
        .encode(
            x=_across(count, title=title),
            x2=alt.X2("high:Q"),
            y=alt.Y(f"{field}:Q", title=y, axis=alt.Axis(tickCount=5)),
            y2=alt.datum(0),
            tooltip=[alt.Tooltip("dimension:Q"), alt.Tooltip(f"{field}:Q", format=".5g", title="value")],
        )
    )


def _levels(field: str) -> alt.Chart:
    hue = alt.condition("datum.deviations == 0", alt.value(HUES["key"]), alt.value(HUES["weights"]))
    return named("levels").mark_rule(strokeDash=[5, 4], strokeWidth=2).encode(y=alt.Y(f"{field}:Q"), color=hue)


def _marks(field: str, hue: str, count: int) -> alt.Chart:
    across = _across(count, title=None)
    across.shorthand = "dimension:Q"
    return (
        named("dimensions")
        .mark_point(shape="diamond", size=18, color=hue, filled=True, opacity=1)
        .encode(
            x=across,
            y=alt.Y(f"{field}:Q"),
            tooltip=[alt.Tooltip("dimension:Q"), alt.Tooltip(f"{field}:Q", format=".5~f", title="value")],
        )
    )


@form
def _vector(words: Words, count: int, standardised: str) -> Chart:
    before = alt.layer(_bars("x", BEFORE, count, y="x"), _levels("value"))
    unit = _levels("deviations").transform_filter("datum.deviations != 0")
    standard = alt.layer(_bars("standard", HUES["value"], count, y=standardised), unit)
    learned = alt.layer(_bars("gain", HUES["weights"], count, y="g, b"), _marks("bias", HUES["key"], count))
    after = alt.layer(_bars("after", AFTER, count, y="y", title=words["axis_dimension"]))
    rows = (
        (before, alt.expr(TITLE_OF_ROWS), 140),
        (standard, words["title_standard"], 110),
        (learned, words["title_learned"], 90),
        (after, words["title_after"], 120),
    )
    parts = [
        part.properties(width="container", height=height, title=alt.Title(title, anchor="start", fontSize=13))
        for part, title, height in rows
    ]
    return alt.vconcat(*parts, spacing=4)


def vector_chart(found: Mapping[str, np.ndarray], words: Words, *, squares: bool = False) -> Filled:
    """Draw the vector before, standardised, and after, and the trained gain and bias, one under the other.

    Args:
        found: x, standard, after, gain, bias, mean and variance.
        squares: it is divided by its root mean square, and its mean stays.
    """
    standardised = "x / √(σ² + μ² + ε)" if squares else "(x − μ) / √(σ² + ε)"
    mean, deviation = float(found["mean"]), float(found["variance"]) ** 0.5
    columns = {name: found[name].astype(float) for name in ("x", "standard", "gain", "bias", "after")}
    count = len(found["x"])
    title = words["title_before"].format(mean=f"{mean:.3f}", deviation=f"{deviation:.3f}")
    levels = records(
        value=[mean, mean + deviation, mean - deviation],
        deviations=[0.0, 1.0, -1.0],
        title=[title] * 3,
    )
    rows = {"dimensions": records(dimension=np.arange(count), **columns), "levels": levels}
    return Filled(_vector(words, count, standardised), rows)


@form
def _variants(count: int, y: str, title: str) -> Chart:
    return _bars("value", OTHER, count, y=y, title=title).properties(height=180)


def variants_chart(after: np.ndarray, other: np.ndarray, words: Words) -> Filled:
    """Draw, for each dimension, how far two variants differ."""
    rows = records(dimension=np.arange(len(after)), value=(after - other).astype(float))
    return Filled(_variants(len(after), words["axis_difference"], words["axis_dimension"]), {"dimensions": rows})


@form
def _scaled(count: int, title: str) -> Chart:
    bars = _bars("after", AFTER, count, y="y", title=title)
    return alt.layer(bars, _marks("scaled", HUES["key"], count)).properties(height=180)


def scaled_chart(after: np.ndarray, scaled: np.ndarray, words: Words) -> Filled:
    """Draw the output as bars, and the output for the multiplied input as diamonds."""
    rows = records(dimension=np.arange(len(after)), after=after.astype(float), scaled=scaled.astype(float))
    return Filled(_scaled(len(after), words["axis_dimension"]), {"dimensions": rows})


HUES_OF_KINDS = {"embedding": HUES["residual"], "self_attention": HUES["weights"], "feed_forward": HUES["value"]}


def name_of(part: str, words: Words) -> str:
    """Return the name on the page of a part such as "0.self_attention" or "token_embedding"."""
    layer, _, sublayer = part.rpartition(".")
    return words[f"part_name_{sublayer}"].format(layer=layer) if layer else words[f"part_name_{part}"]


def _kind(part: str) -> str:
    sublayer = part.rpartition(".")[2]
    return sublayer if sublayer in HUES_OF_KINDS else "embedding"


def sum_figure(
    parts: Sequence[str],
    contributions: np.ndarray,
    total: np.ndarray,
    stream: np.ndarray,
    words: Words,
) -> MatrixFigure:
    """Draw a row for what each part wrote, one for their sum, and one for the recorded stream.

    Args:
        parts: names of the rows.
        contributions: (part, d_model); total, stream: (d_model).
    """
    values = np.vstack([contributions, total, stream])
    labels = (*(name_of(part, words) for part in parts), words["row_sum"], words["row_stream"])
    return MatrixFigure(
        (Panel("sum", words["sum_title"], values, Scale.of("signed", values)),),
        Axis(words["axis_part"], labels),
        Axis.counted(words["axis_dimension"], values.shape[1]),
        role="residual",
        detail="exact",
        quantity=words["quantity_written"],
        filename="norm_stream_sum",
    )


def shares_chart(parts: Sequence[str], norms: np.ndarray, words: Words) -> Chart:
    """Draw the length of what each part wrote into the final stream."""
    names = [name_of(part, words) for part in parts]
    kinds = [words[f"kind_{_kind(part)}"] for part in parts]
    data = records(part=names, length=norms.round(5), kind=kinds)
    listed = [words[f"kind_{kind}"] for kind in HUES_OF_KINDS]
    room = 1.1 * float(norms.max(initial=0)) or 1.0  # for the number behind the longest bar
    y = alt.Y("part:N", sort=names, title=None, axis=alt.Axis(labelLimit=260, labelOverlap=False))
    bars = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            y=y,
            x=alt.X("length:Q", title=words["axis_length"], scale=alt.Scale(domain=[0, room], nice=False)),
            color=hued("kind", listed, list(HUES_OF_KINDS.values()), labelLimit=260),
            tooltip=tooltips("part:N", "length:Q"),
        )
    )
    numbers = (
        alt.Chart(data)
        .mark_text(align="left", dx=4)
        .encode(y=y, x=alt.X("length:Q"), text=alt.Text("length:Q", format=".2f"))
    )
    return alt.layer(bars, numbers).properties(width="container", height=24 * len(names) + 110)


def growth_chart(
    stages: Sequence[str], lengths: np.ndarray, labels: Sequence[str], words: Words, *, token: int
) -> Chart:
    """Draw the length of the stream by depth: every token thin, the chosen one and the mean of all bold.

    Args:
        lengths: (stage, pos).
        labels: one a token.
    """
    names = [name_of(stage, words) for stage in stages]
    n_tokens = lengths.shape[1]
    everyone = records(
        stage=np.repeat(names, n_tokens),
        length=lengths.ravel().round(4),
        token=np.tile([f"{place} · {label}" for place, label in enumerate(labels)], len(names)),
    )
    both = (words["mean_of_tokens"], words["one_token"].format(token=f"{token} · {labels[token]}"))
    bold = records(
        stage=np.tile(names, 2),
        length=np.concatenate([lengths.mean(1), lengths[:, token]]).round(4),
        of=np.repeat(both, len(names)),
    )
    x = alt.X(
        "stage:N", sort=names, title=None, axis=alt.Axis(labelAngle=-35, labelLimit=200, labelOverlap=len(names) > 26)
    )
    y = alt.Y("length:Q", title=words["axis_stream"])
    thin = (
        alt.Chart(everyone)
        .mark_line(strokeWidth=1, opacity=0.45, color=HUES["residual"])
        .encode(x=x, y=y, detail=alt.Detail("token:N"), tooltip=tooltips("token:N", "stage:N", "length:Q"))
    )
    strong = (
        alt.Chart(bold)
        .mark_line(strokeWidth=3, point=True)
        .encode(
            x=x,
            y=y,
            color=hued("of", both, (HUES["key"], HUES["weights"]), labelLimit=300),
            strokeDash=alt.StrokeDash("of:N", scale=dashes_of(both), title=None),
            tooltip=tooltips("of:N", "stage:N", "length:Q"),
        )
    )
    return alt.layer(thin, strong).properties(width="container", height=300)


def _up_to(most: float | None) -> alt.Scale:
    return alt.Scale() if most is None else alt.Scale(domain=[0, most], nice=False)


def written_chart(
    sublayers: Sequence[str],
    values: np.ndarray,
    labels: Sequence[str],
    words: Words,
    *,
    measure: str,
    most: float | None = None,
) -> Chart:
    """Draw one measure of what each sublayer adds: a dot for each token and a bar for the mean.

    Args:
        values: (sublayer, pos).
        labels: one a token.
        measure: "written" (length relative to the stream's) or "cosine" (with the stream).
        most: where the axis ends, for charts on one scale.
    """
    names = [name_of(sublayer, words) for sublayer in sublayers]
    n_tokens = values.shape[1]
    kinds = ("self_attention", "feed_forward")
    data = records(
        sublayer=np.repeat(names, n_tokens),
        value=values.ravel().round(5),
        token=np.tile([f"{place} · {label}" for place, label in enumerate(labels)], len(names)),
        kind=np.repeat([words[f"kind_{_kind(sublayer)}"] for sublayer in sublayers], n_tokens),
    )
    hue = alt.Scale(domain=[words[f"kind_{kind}"] for kind in kinds], range=[HUES_OF_KINDS[kind] for kind in kinds])
    y = alt.Y("sublayer:N", sort=names, title=None, axis=alt.Axis(labelLimit=200, labelOverlap=False))
    legend = alt.Legend(orient="top", labelLimit=260) if measure == "written" else None
    color = alt.Color("kind:N", scale=hue, title=None, legend=legend)
    dots = (
        alt.Chart(data)
        .mark_point(filled=True, size=24, opacity=0.5)
        .encode(
            y=y,
            x=alt.X("value:Q", title=words[f"axis_{measure}"], axis=alt.Axis(tickCount=8), scale=_up_to(most)),
            color=color,
            tooltip=tooltips("token:N", "sublayer:N", "value:Q"),
        )
    )
    means = alt.Chart(data).mark_tick(thickness=4, size=16).encode(y=y, x=alt.X("mean(value):Q"), color=color)
    high = 22 if most is None else 28  # of a row
    return alt.layer(dots, means).properties(width="container", height=high * len(names) + (120 if legend else 90))


TICKS = [digit * 10.0**power for power in range(-4, 8) for digit in (1, 2, 5)]
HUES_OF_ORDERS = {"pre": HUES["query"], "post": HUES["positions"]}


def _order_rows(found: Mapping[str, np.ndarray], words: Words, post: bool, token: int | None) -> tuple[Any, ...]:
    """Return names of the stages and of both kinds of marks, and rows: every token, the bold one, its marks beside."""
    tokens = [f"{place} · {label}" for place, label in enumerate(found["tokens"].tolist())]
    names = [name_of(stage, words) for stage in found["growth.stages"].tolist()]
    stages = [*names, " " if post else words["part_name_final"]]  # room for the level's label in both
    aside = found["sums"] if post else found["handed_on"][None]
    lengths, beside = (
        (values.mean(-1) if token is None else values[:, token]).round(4) for values in (found["growth.lengths"], aside)
    )
    of = words["mean_of_tokens"] if token is None else words["one_token"].format(token=tokens[token])
    kinds = [words["stream_kind"], words["sum_kind" if post else "final_kind"]]
    every = np.repeat(names, len(tokens)), found["growth.lengths"].ravel().round(4), np.tile(tokens, len(names))
    thin = records(**dict(zip(("stage", "length", "token"), every, strict=True)))
    bold = records(stage=names, length=lengths, of=[of] * len(names), kind=kinds[:1] * len(names))
    count = len(beside)
    above = {"stage": stages[1:-1] if post else stages[-1:], "end": lengths[-count:] if post else beside}
    return stages, kinds, thin, bold, records(length=beside, of=[of] * count, kind=kinds[1:] * count, **above)


def order_chart(
    found: Mapping[str, np.ndarray], words: Words, *, order: str, token: int | None, ends: tuple[float, float]
) -> Chart:
    """Draw the length of one model's stream by depth: every token thin, one of them or the mean bold.

    Of a post-norm model each sum stands above the length that its norm makes of it; of a pre-norm one, what its last
    norm hands on.

    Args:
        found: growth.stages, growth.lengths, sums, tokens, handed_on, level and inside.
        order: "post" or "pre".
        token: the bold one; None for the mean.
        ends: of the axis, which is logarithmic, for charts on one scale.
    """
    stages, kinds, *rows = _order_rows(found, words, order == "post", token)
    thin, bold, aside = map(alt.Chart, rows)
    level = float(found["level"])
    levels = alt.Chart(records(length=[level], label=[f"√{int(found['inside'])} = {level:.2f}"]))
    along = alt.Axis(labelAngle=-35, labelLimit=200, labelOverlap=len(stages) > 27)
    x = alt.X("stage:N", sort=stages, title=None, scale=alt.Scale(domain=stages), axis=along)
    up = alt.Axis(labelExpr=LABELS, values=[value for value in TICKS if ends[0] <= value <= ends[1]])
    scale = alt.Scale(type="log", domain=list(ends), nice=False, clamp=True)
    y = alt.Y("length:Q", title=words["axis_stream"], scale=scale, axis=up)
    legend = alt.Legend(orient="top", labelLimit=300, symbolOpacity=1)
    hue = alt.Scale(domain=kinds, range=[HUES_OF_ORDERS[order], HUES["key"]])
    shape = alt.Scale(domain=kinds, range=["circle", "triangle-down"])
    look = {
        "color": alt.Color("kind:N", scale=hue, title=None, legend=legend),
        "shape": alt.Shape("kind:N", scale=shape, title=None, legend=legend),
        "tooltip": tooltips("of:N", "kind:N", "stage:N", "length:Q"),
    }
    return alt.layer(
        thin.mark_line(strokeWidth=1, opacity=0.4, color=HUES["residual"]).encode(
            x=x, y=y, detail=alt.Detail("token:N"), tooltip=tooltips("token:N", "stage:N", "length:Q")
        ),
        levels.mark_rule(strokeDash=[4, 4], color=HUES["residual"]).encode(y=y, tooltip=alt.Tooltip("label:N")),
        levels.mark_text(align="right", dx=-4, dy=-8).encode(y=y, x=alt.value("width"), text=alt.Text("label:N")),
        aside.mark_rule(color=HUES["key"], opacity=0.6).encode(x=x, y=y, y2=alt.Y2("end:Q")),
        bold.mark_line(strokeWidth=3, color=HUES_OF_ORDERS[order]).encode(x=x, y=y),
        *(marks.mark_point(size=55, filled=True, opacity=1).encode(x=x, y=y, **look) for marks in (bold, aside)),
    ).properties(width="container", height=380)


MEASURES = ("input_gradients", "parameter_gradients", "activations", "apart")
HUES_OF_NORMS = HUES_OF_ORDERS | {"none": HUES["key"]}
LEAST = 1e-40


def depth_chart(profiles: Sequence[Mapping[str, Any]], words: Words, *, measure: str) -> Chart:
    """Draw one measure by depth in two panels, stacks with residuals and stacks without, on shared axes.

    Args:
        profiles: each with norm, residual and the measure, (layer).
        measure: one of MEASURES; values of 0 and values that are not finite are left out (the axis is logarithmic).
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
    kinds = [words["with_residuals"], words["without_residuals"]]
    base = alt.Chart(records(**columns)).encode(
        x=alt.X("layer:Q", title=words["axis_layer"], scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", title=words[f"measure_{measure}"], scale=scale, axis=axis),
        color=hued("norm", shown, list(HUES_OF_NORMS.values()), labelLimit=300),
        strokeDash=alt.StrokeDash("norm:N", scale=dashes_of(shown), title=None),
        tooltip=tooltips("kind:N", "norm:N", "layer:Q", alt.Tooltip("value:Q", format=".3e")),
    )
    lines = base.mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(size=16))
    panels = [
        lines.transform_filter(alt.datum.kind == kind).properties(width="container", height=220, title=kind)
        for kind in kinds
    ]
    return alt.vconcat(*panels, spacing=12).resolve_scale(y="shared", x="shared", color="shared", strokeDash="shared")


def training_chart(found: Mapping[str, np.ndarray], words: Words) -> Chart:
    """Draw the loss by step of the stack with residuals and of the one without, and the loss of blind guessing.

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
    lines = (
        alt.Chart(data)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("step:Q", title=words["axis_step"], scale=alt.Scale(nice=False)),
            y=alt.Y("loss:Q", title=words["axis_loss"]),
            color=hued("of", shown, list(names.values()), labelLimit=300),
            strokeDash=alt.StrokeDash("of:N", scale=dashes_of(shown), title=None),
            tooltip=tooltips("of:N", "step:Q", "loss:Q"),
        )
    )
    label = records(loss=[float(found["guessing"])], label=[words["guessing"]])
    rule = alt.Chart(label).mark_rule(color=HUES["residual"], strokeDash=[4, 4]).encode(y=alt.Y("loss:Q"))
    text = (
        alt.Chart(label)
        .mark_text(align="right", dx=-4, dy=-8)
        .encode(y=alt.Y("loss:Q"), x=alt.value("width"), text=alt.Text("label:N"))
    )
    return alt.layer(rule, lines, text).properties(width="container", height=260)
