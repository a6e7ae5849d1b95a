"""A text as a strip of its tokens, each as wide as it reads, coloured by a number in bits.

Arrays come from transformer_core.analysis.gpt.
"""

import json
from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, columns_of, records
from pages.figures.forms import Filled, form, named

LINE = 92
MOST_LETTERS = 18
SURPRISE = ("#fdf0f5", "#f3b6cf", "#d8578f", "#8c1450")
DARK, WHITE, OUTLINE = "#1d1a26", "#ffffff", "#8f8a99"
DASH = [4, 3]
ROW_HEIGHT, ROOM = 34, 108
PLACE = "place"  # names the selection: how many tokens have been read before the token that was clicked
MOST_BITS = 12.0


def shortened(label: str) -> str:
    """Return a label that fits a cell."""
    return label if len(label) <= MOST_LETTERS else f"{label[: MOST_LETTERS - 1]}…"


def laid_out(labels: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the line, the left and the right end of each cell, as of text in lines of LINE columns."""
    lines, lefts, rights = [], [], []
    line = left = 0
    for label in labels:
        right = left + max(1, columns_of(label)) + 1
        if right > LINE and left:
            line, left, right = line + 1, 0, right - left
        lines.append(line)
        lefts.append(left)
        rights.append(right)
        left = right
    return np.array(lines), np.array(lefts), np.array(rights)


def text_strip(
    labels: Sequence[str],
    bits: Sequence[float],
    about: Mapping[str, Sequence[object]],
    words: Mapping[str, str],
    *,
    chosen: int,
    marked: Sequence[bool] = (),
) -> Filled:
    """Draw a text with its tokens' surprisal; a click on a token reports its place.

    Shapes:
        bits: (pos,), not a number where there is none

    Args:
        labels: one a token; the label after the last stands for what is not written yet.
        about: what the tooltip tells of each token, by the name shown.
        words: token, bits, bits_most (of the end of the scale), unknown (of what nothing was foreseen for).
        chosen: the place that is ringed.
        marked: tokens with a line under them.
    """
    shown = [shortened(label) for label in labels]
    line, left, right = laid_out(shown)
    known_bits = np.isfinite(np.asarray(bits, dtype=float)).tolist()
    columns = {f"about{index}": list(values) for index, values in enumerate(about.values())}
    tokens = records(
        place=list(range(len(shown))),
        label=shown,
        bits=np.asarray(bits, dtype=float).round(4),
        known=known_bits,
        said=["" if known else words["unknown"] for known in known_bits],
        line=line,
        left=left + 0.08,
        right=right - 0.08,
        middle=(left + right) / 2,
        chosen=[place == chosen for place in range(len(shown))],
        under=list(marked) or [False] * len(shown),
        **columns,
    )
    strip = _strip(words, tuple(about), unknown=not all(known_bits))
    return Filled(strip, {"tokens": tokens}, height=ROOM + ROW_HEIGHT * int(line.max() + 1))


@form
def _strip(words: Mapping[str, str], about: tuple[str, ...], *, unknown: bool) -> Chart:
    lines = alt.Y("line:O", axis=None, scale=alt.Scale(paddingInner=0.12, paddingOuter=0.06))
    across = alt.X("left:Q", axis=None, scale=alt.Scale(domain=[0, LINE], nice=False))
    about_tooltips = (alt.Tooltip(f"about{index}:N", title=name) for index, name in enumerate(about))
    tooltip = [alt.Tooltip("label:N", title=words["token"]), *about_tooltips]
    edges = {"x": across, "x2": alt.X2("right:Q"), "y": lines, "tooltip": tooltip}
    base = named("tokens")
    foreseen, blank = base.transform_filter("datum.known"), base.transform_filter("!datum.known")
    pick = alt.selection_point(name=PLACE, fields=[PLACE], on="click", clear=False)
    cells = foreseen.mark_rect(cornerRadius=3, cursor="pointer").encode(**edges, color=_hue(words)).add_params(pick)
    ring, rule = (
        base.transform_filter(f"datum.{which}")
        .mark_rect(cornerRadius=3, filled=False, stroke=hue, strokeWidth=width, aria=False)
        .encode(**edges)
        for which, hue, width in (("chosen", HUES["positions"], 3), ("under", HUES["query"], 1))
    )
    over = {"x": alt.X("middle:Q"), "y": lines, "text": alt.Text("label:N"), "tooltip": tooltip}
    letters = {"font": "monospace", "fontSize": 13, "cursor": "pointer"}
    ink = alt.condition(f"datum.bits > {0.52 * MOST_BITS}", alt.value(WHITE), alt.value(DARK))
    layers = [cells, rule, ring, foreseen.mark_text(**letters).encode(**over, color=ink)]
    if unknown:
        outlined = blank.mark_rect(cornerRadius=3, cursor="pointer", fill="transparent", strokeDash=DASH, aria=False)
        layers.insert(1, outlined.encode(**edges, stroke=_outline(words)))
        layers.append(blank.mark_text(**letters).encode(**over))
    return alt.layer(*layers)


def _hue(words: Mapping[str, str]) -> alt.Color:
    most = json.dumps(words["bits_most"].format(bits=f"{MOST_BITS:.0f}"))
    legend = alt.Legend(
        orient="top",
        direction="horizontal",
        gradientLength=220,
        gradientThickness=10,
        values=[0, 4, 8, MOST_BITS],
        labelExpr=f"datum.value >= {MOST_BITS} ? {most} : datum.label",
        titleLimit=400,
    )
    scale = alt.Scale(domain=[0, MOST_BITS], range=list(SURPRISE), clamp=True)
    return alt.Color("bits:Q", scale=scale, title=words["bits"], legend=legend)


def _outline(words: Mapping[str, str]) -> alt.Stroke:
    legend = alt.Legend(
        orient="top",
        symbolType="square",
        symbolSize=180,
        symbolFillColor="transparent",
        symbolDash=DASH,
        symbolStrokeWidth=1.5,
        labelLimit=400,
    )
    scale = alt.Scale(domain=[words["unknown"]], range=[OUTLINE])
    return alt.Stroke("said:N", scale=scale, title=None, legend=legend)
