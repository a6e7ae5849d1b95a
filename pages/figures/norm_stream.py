"""The residual stream as a sum on the canvas, its length by depth, and each sublayer's share.

Arrays come from transformer_core.analysis.stream.residual_sum. Read next: norm_depth.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_parts import Axis, Panel, Scale

Words = Mapping[str, str]
HUES_OF_KINDS = {"embedding": HUES["residual"], "self_attention": HUES["weights"], "feed_forward": HUES["value"]}


def name_of(part: str, words: Words) -> str:
    """Return what a part such as "0.self_attention" or "token_embedding" is called on the page."""
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
    ui: Words,
    *,
    version: str,
) -> MatrixFigure:
    """Draw what each part wrote, their sum, and the stream that the model recorded, a row each.

    Args:
        parts: names of the rows.
        contributions: (part, d_model); total, stream: (d_model).
        version: names this state.
    """
    values = np.vstack([contributions, total, stream])
    labels = (*(name_of(part, words) for part in parts), words["row_sum"], words["row_stream"])
    return MatrixFigure(
        (Panel("sum", words["sum_title"], values, Scale.of("signed", values)),),
        Axis(words["axis_part"], labels),
        Axis(words["axis_dimension"], tuple(map(str, range(values.shape[1])))),
        ui,
        role="residual",
        detail="exact",
        quantity=words["quantity_written"],
        filename="norm_stream_sum",
        version=version,
    )


def shares_chart(parts: Sequence[str], norms: np.ndarray, words: Words) -> Chart:
    """Draw the length of what each part wrote into the final stream."""
    names = [name_of(part, words) for part in parts]
    kinds = [words[f"kind_{_kind(part)}"] for part in parts]
    data = records(part=names, length=norms.round(5), kind=kinds)
    hue = alt.Scale(domain=[words[f"kind_{kind}"] for kind in HUES_OF_KINDS], range=list(HUES_OF_KINDS.values()))
    y = alt.Y("part:N", sort=names, title=None, axis=alt.Axis(labelLimit=260, labelOverlap=False))
    bars = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            y=y,
            x=alt.X("length:Q", title=words["axis_length"]),
            color=alt.Color("kind:N", scale=hue, title=None, legend=alt.Legend(orient="top", labelLimit=260)),
            tooltip=["part:N", "length:Q"],
        )
    )
    numbers = (
        alt.Chart(data).mark_text(align="left", dx=4).encode(y=y, x="length:Q", text=alt.Text("length:Q", format=".2f"))
    )
    return alt.layer(bars, numbers).properties(width="container", height=24 * len(names) + 110)


def growth_chart(
    stages: Sequence[str], lengths: np.ndarray, labels: Sequence[str], words: Words, *, token: int
) -> Chart:
    """Draw the length of every token's stream by depth, the chosen token's strong, and the mean over tokens.

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
    hue = alt.Scale(domain=list(both), range=[HUES["key"], HUES["weights"]])
    x = alt.X(
        "stage:N", sort=names, title=None, axis=alt.Axis(labelAngle=-35, labelLimit=200, labelOverlap=len(names) > 26)
    )
    y = alt.Y("length:Q", title=words["axis_stream"])
    thin = (
        alt.Chart(everyone)
        .mark_line(strokeWidth=1, opacity=0.45, color=HUES["residual"])
        .encode(x=x, y=y, detail="token:N", tooltip=["token:N", "stage:N", "length:Q"])
    )
    strong = (
        alt.Chart(bold)
        .mark_line(strokeWidth=3, point=True)
        .encode(
            x=x,
            y=y,
            color=alt.Color("of:N", scale=hue, title=None, legend=alt.Legend(orient="top", labelLimit=300)),
            strokeDash=alt.StrokeDash("of:N", scale=alt.Scale(domain=list(both), range=[[1, 0], [6, 3]]), title=None),
            tooltip=["of:N", "stage:N", "length:Q"],
        )
    )
    return alt.layer(thin, strong).properties(width="container", height=300)


def written_chart(
    sublayers: Sequence[str], values: np.ndarray, labels: Sequence[str], words: Words, *, measure: str
) -> Chart:
    """Draw one measure of what each sublayer adds, a dot a token and a bar for the mean.

    Args:
        values: (sublayer, pos).
        labels: one a token.
        measure: "written", the share of the stream's length, or "cosine", with the stream.
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
            x=alt.X("value:Q", title=words[f"axis_{measure}"], axis=alt.Axis(tickCount=8)),
            color=color,
            tooltip=["token:N", "sublayer:N", "value:Q"],
        )
    )
    means = alt.Chart(data).mark_tick(thickness=4, size=16).encode(y=y, x="mean(value):Q", color=color)
    return alt.layer(dots, means).properties(width="container", height=22 * len(names) + (120 if legend else 90))
