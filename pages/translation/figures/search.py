"""Searches as charts: measures by beam width, the best of all targets, and the tree of a beam search.

Arrays come from transformer_core.analysis.translation.
"""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, dashes_of, hued, records, tooltips
from pages.figures.forms import Filled, form, named
from pages.translation.figures.charts import clipped, shown_chance

LEAST_SPAN = 0.1
ROW = 60
HALF_WIDTH, HALF_HEIGHT = 0.43, 0.33
START_HEIGHT = 0.16  # of half the first line's, which has no box
FATES = ("kept", "finished", "dropped")
FILLS = {"kept": HUES["weights"], "finished": HUES["value"], "dropped": "transparent"}
MARKS = {"kept": "", "finished": "■ ", "dropped": "✕ "}
BEST = HUES["positions"]


def _scores_domain(scores: np.ndarray) -> list[float]:
    """Return the ends of an axis of scores, at most 0, far enough apart that rounding noise looks level."""
    low, high = float(scores.min()), float(scores.max())
    half = 0.6 * max(high - low, LEAST_SPAN)
    top = min((low + high) / 2 + half, 0.0)
    return [top - 2 * half, top]


def by_width_chart(
    widths: Sequence[int] | np.ndarray, curves: Mapping[str, np.ndarray], said: Mapping[str, str], *, percent: bool
) -> Chart:
    """Draw measures of a search by its width.

    Args:
        curves: by name, (width,); shares, or else scores, at most 0.
        said: width, value (the measure's title), and a word for each curve.
        percent: the measures are shares.
    """
    names = [said[name] for name in curves]
    values = np.concatenate(list(curves.values()))
    data = records(
        width=list(widths) * len(curves),
        value=values,
        curve=[name for name in names for _ in widths],
    )
    form = ".0%" if percent else ".2f"
    y = alt.Y(
        "value:Q",
        title=said["value"],
        scale=alt.Scale(domain=[0, 1] if percent else _scores_domain(values)),
        axis=alt.Axis(format=form, minExtent=46),
    )
    several = len(names) > 1
    legend = alt.Legend(orient="top", direction="horizontal") if several else None
    colour = alt.Color("curve:N", title=None, scale=alt.Scale(domain=names, range=list(PALETTE)), legend=legend)
    base = alt.Chart(data).encode(
        x=alt.X("width:O", title=said["width"], axis=alt.Axis(labelAngle=0)),
        y=y,
        color=colour,
        tooltip=tooltips(
            "curve:N", "width:O", alt.Tooltip("value:Q", format=".1%" if percent else ".4f", title=said["value"])
        ),
    )
    lines = base.mark_line(strokeWidth=2.5).encode(
        strokeDash=alt.StrokeDash("curve:N", scale=dashes_of(names), legend=None)
    )
    return alt.layer(lines, base.mark_point(size=70, filled=True)).properties(width="container", height=240)


def ranked_chart(
    texts: Sequence[str], scores: np.ndarray, found_by: Sequence[str], right: Sequence[bool], said: Mapping[str, str]
) -> Chart:
    """Draw the best of all targets as bars, the shorter the better, with the searches that found each.

    Shapes:
        scores: (rank,), falling, at most 0

    Args:
        found_by: for each target the searches that end with it, in words, or "".
        right: whether it is the right answer.
        said: text, score, found, missed, right.
    """
    names = [f"{rank + 1} · {text or '∅'}" for rank, text in enumerate(texts)]
    notes = [(by, said["right"] if ok else "") for by, ok in zip(found_by, right, strict=True)]
    marks = [" ".join(filter(None, note)) for note in notes]
    kinds = [said["found"] if by else said["missed"] for by in found_by]
    data = records(text=names, cost=-scores, score=scores, mark=marks, kind=kinds)
    y = alt.Y("text:N", sort=names, title=None, axis=alt.Axis(labelFontSize=13, labelLimit=200, labelOverlap=False))
    x = alt.X("cost:Q", title=said["score"], scale=alt.Scale(domain=[0, float(-scores.min()) * 1.75 or 1.0]))
    kinds, hues = (said["found"], said["missed"]), (HUES["weights"], HUES["residual"])
    colour = hued("kind", kinds, hues, direction="horizontal")
    tooltip = [
        alt.Tooltip("text:N", title=said["text"]),
        alt.Tooltip("score:Q", title=said["score"], format=".4f"),
    ]
    base = alt.Chart(data).encode(x=x, y=y, color=colour, tooltip=tooltip)
    bars = base.mark_bar(height=15, cornerRadiusEnd=3)
    numbers = base.mark_text(align="left", dx=5, fontSize=12).encode(text=alt.Text("label:N"))
    labelled = numbers.transform_calculate(label="format(datum.score, '.2f') + '   ' + datum.mark")
    return alt.layer(bars, labelled).properties(width="container", height=26 * len(names) + 90)


Tree = Any  # a BeamTree, not named as a type: figures do not import the engine


def _edges_of(tree: Tree, shown: np.ndarray, best: np.ndarray) -> Any:
    """Return the rows of the lines from each node's parent to the node."""
    middle = int(tree.ranks.max()) / 2
    parents = [int(tree.parents[node]) for node in shown]
    x = [float(tree.ranks[parent]) if parent >= 0 else middle for parent in parents]
    y = [tree.depths[parent] + HALF_HEIGHT if parent >= 0 else START_HEIGHT for parent in parents]
    return records(
        x=x,
        y=y,
        x2=tree.ranks[shown].astype(float),
        y2=tree.depths[shown] - HALF_HEIGHT,
        word=[tree.words[node] for node in shown],
        step=tree.steps[shown],
        chance=np.exp(tree.steps[shown]),
        kind=["best" if best[node] else "lost" if tree.fates[node] == "dropped" else "alive" for node in shown],
    )


def _nodes_of(tree: Tree, shown: np.ndarray, best: np.ndarray, said: Mapping[str, str]) -> Any:
    """Return the rows of the nodes."""
    fates = [tree.fates[int(node)] for node in shown.tolist()]
    return records(
        x=tree.ranks[shown].astype(float),
        y=tree.depths[shown].astype(float),
        left=tree.ranks[shown] - HALF_WIDTH,
        right=tree.ranks[shown] + HALF_WIDTH,
        top=tree.depths[shown] - HALF_HEIGHT,
        bottom=tree.depths[shown] + HALF_HEIGHT,
        word=[MARKS[fate] + clipped(tree.words[int(node)]) for fate, node in zip(fates, shown, strict=True)],
        text=[tree.texts[node] for node in shown],
        under=[shown_chance(exp(tree.steps[node]), digits=1) for node in shown],
        step=tree.steps[shown],
        chance=np.exp(tree.steps[shown]),
        log_prob=tree.log_probs[shown],
        score=tree.scores[shown],
        fate=[said["best"] if best[node] else said[fate] for fate, node in zip(fates, shown, strict=True)],
        kind=[f"{fate}_best" if best[node] else fate for fate, node in zip(fates, shown, strict=True)],
    )


def tree_chart(tree: Tree, said: Mapping[str, str], *, depth: int, start: str, whole: bool) -> Filled:
    """Draw the tree down to a depth, in the room of the whole.

    Args:
        said: words for fates (kept, finished, dropped, best) and titles (word, text, step, log_prob, score, chance,
            fate).
        depth: how many levels are drawn.
        start: the label of what targets begin with.
        whole: the tree is shown to its end, so that the path to the best is marked.
    """
    shown = np.flatnonzero(tree.depths <= depth)
    best = tree.on_best & whole
    most, deepest = int(tree.ranks.max()) + 1, int(tree.depths.max())
    rows = {
        "nodes": _nodes_of(tree, shown, best, said),
        "edges": _edges_of(tree, shown, best),
        "start": records(x=[(most - 1) / 2], y=[0.0], word=[start]),
    }
    return Filled(_tree_form(said, most, deepest), rows)


@form
def _tree_form(said: Mapping[str, str], most: int, deepest: int) -> Chart:
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-0.6, most - 0.4], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-0.4, deepest + 0.4], reverse=True, nice=False))
    tooltip = [
        alt.Tooltip("word:N", title=said["word"]),
        alt.Tooltip("step:Q", title=said["step"], format=".4g"),
        alt.Tooltip("chance:Q", title=said["chance"], format=".3%"),
    ]
    edges = named("edges").encode(x=x, y=y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"), tooltip=tooltip)
    lines = [
        edges.transform_filter(f"datum.kind === '{kind}'").mark_rule(
            strokeDash=dash, color=hue, strokeWidth=width, opacity=opacity
        )
        for kind, dash, hue, width, opacity in (
            ("lost", [3, 4], HUES["residual"], 1, 0.8),
            ("alive", [1, 0], HUES["weights"], 2, 0.75),
            ("best", [1, 0], BEST, 4, 1.0),
        )
    ]
    kinds = [(fate, on_best) for fate in FATES for on_best in (False, True) if not (fate == "dropped" and on_best)]
    nodes = [part for kind in kinds for part in _node_layers(*kind, said, x, y)]
    root = named("start").mark_text(fontSize=14, fontWeight="bold", color=HUES["query"])
    layers = [*lines, *nodes, root.encode(x, y, text=alt.Text("word:N"))]
    return alt.layer(*layers).properties(height=ROW * (deepest + 1))


def _node_layers(fate: str, on_best: bool, said: Mapping[str, str], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Return the boxes, the words and the numbers of the nodes of one kind."""
    dropped = fate == "dropped"
    ink = HUES["residual"] if dropped else "#ffffff"
    tooltip = [alt.Tooltip(f"{name}:N", title=said[name]) for name in ("text", "fate")]
    tooltip += [alt.Tooltip(f"{name}:Q", title=said[name], format=".4g") for name in ("step", "log_prob", "score")]
    tooltip.append(alt.Tooltip("chance:Q", title=said["chance"], format=".3%"))
    kind = f"{fate}_best" if on_best else fate
    base = named("nodes").transform_filter(f"datum.kind === '{kind}'").encode(tooltip=tooltip)
    box = base.mark_rect(
        fill=FILLS[fate],
        fillOpacity=0.0 if dropped else 1.0,
        stroke=BEST if on_best else HUES["residual"] if dropped else FILLS[fate],
        strokeWidth=3 if on_best else 1,
        strokeDash=[3, 3] if dropped else [1, 0],
        cornerRadius=6,
        aria=False,  # its word is read; of a kind that does not occur, nothing would be
    ).encode(x=alt.X("left:Q", axis=None), x2=alt.X2("right:Q"), y=alt.Y("top:Q", axis=None), y2=alt.Y2("bottom:Q"))
    word = base.mark_text(fontSize=14, dy=-7, color=ink, fontWeight="normal" if dropped else "bold")
    under = base.mark_text(fontSize=12, dy=10, color=ink)
    return [box, word.encode(x, y, text=alt.Text("word:N")), under.encode(x, y, text=alt.Text("under:N"))]
