"""Beam search as a tree: a line of boxes for each depth, each with its probability, the fate of each branch.

Arrays come from transformer_core.analysis.translation.beam_tree. Read next: translation_search.py.
"""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Protocol

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.translation import clipped, shown_chance

ROW = 60
HALF_WIDTH, HALF_HEIGHT = 0.43, 0.33
FATES = ("kept", "finished", "dropped")
FILLS = {"kept": HUES["weights"], "finished": HUES["value"], "dropped": "transparent"}
MARKS = {"kept": "", "finished": "■ ", "dropped": "✕ "}
BEST = HUES["positions"]


class Tree(Protocol):
    """What is drawn, node by node; see BeamTree."""

    @property
    def depths(self) -> np.ndarray: ...
    @property
    def parents(self) -> np.ndarray: ...
    @property
    def ranks(self) -> np.ndarray: ...
    @property
    def words(self) -> Sequence[str]: ...
    @property
    def texts(self) -> Sequence[str]: ...
    @property
    def log_probs(self) -> np.ndarray: ...
    @property
    def steps(self) -> np.ndarray: ...
    @property
    def scores(self) -> np.ndarray: ...
    @property
    def fates(self) -> Sequence[str]: ...
    @property
    def on_best(self) -> np.ndarray: ...


def tree_chart(tree: Tree, said: Mapping[str, str], *, depth: int, start: str, whole: bool) -> Chart:
    """Draw the tree down to a depth.

    Args:
        said: kept, finished, dropped, best, start, word, text, step, log_prob, score, chance, fate: words for fates,
            titles of numbers.
        depth: how many levels are drawn.
        start: the label of what targets begin with.
        whole: the search is shown to its end, so that the way to the best may be marked.
    """
    shown = np.flatnonzero(tree.depths <= depth)
    most = int(tree.ranks.max()) + 1
    middle = (most - 1) / 2
    at = {-1: (middle, 0.0)} | {int(node): (float(tree.ranks[node]), float(tree.depths[node])) for node in shown}
    best = tree.on_best & whole
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-0.6, most - 0.4], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-0.4, depth + 0.4], reverse=True, nice=False))
    layers = [*_edges(tree, shown, at, best, said, x, y), *_nodes(tree, shown, best, said, x, y)]
    root = records(x=[middle], y=[0.0], word=[start])
    layers.append(
        alt.Chart(root)
        .mark_text(fontSize=14, fontWeight="bold", color=HUES["query"])
        .encode(x, y, text=alt.Text("word:N"))
    )
    return alt.layer(*layers).properties(width="container", height=ROW * (depth + 1))


def _edges(
    tree: Tree,
    shown: np.ndarray,
    at: Mapping[int, tuple[float, float]],
    best: np.ndarray,
    said: Mapping[str, str],
    x: alt.X,
    y: alt.Y,
) -> list[alt.Chart]:
    def part(nodes: np.ndarray, dash: list[int], hue: str, width: float, opacity: float) -> alt.Chart:
        parents = [at[int(tree.parents[node])] for node in nodes]
        data = records(
            x=[place[0] for place in parents],
            y=[place[1] + (HALF_HEIGHT if place[1] else 0.16) for place in parents],
            x2=tree.ranks[nodes].astype(float),
            y2=tree.depths[nodes] - HALF_HEIGHT,
            word=[tree.words[node] for node in nodes],
            step=tree.steps[nodes],
            chance=np.exp(tree.steps[nodes]),
        )
        tooltip = [
            alt.Tooltip("word:N", title=said["word"]),
            alt.Tooltip("step:Q", title=said["step"], format=".4g"),
            alt.Tooltip("chance:Q", title=said["chance"], format=".3%"),
        ]
        mark = alt.Chart(data).mark_rule(strokeDash=dash, color=hue, strokeWidth=width, opacity=opacity)
        return mark.encode(x=x, y=y, x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"), tooltip=tooltip)

    fates = np.array(tree.fates)[shown]
    lost, alive = shown[(fates == "dropped")], shown[(fates != "dropped") & ~best[shown]]
    return [
        part(lost, [3, 4], HUES["residual"], 1, 0.8),
        part(alive, [1, 0], HUES["weights"], 2, 0.75),
        part(shown[best[shown]], [1, 0], BEST, 4, 1.0),
    ]


def _nodes(
    tree: Tree, shown: np.ndarray, best: np.ndarray, said: Mapping[str, str], x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    def part(fate: str, on_best: bool, nodes: np.ndarray) -> list[alt.Chart]:
        dropped = fate == "dropped"
        ink = HUES["residual"] if dropped else "#ffffff"
        data = records(
            x=tree.ranks[nodes].astype(float),
            y=tree.depths[nodes].astype(float),
            left=tree.ranks[nodes] - HALF_WIDTH,
            right=tree.ranks[nodes] + HALF_WIDTH,
            top=tree.depths[nodes] - HALF_HEIGHT,
            bottom=tree.depths[nodes] + HALF_HEIGHT,
            word=[MARKS[fate] + clipped(tree.words[int(node)]) for node in nodes],
            text=[tree.texts[node] for node in nodes],
            under=[shown_chance(exp(tree.steps[node]), digits=1) for node in nodes],
            step=tree.steps[nodes],
            chance=np.exp(tree.steps[nodes]),
            log_prob=tree.log_probs[nodes],
            score=tree.scores[nodes],
            fate=[said["best"] if on_best else said[fate]] * len(nodes),
        )
        tooltip = [alt.Tooltip(f"{name}:N", title=said[name]) for name in ("text", "fate")]
        tooltip += [alt.Tooltip(f"{name}:Q", title=said[name], format=".4g") for name in ("step", "log_prob", "score")]
        tooltip.append(alt.Tooltip("chance:Q", title=said["chance"], format=".3%"))
        base = alt.Chart(data).encode(tooltip=tooltip)
        box = base.mark_rect(
            fill=FILLS[fate],
            fillOpacity=0.0 if dropped else 1.0,
            stroke=BEST if on_best else HUES["residual"] if dropped else FILLS[fate],
            strokeWidth=3 if on_best else 1,
            strokeDash=[3, 3] if dropped else [1, 0],
            cornerRadius=6,
        ).encode(x=alt.X("left:Q", axis=None), x2=alt.X2("right:Q"), y=alt.Y("top:Q", axis=None), y2=alt.Y2("bottom:Q"))
        word = base.mark_text(fontSize=14, dy=-7, color=ink, fontWeight="normal" if dropped else "bold")
        under = base.mark_text(fontSize=12, dy=10, color=ink)
        return [box, word.encode(x, y, text=alt.Text("word:N")), under.encode(x, y, text=alt.Text("under:N"))]

    fates = np.array(tree.fates)[shown]
    kinds = [(fate, way, shown[(fates == fate) & (best[shown] == way)]) for fate in FATES for way in (False, True)]
    return [chart for kind in kinds if len(kind[2]) for chart in part(*kind)]
