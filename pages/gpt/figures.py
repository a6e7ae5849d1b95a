"""Figures of the GPT page: draws, what a cache keeps and saves, drafts, the lens by layers, and the mask at work.

Arrays come from transformer_core.analysis.gpt.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, PALETTE, Chart, dashes_of, hued, records, tooltips
from pages.figures.forms import Filled, form, in_order, named
from pages.figures.heads import head_board
from pages.figures.lens import stage_axis, stage_names
from pages.figures.likeliest import CHANCE, REST, ROOM, distinct
from pages.figures.matrix import Axis, MatrixFigure, Panel, Role, Scale
from pages.figures.token_strip import PLACE, WHITE, shortened

DRAFT_HUES = {"accepted": "#1c7a41", "own": "#2f62b8", "refused": HUES["key"], "unread": "#8d8996"}
PASS, PASS_ROOM = 26, 110  # pixels of a row, and of what stands around them


def draws_bars(
    labels: Sequence[str],
    probabilities: np.ndarray,
    counts: np.ndarray,
    spread: np.ndarray,
    words: Mapping[str, str],
) -> Filled:
    """Draw the counts as bars, and over each the expected count with two standard deviations either way.

    Shapes:
        probabilities, counts, spread: (top + 1,), the last of all other tokens

    Args:
        words: count, counted, due, rest.
    """
    names = [*distinct(labels), words["rest"]]
    draws = counts.sum()
    due = probabilities * draws
    low, high = (due - 2 * spread).clip(0.0), due + 2 * spread
    data = records(
        token=names,
        count=counts,
        due=due.round(2),
        low=low.round(2),
        high=high.round(2),
        chance=probabilities.round(6),
        place=list(range(len(names))),
        axis_end=[float(max(counts.max(), high.max())) * 1.08] * len(names),
    )
    said = {name: words[name] for name in ("count", "counted", "due")}
    return Filled(_draws(said), {"tokens": data}, height=ROOM + 26 * len(names))


@form
def _draws(words: Mapping[str, str]) -> Chart:
    base = named("tokens").encode(
        y=alt.Y(
            "token:N",
            sort=in_order("place"),
            title=None,
            axis=alt.Axis(labelFont="monospace", labelFontSize=13, labelLimit=220, labelOverlap=False, ticks=False),
        ),
        tooltip=[
            alt.Tooltip("token:N"),
            alt.Tooltip("count:Q", title=words["counted"]),
            alt.Tooltip("due:Q", title=words["due"]),
            alt.Tooltip("chance:Q", format=".3%"),
        ],
    )
    across = alt.X("count:Q", title=words["count"])
    bars = base.mark_bar(color=CHANCE, opacity=0.55, cornerRadiusEnd=2).encode(x=across)
    band = base.mark_rule(strokeWidth=2, color=HUES["residual"]).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    tick = base.mark_tick(thickness=3, size=16, color=PALETTE[4]).encode(x=alt.X("due:Q"))
    room = base.mark_rule(opacity=0, aria=False, tooltip=None).encode(x=alt.X("axis_end:Q", title=words["count"]))
    return alt.layer(bars, band, tick, room)


def kept_grid(
    kept: np.ndarray,
    labels: tuple[str, ...],
    readers: Sequence[str],
    words: Mapping[str, str],
    *,
    role: Role,
) -> MatrixFigure:
    """Draw the keys or values that a layer keeps, a panel for each head of them.

    Shapes:
        kept: (kv_head, pos, d_head)

    Args:
        labels: of the positions.
        readers: by head of keys and values, which heads read it.
        words: token, dimension, quantity.
    """
    scale = Scale.of("signed", kept)
    panels = (Panel(str(head), readers[head], values, scale) for head, values in enumerate(kept))
    return MatrixFigure(
        tuple(panels),
        Axis(words["token"], labels),
        Axis.counted(words["dimension"], kept.shape[2]),
        role=role,
        quantity=words["quantity"],
        filename="gpt_cache",
    )


def cache_curves(lengths: np.ndarray, plain: np.ndarray, cached: np.ndarray, words: Mapping[str, str]) -> Chart:
    """Draw the time of one more token over the tokens read so far, without a cache and with it.

    Shapes:
        lengths, plain, cached: (length,), times in seconds

    Args:
        words: length, milliseconds, plain, cached.
    """
    names = [words["plain"], words["cached"]]
    data = records(
        length=np.tile(lengths, 2),
        ms=(1_000 * np.concatenate([plain, cached])).round(4),
        way=np.repeat(names, len(lengths)).tolist(),
    )
    return (
        alt.Chart(data)
        .mark_line(point=alt.OverlayMarkDef(size=50, filled=True), strokeWidth=2.5)
        .encode(
            x=alt.X("length:Q", title=words["length"], scale=alt.Scale(nice=False)),
            y=alt.Y("ms:Q", title=words["milliseconds"], scale=alt.Scale(zero=True)),
            color=hued("way", names, (REST, CHANCE), labelLimit=300),
            strokeDash=alt.StrokeDash("way:N", scale=dashes_of(names)),
            tooltip=tooltips("way:N", "length:Q", alt.Tooltip("ms:Q", format=".2f", title=words["milliseconds"])),
        )
        .properties(width="container", height=280)
    )


def drafted_passes(
    passes: Sequence[tuple[Sequence[str], int, str | None]], words: Mapping[str, str], *, columns: int
) -> Filled:
    """Draw each pass of the large model as a row: what it writes, and then, pale, what it refused.

    Args:
        passes: labels of the proposed tokens, how many are accepted, and the label of the model's own, if any.
        words: accepted, own, refused, unread (proposed after a refused one); pass, place, token, kind.
        columns: the most tokens that stand in a row.
    """
    cells = []
    for number, (guessed, accepted, own) in enumerate(passes, 1):
        written = [(label, "accepted") for label in guessed[:accepted]] + ([] if own is None else [(own, "own")])
        unread = ["unread"] * len(guessed)
        dropped = zip(guessed[accepted:], unread if own is None else ["refused", *unread], strict=False)
        cells += [(number, place, *cell) for place, cell in enumerate((*written, *dropped), 1)]
    rows, places, labels, kinds = zip(*cells, strict=True)
    data = records(
        turn=rows,
        column=places,
        token=labels,
        label=[shortened(label) for label in labels],
        kind=[words[kind] for kind in kinds],
        written=[kind in ("accepted", "own") for kind in kinds],
    )
    return Filled(_passes(words, columns), {"cells": data}, height=PASS_ROOM + PASS * len(passes))


@form
def _passes(words: Mapping[str, str], columns: int) -> Chart:
    kinds = [words[kind] for kind in DRAFT_HUES]
    across = alt.X(
        "column:O",
        title=words["place"],
        axis=alt.Axis(labelAngle=0),
        scale=alt.Scale(domain=list(range(1, columns + 1)), paddingInner=0.05),
    )
    up = alt.Y("turn:O", title=words["pass"], scale=alt.Scale(paddingInner=0.12))
    tooltip = [alt.Tooltip(f"{name}:N", title=words[name]) for name in ("token", "kind")]
    hue = hued("kind", kinds, list(DRAFT_HUES.values()), symbolType="square", labelLimit=400, columns=2)
    base = named("cells").encode(x=across, y=up, tooltip=tooltip)
    kept = base.transform_filter("datum.written").mark_text(font="monospace", fontSize=13, color=WHITE)
    dropped = base.transform_filter("!datum.written").mark_text(font="monospace", fontSize=13)
    return alt.layer(
        base.mark_rect(cornerRadius=3).encode(
            color=hue, opacity=alt.condition("datum.written", alt.value(1), alt.value(0.35))
        ),
        *(text.encode(text=alt.Text("label:N")) for text in (kept, dropped)),
    )


def _by_stage(form_of: str, values: np.ndarray, words: Mapping[str, str]) -> Filled:
    stages = tuple(stage_names(len(values), words))
    return Filled(form_of, {"stages": records(stage=stages, value=values)}, height=70 + 26 * len(stages))


def _stages(across: alt.X, hue: str, stages: tuple[str, ...], number: str, *, points: bool = False) -> Chart:
    up = alt.Y("stage:N", sort=None, scale=alt.Scale(domain=list(stages[::-1])), title=None, axis=stage_axis())
    tooltip = [alt.Tooltip("stage:N"), alt.Tooltip("value:Q", format=number)]
    base = named("stages").encode(x=across, y=up, tooltip=tooltip)
    marks = base.mark_point(color=hue, filled=True, size=110) if points else base.mark_bar(color=hue, cornerRadiusEnd=2)
    numbers = base.mark_text(align="left", dx=9 if points else 4).encode(text=alt.Text("value:Q", format=number))
    return alt.layer(marks, numbers)


def chance_by_stage(chance: np.ndarray, words: Mapping[str, str]) -> Filled:
    """Draw the answer's probability from stage to stage.

    Shapes:
        chance: (stage,)

    Args:
        words: answer_probability, embedding, layer.
    """
    stages = tuple(stage_names(len(chance), words))
    return _by_stage(_chances(words["answer_probability"], stages), chance.astype(float), words)


@form
def _chances(title: str, stages: tuple[str, ...]) -> Chart:
    axis = alt.Axis(format="~%", values=[0, 0.25, 0.5, 0.75, 1])
    across = alt.X("value:Q", title=title, scale=alt.Scale(domain=[0, 1.12]), axis=axis)
    return _stages(across, CHANCE, stages, ".2%")


def rank_by_stage(rank: np.ndarray, words: Mapping[str, str], *, most: int) -> Filled:
    """Draw the answer's rank among all tokens from stage to stage as points, on an axis of logarithms.

    Shapes:
        rank: (stage,), from 1

    Args:
        words: rank_axis, embedding, layer.
        most: how many tokens there are.
    """
    stages = tuple(stage_names(len(rank), words))
    return _by_stage(_ranks(words["rank_axis"], stages, most), rank, words)


@form
def _ranks(title: str, stages: tuple[str, ...], most: int) -> Chart:
    powers = [10.0**power for power in range(len(str(most)) + 1)]
    scale = alt.Scale(type="log", domain=[0.9, max(10.0, 2.0 * most)], nice=False)
    across = alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(values=powers, format=",d"))
    return _stages(across, REST, stages, ",d", points=True)


def bits_by_stage(bits: np.ndarray, words: Mapping[str, str]) -> Filled:
    """Draw the mean surprisal of a text from stage to stage.

    Shapes:
        bits: (stage,)

    Args:
        words: bits, embedding, layer.
    """
    stages = tuple(stage_names(len(bits), words))
    return _by_stage(_bits(words["bits"], stages, 1.12 * float(bits.max())), bits, words)


@form
def _bits(title: str, stages: tuple[str, ...], most: float) -> Chart:
    across = alt.X("value:Q", title=title, scale=alt.Scale(domain=[0, most]), axis=alt.Axis(tickCount=6))
    return _stages(across, CHANCE, stages, ".2f")


def moved_board(
    masked: np.ndarray,
    unmasked: np.ndarray | None,
    before: Sequence[str],
    after: Sequence[str],
    words: Mapping[str, str],
) -> MatrixFigure:
    """Draw how far the residual stream moves at each stage and place, with the causal mask and, if given, without.

    Differences grow by orders of magnitude from layer to layer, so that log2(1 + difference) is drawn; nothing stays 0.

    Shapes:
        masked, unmasked: (stage, pos)

    Args:
        before, after: labels of both texts.
        words: stage, place, masked, unmasked, moved, embedding, layer.
    """
    stages = tuple(stage_names(len(masked), words))
    columns = tuple(old if old == new else f"→ {new}" for old, new in zip(before, after, strict=True))
    shown = {"masked": masked} if unmasked is None else {"masked": masked, "unmasked": unmasked}
    shown = {name: np.log2(1.0 + values) for name, values in shown.items()}
    scale = Scale.of("count", *shown.values())
    panels = tuple(Panel(name, words[name], values, scale) for name, values in shown.items())
    return MatrixFigure(
        panels,
        Axis(words["stage"], stages),
        Axis(words["place"], columns),
        role="residual",
        detail="exact",
        columns=1,
        link="gpt_moved",
        quantity=words["moved"],
        filename="gpt_changed_word",
    )


def surprise_pairs(labels: Sequence[str], masked: np.ndarray, unmasked: np.ndarray, words: Mapping[str, str]) -> Chart:
    """Draw each token's surprisal with the mask and without it.

    Shapes:
        masked, unmasked: (pos,), in bits; not a number for the first token

    Args:
        words: token, bits (short: it runs beside the chart), masked, unmasked.
    """
    names = [words["masked"], words["unmasked"]]
    tokens = [f"{place} {shortened(label)}" for place, label in enumerate(labels)]
    data = records(
        token=tokens * 2,
        bits=np.concatenate([masked, unmasked]).round(4),
        way=np.repeat(names, len(tokens)).tolist(),
    )
    overlap = "greedy" if len(tokens) > 48 else False
    axis = alt.Axis(labelAngle=-50, labelFont="monospace", labelLimit=100, labelOverlap=overlap, ticks=False)
    return (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X("token:N", sort=None, scale=alt.Scale(domain=tokens), title=words["token"], axis=axis),
            xOffset=alt.XOffset("way:N", sort=names),
            y=alt.Y("bits:Q", title=words["bits"]),
            color=hued("way", names, (HUES["residual"], PALETTE[4]), labelLimit=300),
            tooltip=tooltips("token:N", "way:N", alt.Tooltip("bits:Q", format=".3f", title=words["bits"])),
        )
        .properties(width="container", height=400)
    )


def head_boards(
    weights: np.ndarray,
    worth: np.ndarray,
    words: Mapping[str, str],
    *,
    chosen: tuple[int, int],
) -> MatrixFigure:
    """Draw a cell for each head: how much it looks to a place, and beside it what is lost without the head.

    Shapes:
        weights, worth: (layer, head); worth in nats

    Args:
        words: layer, head, weight, worth.
        chosen: layer and head.
    """
    panels = (
        Panel("weight", words["weight"], weights, Scale("probability", 0.0, 1.0)),
        Panel("worth", words["worth"], worth, Scale.of("signed", worth)),
    )
    return head_board(panels, words, cell=chosen, link="gpt_verse", filename="gpt_verse_heads")


CELL, LEGEND = 46, 70


def poem_grid(
    characters: Sequence[str],
    lines: Sequence[int],
    columns: Sequence[int],
    weights: np.ndarray,
    partners: np.ndarray,
    words: Mapping[str, str],
    *,
    chosen: int,
) -> Filled:
    """Draw a poem, a line a row, with the weight of one head on each character before the chosen one.

    Shapes:
        weights, partners: (pos,); partners are booleans, the characters that the chosen one is compared with

    Args:
        words: character, weight: titles.
        chosen: the character that is written next; a click on another reports its place.
    """
    n = len(characters)
    rows = records(
        place=list(range(n)),
        character=list(characters),
        line=list(lines),
        column=list(columns),
        weight=np.where(np.arange(n) < chosen, weights, 0.0).round(4),
        partner=partners.tolist(),
        chosen=[place == chosen for place in range(n)],
        later=[place > chosen for place in range(n)],
    )
    return Filled(_poem_form(words), {"characters": rows}, height=CELL * (max(lines) + 1) + LEGEND)


@form
def _poem_form(words: Mapping[str, str]) -> Chart:
    x = alt.X("column:O", axis=None, scale=alt.Scale(paddingInner=0.08))
    y = alt.Y("line:O", axis=None, scale=alt.Scale(paddingInner=0.08))
    tooltip = [
        alt.Tooltip("character:N", title=words["character"]),
        alt.Tooltip("weight:Q", title=words["weight"], format=".2%"),
    ]
    pick = alt.selection_point(name=PLACE, fields=[PLACE], on="click", clear=False)
    base = named("characters").encode(x=x, y=y, tooltip=tooltip)
    legend = alt.Legend(orient="top", direction="horizontal", gradientLength=200, gradientThickness=10, format=".0%")
    hue = alt.Color("weight:Q", title=words["weight"], legend=legend).scale(
        domain=[0, 1], range=["#ffffff00", HUES["weights"]], clamp=True
    )
    cells = base.mark_rect(cornerRadius=4, cursor="pointer").encode(color=hue).add_params(pick)
    rings = [
        base.transform_filter(f"datum.{which}").mark_rect(
            cornerRadius=4, filled=False, stroke=stroke, strokeWidth=3, strokeDash=dash, aria=False
        )
        for which, stroke, dash in (("partner", HUES["positions"], [5, 3]), ("chosen", HUES["query"], [1, 0]))
    ]
    letters = base.mark_text(fontSize=22, cursor="pointer").encode(
        text=alt.Text("character:N"), opacity=alt.condition("datum.later", alt.value(0.35), alt.value(1.0))
    )
    return alt.layer(cells, *rings, letters)
