"""The logit lens as a board of first choices, and one place's answer layer by layer.

Arrays come from transformer_core.analysis.gpt.lens. Read next: gpt_mask.py.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from pages.figures.charts import HUES, Chart, records
from pages.figures.gpt import CHANCE, REST
from pages.figures.gpt_text import DARK, PLACE, WHITE, shortened

LIGHT = ("#eef7f8", "#9ad0d6", "#2f98a4", "#0d5560")
CELL, ROOM = 34, 185
WIDTH = 1040  # of the board on a usual screen, in pixels


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
) -> Chart:
    """Draw every layer's first choice at every place, coloured by the probability that the layer gives the answer.

    Shapes:
        probability, answer_probability, answer_rank: (stage, place); the first stage is the embedding

    Args:
        choices: labels by stage and place.
        places: how many tokens have been read at each.
        read: the last token read at each; answers: what the whole model holds likeliest there.
        words: stage, place, choice, choice_probability, answer, answer_probability, answer_rank, embedding, layer.
        chosen: the place whose column is ringed.
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
    )
    across = alt.X(
        "column:N",
        sort=None,
        scale=alt.Scale(domain=columns, paddingInner=0.06),
        title=words["place"],
        axis=alt.Axis(labelAngle=-45, labelFont="monospace", labelLimit=110, ticks=False, orient="bottom"),
    )
    up = alt.Y(
        "stage:N", sort=None, scale=alt.Scale(domain=stages[::-1], paddingInner=0.08), title=None, axis=_stage_axis()
    )
    scale = alt.Scale(domain=[0, 1], range=list(LIGHT))
    legend = alt.Legend(
        orient="top", direction="horizontal", format="~%", gradientLength=220, gradientThickness=10, titleLimit=500
    )
    pick = alt.selection_point(name=PLACE, fields=[PLACE], on="click", clear=False)
    base = alt.Chart(data).encode(x=across, y=up, tooltip=_told(words))
    cells = (
        base.mark_rect(cornerRadius=3, cursor="pointer")
        .encode(color=alt.Color("chance:Q", scale=scale, title=words["answer_probability"], legend=legend))
        .add_params(pick)
    )
    same = base.transform_filter(alt.datum.settled).mark_rect(
        cornerRadius=3, filled=False, stroke=HUES["value"], strokeWidth=1.6
    )
    ring = base.transform_filter(alt.datum.place == chosen).mark_rect(
        cornerRadius=3, filled=False, stroke=HUES["positions"], strokeWidth=2.5
    )
    text = base.mark_text(font="monospace", fontSize=12, limit=WIDTH // n_places - 4, cursor="pointer").encode(
        text="choice:N", color=alt.condition("datum.chance > 0.55", alt.value(WHITE), alt.value(DARK))
    )
    return alt.layer(cells, same, ring, text).properties(width="container", height=ROOM + CELL * n_stages)


def _told(words: Mapping[str, str]) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("stage:N", title=words["stage"]),
        alt.Tooltip("column:N", title=words["place"]),
        alt.Tooltip("choice:N", title=words["choice"]),
        alt.Tooltip("own:Q", title=words["choice_probability"], format=".2%"),
        alt.Tooltip("answer:N", title=words["answer"]),
        alt.Tooltip("chance:Q", title=words["answer_probability"], format=".2%"),
        alt.Tooltip("rank:Q", title=words["answer_rank"], format=",d"),
    ]


def stage_names(count: int, words: Mapping[str, str]) -> list[str]:
    """Return what the stages are called: the embedding, then the layers."""
    return [words["embedding"], *(words["layer"].format(number=number) for number in range(count - 1))]


def _stage_axis() -> alt.Axis:
    return alt.Axis(ticks=False, labelLimit=120)


def chance_by_stage(chance: np.ndarray, words: Mapping[str, str]) -> Chart:
    """Draw the answer's probability from stage to stage.

    Shapes:
        chance: (stage,)

    Args:
        words: answer_probability, embedding, layer.
    """
    axis = alt.Axis(format="~%", values=[0, 0.25, 0.5, 0.75, 1])
    across = alt.X("value:Q", title=words["answer_probability"], scale=alt.Scale(domain=[0, 1.12]), axis=axis)
    return _by_stage(chance.astype(float), across, CHANCE, ".2%", words)


def rank_by_stage(rank: np.ndarray, words: Mapping[str, str]) -> Chart:
    """Draw the answer's rank among all tokens from stage to stage as points, on an axis of logarithms.

    Shapes:
        rank: (stage,), from 1

    Args:
        words: rank_axis, embedding, layer.
    """
    most = float(rank.max())
    powers = [10.0**power for power in range(len(str(int(most))) + 1)]
    scale = alt.Scale(type="log", domain=[0.9, max(10.0, 2 * most)], nice=False)
    axis = alt.Axis(values=powers, format=",d")
    across = alt.X("value:Q", title=words["rank_axis"], scale=scale, axis=axis)
    return _by_stage(rank, across, REST, ",d", words, points=True)


def bits_by_stage(bits: np.ndarray, words: Mapping[str, str]) -> Chart:
    """Draw the mean surprisal of a text from stage to stage.

    Shapes:
        bits: (stage,)

    Args:
        words: bits, embedding, layer.
    """
    scale = alt.Scale(domain=[0, 1.12 * float(bits.max())])
    across = alt.X("value:Q", title=words["bits"], scale=scale, axis=alt.Axis(tickCount=6))
    return _by_stage(bits, across, CHANCE, ".2f", words)


def _by_stage(
    values: np.ndarray, across: alt.X, hue: str, form: str, words: Mapping[str, str], *, points: bool = False
) -> Chart:
    stages = stage_names(len(values), words)
    up = alt.Y("stage:N", sort=None, scale=alt.Scale(domain=stages[::-1]), title=None, axis=_stage_axis())
    tooltip = ["stage:N", alt.Tooltip("value:Q", format=form)]
    base = alt.Chart(records(stage=stages, value=values)).encode(x=across, y=up, tooltip=tooltip)
    marks = base.mark_point(color=hue, filled=True, size=110) if points else base.mark_bar(color=hue, cornerRadiusEnd=2)
    numbers = base.mark_text(align="left", dx=9 if points else 4).encode(text=alt.Text("value:Q", format=form))
    return alt.layer(marks, numbers).properties(width="container", height=70 + 26 * len(stages))
