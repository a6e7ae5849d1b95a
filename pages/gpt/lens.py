"""The page's part on the logit lens: every layer's first choice at every place, and the answer at one place."""

import streamlit as st

from pages.figures.lens import lens_board
from pages.gpt.figures import bits_by_stage, chance_by_stage, rank_by_stage
from pages.gpt.mask import written
from pages.gpt.text import choose_place, go_to
from pages.ui.asking import Answer, ask_once
from pages.ui.boxes import ask_first, lazy_box, say
from pages.ui.charts import clickable, show_chart
from pages.ui.header import View
from pages.ui.language import joined, plain, section, t
from pages.ui.url import slide
from transformer_core.analysis.gpt.lens import Lens, logit_lens

MOST_LETTERS, MOST_WORDS = 24, 14  # places that fit side by side where tokens are letters, and where they are words
LITTLE, MUCH = 0.1, 1.0  # bits


def lens_part(view: View) -> None:
    """Show the board, the answer at the chosen place layer by layer, and what the last layer adds."""
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
        label=t("gpt.lens_label"),
        on_place=lambda where: go_to(where, size),
    )
    st.caption(t("gpt.lens_check", difference=written(found.difference)))
    if place in found.places:
        _place(view, answer, found.places.index(place))
    else:
        st.info(t("gpt.lens_outside", place=place), icon=":material/visibility:")
    _last(view, answer)


def _words() -> dict[str, str]:
    names = ("stage", "choice", "choice_probability", "answer", "answer_probability", "answer_rank", "embedding")
    words = {name: t(f"gpt.lens_{name}") for name in names}
    return words | {"place": t("gpt.lens_place"), "layer": t("axis.layer"), "rank_axis": t("gpt.rank_axis")}


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
        joined(
            t("gpt.lens_settled", answer=plain(found.answers[column]), stage=name),
            t("gpt.lens_came", token=plain(came)) if came else t("gpt.lens_open"),
        )
    )
    charts = {
        "chance": chance_by_stage(found.answer_probability[:, column], _words()),
        "rank": rank_by_stage(found.answer_rank[:, column], _words()),
    }
    label = t("gpt.lens_place_label", layers=view.bundle.config.n_layers)
    for side, (name, chart) in zip(st.columns(2, gap="large"), charts.items(), strict=True):
        with side:
            show_chart(chart, answer, key=f"gpt_lens_{name}", stem=f"gpt_lens_{name}", label=label)


def _last(view: View, answer: Answer[Lens]) -> None:
    box = lazy_box(t("gpt.try_lens"), icon=":material/science:", key="gpt_lens_open")
    if box is None:
        return
    with box:
        found = answer.value
        if not any(found.came):
            st.info(t("gpt.lens_open"), icon=":material/info:")
            return
        options = {name: t(f"gpt.last_{name}") for name in ("falls", "little", "some", "much")}
        about = f"{view.bundle.name} {view.encoding.text} {found.places[0]}"
        cover = ask_first(section("gpt", "try_lens"), options, name="gpt_lens", about=about)
        without, full = (float(bits) for bits in found.mean_bits[-2:])
        more = without - full
        outcome = "falls" if more < 0 else "little" if more < LITTLE else "some" if more <= MUCH else "much"
        early = int((found.settled < view.bundle.config.n_layers).sum())
        measured = t(
            "gpt.last_measured",
            full=f"{full:.2f}",
            without=f"{without:.2f}",
            places=sum(map(bool, found.came)),
            early=early,
            count=len(found.places),
        )
        cover.judge(outcome, measured)
        with cover.picture():
            chart = bits_by_stage(found.mean_bits, _words() | {"bits": t("gpt.mean_bits")})
            show_chart(chart, answer, key="gpt_lens_bits", stem="gpt_lens_bits", label=t("gpt.mean_bits"))
            say(section("gpt", "lens_after"))
