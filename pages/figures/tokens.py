"""Charts of the tokens page: what length costs, how merging shortens a text, and which pairs compete.

Arrays come from transformer_core.analysis.words.tokenizer_comparison and merging. Read next: tokens_one_hot.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, records
from pages.figures.forms import Filled, form, named

POINTS_OF_CURVE = 60
NEUTRAL = "#7d7887"  # stands out from white and from black alike
SIZES = (520, 400, 290, 190, 120)  # so that none hides another where two are equally long
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross")


def cost_chart(names: Sequence[str], n_tokens: Sequence[int], pairs: Sequence[int], words: Mapping[str, str]) -> Filled:
    """Draw n squared with a point a tokenizer.

    Shapes:
        names, n_tokens, pairs: (tokenizer,)

    Args:
        words: titles "tokens" and "pairs".
    """
    xs = np.linspace(0, 1.08 * max([*n_tokens, 1]), POINTS_OF_CURVE)
    named_so = [f"{name}: {count}² = {pair:,}" for name, count, pair in zip(names, n_tokens, pairs, strict=True)]
    points = records(tokens=list(n_tokens), pairs=list(pairs), tokenizer=named_so, size=list(SIZES[: len(names)]))
    rows = {"tokenizers": points, "curve": records(tokens=xs, pairs=xs**2)}
    return Filled(_cost(len(names), words["tokens"], words["pairs"]), rows)


@form
def _cost(n_tokenizers: int, across: str, up: str) -> Chart:
    x = alt.X("tokens:Q", title=across, scale=alt.Scale(nice=False))
    y = alt.Y("pairs:Q", title=up, axis=alt.Axis(format=",.0f"))
    curve = named("curve").mark_line(color=NEUTRAL, strokeDash=[5, 4]).encode(x, y)
    hues = alt.Scale(range=list(PALETTE[:n_tokenizers]))
    shapes = alt.Scale(range=list(SHAPES[:n_tokenizers]))
    points = (
        named("tokenizers")
        .mark_point(filled=True, opacity=1, stroke="#ffffff", strokeWidth=1)
        .encode(
            x,
            y,
            size=alt.Size("size:Q", scale=None, legend=None),
            color=alt.Color("tokenizer:N", title=None, sort=None, scale=hues),
            shape=alt.Shape("tokenizer:N", title=None, sort=None, scale=shapes),
            tooltip=["tokenizer:N", "tokens:Q", alt.Tooltip("pairs:Q", format=",")],
        )
    )
    legend = alt.LegendConfig(orient="right", labelLimit=260, labelFontSize=13, symbolSize=130, rowPadding=5)
    return alt.layer(curve, points).properties(height=250).configure(legend=legend)


def _corners(counts: np.ndarray, step: int) -> np.ndarray:
    """Return where a stepped curve is drawn: on both sides of its changes, or evenly spread where these are many."""
    last = len(counts) - 1
    changes = np.flatnonzero(np.diff(counts)) + 1
    if len(changes) > POINTS_OF_CURVE:
        places = np.linspace(0, last, POINTS_OF_CURVE).round().astype(int)
    else:
        places = np.concatenate([changes - 1, changes])
    return np.union1d(places, [0, step, last])


def merging_chart(n_tokens: np.ndarray, sentence_tokens: np.ndarray, step: int, words: Mapping[str, str]) -> Chart:
    """Draw how much is left of the tokens after each merge, of the text learned from and of the sentence.

    Shapes:
        n_tokens, sentence_tokens: (merges + 1,)

    Args:
        step: marked.
        words: titles "merges" and "left", names "corpus" and "sentence", and "step" of the mark.
    """
    series = {words["corpus"]: n_tokens, words["sentence"]: sentence_tokens}
    drawn_at = {name: _corners(counts, step) for name, counts in series.items()}
    lines = records(
        merges=np.concatenate(list(drawn_at.values())),
        left=np.concatenate([100 * series[name][at] / max(series[name][0], 1) for name, at in drawn_at.items()]),
        tokens=np.concatenate([series[name][at] for name, at in drawn_at.items()]),
        of=[name for name, at in drawn_at.items() for _ in at],
    )
    across = alt.X("merges:Q", title=words["merges"], scale=alt.Scale(nice=False))
    up = alt.Y("left:Q", title=words["left"], scale=alt.Scale(domain=[0, 100]))
    colour = alt.Color("of:N", title=None, sort=None, scale=alt.Scale(range=[HUES["residual"], HUES["weights"]]))
    dash = alt.StrokeDash("of:N", title=None, sort=None, scale=alt.Scale(range=[[1, 0], [6, 3]]))
    drawn = alt.Chart(lines).mark_line(strokeWidth=2.2).encode(across, up, colour, dash)
    shares = [float(100 * counts[step] / max(counts[0], 1)) for counts in series.values()]
    here = records(
        merges=[step] * len(series),
        left=shares,
        upper=[int(shares[0] >= shares[1]), int(shares[0] < shares[1])],
        tokens=[int(counts[step]) for counts in series.values()],
        of=list(series),
    )
    rule = alt.Chart(here).mark_rule(color=HUES["positions"], strokeWidth=1.5).encode(across)
    points = (
        alt.Chart(here)
        .mark_point(filled=True, size=90, opacity=1)
        .encode(across, up, colour, tooltip=["of:N", "merges:Q", "tokens:Q", alt.Tooltip("left:Q", format=".1f")])
    )
    above, below = (
        alt.Chart(here)
        .transform_filter(f"datum.upper == {upper}")
        .mark_text(dx=8, dy=-10 if upper else 13, align="left", fontWeight="bold", fontSize=13)
        .encode(across, up, colour, text=alt.Text("tokens:Q", format=","))
        for upper in (1, 0)
    )
    legend = alt.LegendConfig(orient="top", labelFontSize=13, labelLimit=400, symbolType="stroke", symbolSize=500)
    chart = alt.layer(rule, drawn, points, above, below).properties(width="container", height=340)
    return chart.configure(legend=legend)


def rivals_chart(rivals: Sequence[str], counts: Sequence[int], words: Mapping[str, str]) -> Chart:
    """Draw the most frequent pairs as bars, the one that is joined first.

    Shapes:
        rivals, counts: (pair,)

    Args:
        words: titles "pair" and "count", and names "joined" and "waiting".
    """
    data = records(
        pair=[f"{place}.  {rival}" for place, rival in enumerate(rivals, start=1)],
        count=list(counts),
        what=[words["joined"], *[words["waiting"]] * (len(rivals) - 1)],
    )
    down = alt.Y(
        "pair:N",
        title=None,
        sort=None,
        axis=alt.Axis(labelFontSize=13, labelLimit=220, labelOverlap=False, ticks=False),
    )
    across = alt.X("count:Q", title=words["count"], axis=alt.Axis(tickMinStep=1, format=",.0f"))
    kinds = alt.Scale(domain=[words["joined"], words["waiting"]], range=[HUES["positions"], "#a59eae"])
    colour = alt.Color("what:N", title=None, sort=None, scale=kinds)
    bars = alt.Chart(data).mark_bar(height={"band": 0.72}).encode(across, down, colour, tooltip=["pair:N", "count:Q"])
    numbers = (
        alt.Chart(data)
        .mark_text(align="left", dx=4, fontSize=12)
        .encode(across, down, text=alt.Text("count:Q", format=","))
    )
    legend = alt.LegendConfig(orient="top", labelFontSize=13)
    return alt.layer(bars, numbers).properties(width="container", height=340).configure(legend=legend)
