"""Tokens as charts (cost, merges, competing pairs), as chips (assets/components/chips) and as one-hot vectors.

Arrays come from transformer_core.analysis.words: tokenizing, merging and word_relations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, records, tooltips
from pages.figures.forms import Filled, form, named
from pages.figures.matrix import Axis, MatrixFigure, Panel, Scale

POINTS_OF_CURVE = 60
NEUTRAL = "#7d7887"  # stands out from white and from black alike
SIZES = (520, 400, 290, 190, 120)  # so that none hides another where two are equally long
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross")


def cost_chart(names: Sequence[str], n_tokens: Sequence[int], pairs: Sequence[int], words: Mapping[str, str]) -> Filled:
    """Draw the curve n², with one point for each tokenizer.

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
            tooltip=tooltips("tokenizer:N", "tokens:Q", alt.Tooltip("pairs:Q", format=",")),
        )
    )
    legend = alt.LegendConfig(orient="right", labelLimit=260, labelFontSize=13, symbolSize=130, rowPadding=5)
    return alt.layer(curve, points).properties(height=250).configure(legend=legend)


def _corners(counts: np.ndarray, step: int) -> np.ndarray:
    """Return the places at which a stepped curve needs points: both sides of each change, or evenly spread if many."""
    last = len(counts) - 1
    changes = np.flatnonzero(np.diff(counts)) + 1
    if len(changes) > POINTS_OF_CURVE:
        places = np.linspace(0, last, POINTS_OF_CURVE).round().astype(int)
    else:
        places = np.concatenate([changes - 1, changes])
    return np.union1d(places, [0, step, last])


def merging_chart(n_tokens: np.ndarray, sentence_tokens: np.ndarray, step: int, words: Mapping[str, str]) -> Chart:
    """Draw the share of tokens that is left after each merge, of the training text and of the sentence.

    Shapes:
        n_tokens, sentence_tokens: (merges + 1,)

    Args:
        step: the merge that is marked.
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
        .encode(
            across, up, colour, tooltip=tooltips("of:N", "merges:Q", "tokens:Q", alt.Tooltip("left:Q", format=".1f"))
        )
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
    """Draw the most frequent pairs as bars, the pair to be joined on top.

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
    bars = (
        alt.Chart(data)
        .mark_bar(height={"band": 0.72})
        .encode(across, down, colour, tooltip=tooltips("pair:N", "count:Q"))
    )
    numbers = (
        alt.Chart(data)
        .mark_text(align="left", dx=4, fontSize=12)
        .encode(across, down, text=alt.Text("count:Q", format=","))
    )
    legend = alt.LegendConfig(orient="top", labelFontSize=13)
    return alt.layer(bars, numbers).properties(width="container", height=340).configure(legend=legend)


OF_TOKENS = {
    "labels": "label",
    "ids": "id",
    "starts": "start",
    "ends": "end",
    "spelled": "bytes",
}  # as a browser has it
OF_TOKENS |= {name: name for name in ("special", "unknown", "shared")}
COLUMNS = ("tokenizer", "place", "label", "id", "start", "end", "surface", "bytes")


@dataclass(frozen=True)
class Line:
    """One line of chips: a text as one tokenizer splits it.

    Args:
        title: its name.
        count, unit: the large number, and what it counts; without a number, how much it is in words.
        facts: short texts beside the line.
        verdict: in words, whether decoding gives the text back; may be empty.
        faithful: whether decoding gives the text back.
        labels, ids, starts, ends, special, unknown, shared, spelled: one a token. # (pos)
        fresh: whether the last merge made the token; empty where there was no merge. # (pos)
        framed: whether a chat template wrote the token; empty where there is none. # (pos)
        hue: of the whole line, from 0; None where neighbours have different ones.
    """

    title: str
    count: str
    unit: str
    facts: tuple[str, ...]
    verdict: str
    faithful: bool
    labels: Sequence[str]
    ids: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]
    special: Sequence[bool]
    unknown: Sequence[bool]
    shared: Sequence[bool]
    spelled: Sequence[str]
    fresh: Sequence[bool] = ()
    framed: Sequence[bool] = ()
    hue: int | None = None

    @classmethod
    def of(cls, tokens: Any, part: slice = slice(None), **rest: Any) -> "Line":
        """Return the line of what has all OF_TOKENS, as a Cut has, or of a part of it.

        Args:
            rest: all else, and what it has none of.
        """
        return cls(**{name: getattr(tokens, name)[part] for name in OF_TOKENS if name not in rest}, **rest)


@dataclass(frozen=True)
class Chips:
    """A text and its lines of tokens.

    Args:
        text: the text that was split; starts and ends count its code points.
        lines: at least one.
        words: chips.* of the locale, without that prefix; the browser fills in the {…}.
        name: of the figure's files, unique on the page.
        version: names this state; the element's `data-painted` has it once it is drawn.
    """

    text: str
    lines: tuple[Line, ...]
    words: Mapping[str, str]
    name: str
    version: str

    def data(self, *, caption: Sequence[str] = ()) -> dict:
        """Return the data of the component.

        Args:
            caption: lines above the picture in its files, which name the model and the text.
        """
        return {
            "text": self.text,
            "rows": [_row(line) for line in self.lines],
            "words": dict(self.words),
            "name": self.name,
            "version": self.version,
            "caption": list(caption),
        }


def _row(line: Line) -> dict:
    none = (False,) * len(line.ids)
    columns = {sent: getattr(line, name) for name, sent in OF_TOKENS.items()}
    columns |= {"fresh": line.fresh or none, "framed": line.framed or none}
    tokens = [dict(zip(columns, token, strict=True)) for token in zip(*columns.values(), strict=True)]
    about = ("title", "count", "unit", "facts", "verdict", "faithful", "hue")
    return {name: value for name, value in asdict(line).items() if name in about} | {"tokens": tokens}


def rows_of_chips(chips: Chips, columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return every token of every line as a row of one table.

    Args:
        columns: headings of all of COLUMNS.
    """
    rows = []
    for line in chips.lines:
        surfaces = [chips.text[start:end] for start, end in zip(line.starts, line.ends, strict=True)]
        ids = [id_ if id_ >= 0 else None for id_ in line.ids]
        places = zip(line.labels, ids, line.starts, line.ends, surfaces, line.spelled, strict=True)
        for place, token in enumerate(places):
            values = (line.title, place, *token)
            rows.append({columns[name]: value for name, value in zip(COLUMNS, values, strict=True)})
    return rows


MEASURES = ("vectors", "cosine", "distance")


def one_hot_figure(
    one_hot: np.ndarray,
    learned: np.ndarray,
    labels: Sequence[str],
    ids: Sequence[int],
    words: Mapping[str, str],
    *,
    measure: str,
    note: str = "",
) -> MatrixFigure:
    """Draw both kinds of vectors side by side, or their cosines or distances between every two tokens.

    Shapes:
        one_hot: (token, token)
        learned: (token, d_model) for "vectors", else (token, token)

    Args:
        words: tokens_one_hot.* of the locale.
        measure: one of MEASURES.
        note: the caption.
    """
    tokens = Axis(words["axis_token"], tuple(labels))
    others = Axis(words["axis_other"], tuple(labels))
    columns = Axis(words["axis_column"], tuple(map(str, ids)))
    dimensions = Axis.counted(words["axis_dimension"], learned.shape[1])
    if measure == "vectors":
        scales = Scale("probability", 0.0, 1.0), Scale.of("signed", learned)
    elif measure == "cosine":
        scales = (Scale("signed", -1.0, 1.0),) * 2
    else:
        scales = (Scale.of("count", one_hot, learned),) * 2
    across = (columns, dimensions) if measure == "vectors" else (others, others)
    return MatrixFigure(
        tuple(
            Panel(id=name, title=words[name], values=values, scale=scale, cols=cols)
            for name, values, scale, cols in zip(
                ("one_hot", "learned"), (one_hot, learned), scales, across, strict=True
            )
        ),
        tokens,
        others,
        role="residual",
        detail="exact",
        link="tokens",
        quantity=words[f"quantity_{measure}"],
        note=note,
        filename=f"one_hot_{measure}",
    )
