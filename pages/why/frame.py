"""The frame of every question: the claim, a prediction, controls, a picture, and the measurement."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.figures.charts import Shown
from pages.figures.forms import Filled
from pages.figures.matrix import Axis, MatrixFigure, Panel
from pages.kit.asking import Answer
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Control, Values, head_control, layer_control
from pages.kit.experiment import ask_first, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_picture
from pages.kit.navigation import ICONS, page_path
from pages.language import plain, section, t
from pages.room import Part

SEED = 0
SITES = ("*self_attention*",)
LAYER, HEAD = layer_control("why.layer"), head_control("why.head")


def squares_of(
    name: str,
    view: View,
    matrices: list[Panel],
    answer: Answer[Any],
    what: str,
    *,
    version: str,
    note: str = "",
    **options: Any,
) -> Picture:
    """Return matrices between the tokens of the sentence, as a question has them.

    Args:
        name: of the question.
        matrices: of one shape; of fewer rows than tokens, the first tokens alone are queries.
        what: in the keys of its texts.
        note: in the key of its note, where that is another.
    """
    labels = view.encoding.labels
    figure = MatrixFigure(
        tuple(matrices),
        Axis(t("axis.query"), labels[: len(matrices[0].values)]),
        Axis(t("axis.key"), labels),
        link="why",
        quantity=t(f"why.{name}.{what}"),
        note=t(f"why.{name}.{note or what}_note"),
        filename=f"why_{name}_{what}",
        **options,
    )
    return Picture(f"why_{name}_{what}", figure, answer, version=version)


def drawing_of(name: str, chart: Filled, answer: Answer[Any], what: str) -> Drawing:
    """Return a chart that follows the hand, as a question has it.

    Args:
        name, what: as of squares_of.
    """
    return Drawing(f"why_{name}_{what}", chart, answer, f"why_{name}_{what}", t(f"why.{name}.{what}"))


@dataclass(frozen=True)
class Finding:
    """The result of an experiment.

    Args:
        outcome: the option of the prediction that is right; None before the measurement.
        numbers: values of the sentence `why.NAME.measured`, already formatted.
        part: of the question, where each part has its own sentence: `why.NAME.measured_PART`.
    """

    outcome: str | None
    numbers: Mapping[str, str] = field(default_factory=dict)
    part: str = ""


@dataclass(frozen=True)
class Desk:
    """The places of an experiment on the page.

    Args:
        name: of the question, in keys and in the URL.
        view: the text and the model.
        controls, picture: places for the controls and for the figures.
        open: the prediction was made, or skipped.
    """

    name: str
    view: View
    controls: DeltaGenerator
    picture: DeltaGenerator
    open: bool

    def word(self, key: str, **values: object) -> str:
        """Return a text of the question."""
        return t(f"why.{self.name}.{key}", **values)

    def matrices_of(self, live: Live) -> None:
        """Show the matrices of a live part, with their files."""
        for picture in live.matrices:
            show_picture(picture, files=True)

    def drawing(self, drawing: Drawing, what: str) -> None:
        """Show a chart that follows the hand under its heading, with its files."""
        say(f"**{self.word(what)}**")
        show_drawing(drawing)

    def chart(self, chart: Shown, answer: Answer[Any], what: str) -> None:
        """Show a chart under its heading, with its files."""
        say(f"**{self.word(what)}**")
        show_chart(chart, answer, key=f"why_{self.name}_{what}", label=self.word(what))

    def matrices(self, matrices: list[Panel], answer: Answer[Any], what: str, **options: Any) -> None:
        """Show matrices between the tokens of the sentence, with their files."""
        show_picture(squares_of(self.name, self.view, matrices, answer, what, **options), files=True)


def question(
    name: str,
    options: tuple[str, ...],
    experiment: Callable[[Desk], Finding],
    picture: Callable[[View, Values], Live] | None = None,
    controls: tuple[Control[Any], ...] = (),
    *,
    group: str,
    covers: bool = True,
) -> Part:
    """Return a question as a part of the page: the claim, the prediction, and what was measured.

    Args:
        name, picture, controls, group: as of Part.
        options: of the prediction.
        experiment: shows its controls and its picture and returns the result.
        covers: the picture is covered until the prediction is made, because it shows the answer.
    """

    def show(view: View) -> None:
        words, figures = st.columns([2, 3], gap="large")
        with words:
            st.subheader(t(f"why.{name}.question"), anchor=False)
            show_prose(section("why", name))
            asked = f"**{t(f'why.{name}.predict')}**"
            cover = ask_first(asked, options_of(f"why.{name}.{{}}", options), name=f"why_{name}")
            place = st.container()
            st.caption(f"{t('why.source')} {t(f'why.{name}.source')}")
        with figures, cover.picture() if covers else nullcontext():
            desk = Desk(name, view, place, st.container(), cover.open)
            try:
                finding = experiment(desk)
            except ValueError as error:
                desk.picture.info(t("why.cannot", error=plain(str(error))), icon=":material/info:")
                return
        if finding.outcome is not None:
            part = f"_{finding.part}" if finding.part else ""
            cover.judge(finding.outcome, t(f"why.{name}.measured{part}", **finding.numbers))

    return Part("why", name, show, picture, controls, sites=SITES, group=group)


def link_to(page: str, label: str, **said: str) -> None:
    """Show a link to another page, which has the same text and language.

    Args:
        said: what else stands in the link.
    """
    if page_path(page).exists():
        kept = {name: value for name, value in st.query_params.items() if name in ("lang", "text")}
        st.page_link(page_path(page), label=label, icon=ICONS[page], query_params=kept | said)


def measure_again(name: str) -> int:
    """Show a button that measures times again, and return the number of the measurement."""
    key = f"why_{name}_measurement"
    st.session_state.setdefault(key, 0)

    def again() -> None:
        st.session_state[key] += 1

    st.button(t("why.again"), icon=":material/replay:", key=f"{key}_again", on_click=again)
    st.caption(t("why.timed"))
    return st.session_state[key]
