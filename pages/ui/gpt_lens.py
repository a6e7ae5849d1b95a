"""The page's part on the logit lens: every layer's first choice at every place, and one place's answer by layers.

Read next: gpt_mask.py.
"""

import streamlit as st

from pages.figures.gpt_lens import chance_by_stage, lens_board, rank_by_stage
from pages.ui.asking import Answer, ask_once
from pages.ui.boxes import judged, lazy_box, predict
from pages.ui.charts import show_chart
from pages.ui.gpt import choose_place, clickable, go_to, written
from pages.ui.header import View
from pages.ui.language import plain, section, t
from pages.ui.url import slide
from transformer_core.analysis.gpt.lens import Lens, logit_lens

MOST_LETTERS, MOST_WORDS = 24, 14  # places that fit side by side where tokens are letters, and where they are words
FEW, MANY = 0.25, 0.75


def lens_part(view: View) -> None:
    """Show the board, the chosen place's answer by layers, and the question how early answers are settled."""
    size = len(view.encoding)
    shown = MOST_LETTERS if all(len(label) == 1 for label in view.encoding.labels) else MOST_WORDS
    left, right = st.columns(2, gap="large")
    with left:
        place = choose_place(view)
    with right:
        first = 1
        if size > shown:
            last = size - shown + 1
            first = int(slide(t("gpt.first_place"), 1, last, name="gpt_first", default=last))
    with st.spinner(t("gpt.reading")):
        answer = ask_once(logit_lens, **view.asked, first=first, count=shown)
    found = answer.value
    board = lens_board(
        found.choices,
        found.probability,
        found.answer_probability,
        found.answer_rank,
        found.places,
        found.read,
        found.answers,
        _words(),
        chosen=place,
    )
    clickable(
        board,
        answer,
        key="gpt_lens",
        stem="gpt_logit_lens",
        label=t("gpt.lens_label", count=len(found.places)),
        on_place=lambda where: go_to(where, size),
    )
    st.caption(t("gpt.lens_check", difference=written(found.difference)))
    if place in found.places:
        _place(view, answer, found.places.index(place))
    else:
        st.info(t("gpt.lens_outside", place=place), icon=":material/visibility:")
    _early(view, found)


def _words() -> dict[str, str]:
    names = ("stage", "choice", "choice_probability", "answer", "answer_probability", "answer_rank", "embedding")
    words = {name: t(f"gpt.lens_{name}") for name in names}
    return words | {"place": t("gpt.lens_place"), "layer": t("axis.layer")}


def _place(view: View, answer: Answer[Lens], column: int) -> None:
    found = answer.value
    stage = int(found.settled[column])
    st.subheader(
        t("gpt.lens_heading", place=found.places[column], token=plain(found.read[column])),
        anchor=False,
    )
    name = t("gpt.lens_embedding") if stage == 0 else t("axis.layer", number=stage - 1)
    came = found.came[column]
    st.markdown(
        t("gpt.lens_settled", answer=plain(found.answers[column]), stage=name)
        + " "
        + (t("gpt.lens_came", token=plain(came)) if came else t("gpt.lens_open"))
    )
    charts = {
        "chance": chance_by_stage(found.answer_probability[:, column], _words()),
        "rank": rank_by_stage(found.answer_rank[:, column], _words()),
    }
    label = t("gpt.lens_place_label", layers=view.bundle.config.n_layers)
    for side, (name, chart) in zip(st.columns(2, gap="large"), charts.items(), strict=True):
        with side:
            show_chart(chart, answer, key=f"gpt_lens_{name}", stem=f"gpt_lens_{name}", label=label)


def _early(view: View, found: Lens) -> None:
    box = lazy_box(t("gpt.try_lens"), icon=":material/science:", key="gpt_lens_open")
    if box is None:
        return
    with box:
        options = {name: t(f"gpt.early_{name}") for name in ("few", "some", "many")}
        question = section("gpt", "try_lens").format(count=len(found.places))
        guess = predict(question, options, about=f"lens {view.bundle.name} {view.encoding.text}")
        if guess is None:
            return
        layers = view.bundle.config.n_layers
        early = int((found.settled < layers).sum())
        share = early / len(found.places)
        outcome = "few" if share < FEW else "some" if share <= MANY else "many"
        st.markdown(
            judged(guess, outcome, options)
            + " "
            + t("gpt.early_measured", early=early, count=len(found.places), mean=f"{found.settled.mean():.2f}")
        )
        st.markdown(section("gpt", "lens_after"))
