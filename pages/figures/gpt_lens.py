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
CELL, ROOM = 34, 150


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
    columns = [f"{place} {shortened(label)}" for place, label in zip(places, read, strict=True)]
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
    tooltip = [
        alt.Tooltip("stage:N", title=words["stage"]),
        alt.Tooltip("column:N", title=words["place"]),
        alt.Tooltip("choice:N", title=words["choice"]),
        alt.Tooltip("own:Q", title=words["choice_probability"], format=".2%"),
        alt.Tooltip("answer:N", title=words["answer"]),
        alt.Tooltip("chance:Q", title=words["answer_probability"], format=".2%"),
        alt.Tooltip("rank:Q", title=words["answer_rank"], format=",d"),
    ]
    scale = alt.Scale(domain=[0, 1], range=list(LIGHT))
    legend = alt.Legend(
        orient="top", direction="horizontal", format="~%", gradientLength=220, gradientThickness=10, titleLimit=500
    )
    pick = alt.selection_point(name=PLACE, fields=[PLACE], on="click", clear=False)
    base = alt.Chart(data).encode(x=across, y=up, tooltip=tooltip)
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
    text = base.mark_text(font="monospace", fontSize=12, limit=86, cursor="pointer").encode(
        text="choice:N", color=alt.condition("datum.chance > 0.55", alt.value(WHITE), alt.value(DARK))
    )
    return alt.layer(cells, same, ring, text).properties(width="container", height=ROOM + CELL * n_stages)


def stage_names(count: int, words: Mapping[str, str]) -> list[str]:
    """Return what the stages are called: the embedding, then the layers."""
    return [words["embedding"], *(words["layer"].format(number=number) for number in range(count - 1))]


def _stage_axis() -> alt.Axis:
    return alt.Axis(ticks=False, labelLimit=120)


def answer_curves(chance: np.ndarray, rank: np.ndarray, words: Mapping[str, str]) -> Chart:
    """Draw the answer's probability and its rank from stage to stage, one beside the other.

    Shapes:
        chance, rank: (stage,)

    Args:
        words: answer_probability, answer_rank, embedding, layer.
    """
    stages = stage_names(len(chance), words)
    data = records(stage=stages, chance=chance.astype(float), rank=rank)
    up = alt.Y("stage:N", sort=None, scale=alt.Scale(domain=stages[::-1]), title=None, axis=_stage_axis())
    base = alt.Chart(data).encode(y=up)
    bars = base.mark_bar(color=CHANCE, cornerRadiusEnd=2).encode(
        x=alt.X(
            "chance:Q", title=words["answer_probability"], scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="~%")
        ),
        tooltip=["stage:N", alt.Tooltip("chance:Q", format=".3%", title=words["answer_probability"])],
    )
    ranks = base.mark_bar(color=REST, cornerRadiusEnd=2).encode(
        x=alt.X(
            "rank:Q",
            title=words["answer_rank"],
            scale=alt.Scale(type="symlog", domainMin=0),
            axis=alt.Axis(labels=False, ticks=False, grid=False),
        ),
        tooltip=["stage:N", alt.Tooltip("rank:Q", format=",d", title=words["answer_rank"])],
    )
    numbers = base.mark_text(align="left", dx=4, color=REST).encode(x="rank:Q", text=alt.Text("rank:Q", format=",d"))
    height = 26 * len(stages)
    parts = (bars, alt.layer(ranks, numbers))
    return alt.vconcat(*(part.properties(width="container", height=height) for part in parts))
