"""The logit lens as a board: the first choice of every layer at every place (nostalgebraist 2020).

Arrays come from transformer_core.analysis.gpt.lens and transformer_core.analysis.bert.layers.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.forms import Filled, form, in_order, named
from pages.figures.token_strip import DARK, PLACE, WHITE, shortened

LIGHT = ("#eef7f8", "#9ad0d6", "#2f98a4", "#0d5560")
CELL, AXES = 34, 185
WIDTH = 1040  # of the board on a usual screen, in pixels


def stage_names(count: int, words: Mapping[str, str]) -> list[str]:
    """Return the names of the stages: the embedding, then the layers."""
    return [words["embedding"], *(words["layer"].format(number=number) for number in range(count - 1))]


def stage_axis() -> alt.Axis:
    """Return the axis of the stages."""
    return alt.Axis(ticks=False, labelLimit=120)


def _tooltip(words: Mapping[str, str]) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("stage:N", title=words["stage"]),
        alt.Tooltip("column:N", title=words["place"]),
        alt.Tooltip("choice:N", title=words["choice"]),
        alt.Tooltip("own:Q", title=words["choice_probability"], format=".2%"),
        alt.Tooltip("answer:N", title=words["answer"]),
        alt.Tooltip("chance:Q", title=words["answer_probability"], format=".2%"),
        alt.Tooltip("rank:Q", title=words["answer_rank"], format=",d"),
    ]


def lens_board(
    choices: Sequence[Sequence[str]],
    probability: np.ndarray,
    answer_probability: np.ndarray,
    answer_rank: np.ndarray,
    places: Sequence[int],
    read: Sequence[str],
    answers: Sequence[str],
    words: Mapping[str, str],
    *,
    chosen: int,
    height: int | None = None,
) -> Filled:
    """Draw every layer's first choice at every place, coloured by the probability that the layer gives the answer.

    Shapes:
        probability, answer_probability, answer_rank: (stage, place); the first stage is the embedding

    Args:
        choices: labels by stage and place.
        places: how many tokens have been read at each place.
        read: the last token read at each place.
        answers: the whole model's likeliest token there.
        words: stage, place, choice, choice_probability, answer, answer_probability, answer_rank, embedding, layer.
        chosen: the place whose column is ringed.
        height: in pixels; by default as the stages need.
    """
    stages = stage_names(len(choices), words)
    columns = [f"{place - 1} {shortened(label)}" for place, label in zip(places, read, strict=True)]
    n_stages, n_places = probability.shape
    data = records(
        stage=np.repeat(stages, n_places).tolist(),
        column=columns * n_stages,
        place=list(places) * n_stages,
        choice=[shortened(label) for row in choices for label in row],
        answer=[shortened(label) for label in answers] * n_stages,
        own=probability.ravel().astype(float),
        chance=answer_probability.ravel().astype(float),
        rank=answer_rank.ravel(),
        settled=[label == answer for row in choices for label, answer in zip(row, answers, strict=True)],
        chosen=[place == chosen for place in places] * n_stages,
    )
    board = _board(tuple(stages), n_places, words)
    return Filled(board, {"cells": data}, height=height or AXES + CELL * n_stages)


@form
def _board(stages: tuple[str, ...], n_places: int, words: Mapping[str, str]) -> Chart:
    across = alt.X(
        "column:N",
        sort=in_order("place"),
        scale=alt.Scale(paddingInner=0.06),
        title=words["place"],
        axis=alt.Axis(labelAngle=-45, labelFont="monospace", labelLimit=110, ticks=False, orient="bottom"),
    )
    up = alt.Y(
        "stage:N",
        sort=None,
        scale=alt.Scale(domain=list(stages[::-1]), paddingInner=0.08),
        title=None,
        axis=stage_axis(),
    )
    scale = alt.Scale(domain=[0, 1], range=list(LIGHT))
    legend = alt.Legend(
        orient="top", direction="horizontal", format="~%", gradientLength=220, gradientThickness=10, titleLimit=500
    )
    pick = alt.selection_point(name=PLACE, fields=[PLACE], on="click", clear=False)
    base = named("cells").encode(x=across, y=up, tooltip=_tooltip(words))
    cells = (
        base.mark_rect(cornerRadius=3, cursor="pointer")
        .encode(color=alt.Color("chance:Q", scale=scale, title=words["answer_probability"], legend=legend))
        .add_params(pick)
    )
    same = base.transform_filter(alt.datum.settled).mark_rect(
        cornerRadius=3, filled=False, stroke=HUES["value"], strokeWidth=1.6
    )
    ring = base.transform_filter(alt.datum.chosen).mark_rect(
        cornerRadius=3, filled=False, stroke=HUES["positions"], strokeWidth=2.5
    )
    text = base.mark_text(font="monospace", fontSize=12, limit=WIDTH // n_places - 4, cursor="pointer").encode(
        text=alt.Text("choice:N"), color=alt.condition("datum.chance > 0.55", alt.value(WHITE), alt.value(DARK))
    )
    return alt.layer(cells, same, ring, text)
