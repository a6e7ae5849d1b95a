"""The page's part on the lenses: every layer's first choice at every place, and the answer at one place."""

from collections.abc import Sequence

import streamlit as st

from pages.figures.lens import lens_board
from pages.gpt.figures import bits_by_stage, chance_by_stage, rank_by_stage
from pages.gpt.mask import written
from pages.gpt.text import BACK, go_to
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Slider, Values, show_in_columns
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.lens import LENS as THROUGH
from pages.kit.lens import lenses, show_lens_measured
from pages.kit.live import Live
from pages.language import joined, plain, section, t
from pages.room import Part
from transformer_core.analysis.gpt.lens import Lens, logit_lens
from transformer_core.analysis.lens import Through

MOST_LETTERS, MOST_WORDS = 24, 14  # places that fit side by side where tokens are letters, and where they are words
LITTLE, MUCH = 0.1, 1.0  # bits


def _shown(view: View) -> int:
    """Return how many places are shown."""
    return MOST_LETTERS if all(len(label) == 1 for label in view.encoding.labels) else MOST_WORDS


def _last_first(view: View) -> int:
    """Return the first place from which on all others are shown."""
    return max(1, len(view.encoding) - _shown(view) + 1)


FIRST = Slider("gpt_first", 1, _last_first, _last_first, label="gpt.first_place")


def _lens(view: View, first: int, through: Through) -> Answer[Lens]:
    return ask_once(logit_lens, prompt=view.prompt, first=first, count=_shown(view), through=through)


def _picture(view: View, values: Values) -> Live:
    """Return the board and, where the chosen place is on it, the answer there layer by layer."""
    answer, place = _lens(view, values[FIRST], values[THROUGH]), len(view.encoding) + values[BACK]
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
    drawings = [Drawing("gpt_lens", board, answer, "gpt_logit_lens", t("gpt.lens_label"))]
    if place in found.places:
        column, config = found.places.index(place), view.bundle.config
        label = t("gpt.lens_place_label", layers=config.n_layers)
        chance = chance_by_stage(found.answer_probability[:, column], _words())
        rank = rank_by_stage(found.answer_rank[:, column], _words(), most=config.vocab_size)
        for name, chart in (("chance", chance), ("rank", rank)):
            drawings.append(Drawing(f"gpt_lens_{name}", chart, answer, f"gpt_lens_{name}", label))
    return Live(drawings=tuple(drawings))


def _show(view: View) -> None:
    """Show the board, the answer at the chosen place layer by layer, and what the last layer adds."""
    *_, back, first = show_in_columns(view, *lenses(view), BACK, FIRST, gap="large")
    through = THROUGH.read(view)
    place = len(view.encoding) + back
    with st.spinner(t("gpt.reading")):
        answer = _lens(view, first, through)
    found = answer.value
    board, *of_place = LENS.live(view).drawings
    show_drawing(board, on_place=lambda where: go_to(where, view))
    LENS.follow(view)
    st.caption(t("gpt.lens_check", difference=written(found.difference)))
    if place in found.places:
        _place(answer, found.places.index(place), of_place)
    else:
        st.info(t("gpt.lens_outside", place=place), icon=":material/visibility:")
    show_lens_measured(view)
    _last(view, answer, through)


def _words() -> dict[str, str]:
    names = ("stage", "choice", "choice_probability", "answer", "answer_probability", "answer_rank", "embedding")
    words = {name: t(f"gpt.lens_{name}") for name in names}
    return words | {"place": t("gpt.lens_place"), "layer": t("axis.layer"), "rank_axis": t("gpt.rank_axis")}


def _place(answer: Answer[Lens], column: int, drawings: Sequence[Drawing]) -> None:
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
    for side, drawing in zip(st.columns(2, gap="large"), drawings, strict=True):
        with side:
            show_drawing(drawing)


@experiment("gpt_lens_open", "gpt.try_lens")
def _last(view: View, answer: Answer[Lens], through: Through) -> None:
    found = answer.value
    if not any(found.came):
        st.info(t("gpt.lens_open"), icon=":material/info:")
        return
    options = options_of("gpt.last_{}", ("falls", "little", "some", "much"))
    question, about = section("gpt", f"try_lens_{through}"), f"{view.name} {found.places[0]} {through}"
    cover = ask_first(question, options, name="gpt_lens", about=about)
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
        show_chart(chart, answer, key="gpt_lens_bits", label=t("gpt.mean_bits"))
        say(section("gpt", f"lens_after_{through}"))


LENS = Part("gpt", "lens", _show, _picture, (THROUGH, BACK, FIRST))
