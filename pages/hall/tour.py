"""The tour: a lecture for one person. A bar above every page has the scene's words, back and next.

Its place is in the link. Between two scenes a person may go anywhere and change anything; the bar leads back.
"""

from dataclasses import replace
from urllib.parse import urlencode

import streamlit as st

from pages.hall.lectures import OWN, Lecture, LectureError, Scene, find_lecture, finding_in_words
from pages.hall.scene import SCENE, TOUR, question_name, scene_of_link
from pages.kit.asking import ask_once
from pages.kit.experiment import ask_first
from pages.kit.glossary import show_prose
from pages.kit.header import MOST_TOKENS
from pages.kit.models import is_there, open_bundle
from pages.kit.navigation import open_page
from pages.kit.runs import newest_run
from pages.kit.url import current, forget_all, keep
from pages.language import language, plain, safe_text, t
from pages.link import below_base
from transformer_core.analysis.finding import Finding
from transformer_core.analysis.questions import QUESTIONS, reads
from transformer_core.prompt import Prompt
from transformer_core.untrusted.bundle_files import BundleError

FIRST_TOUR = "twelve_scenes"
HEIGHT_OF_PART = 620  # pixels, of the part of one person alone
NEWEST = "newest"  # in a scene's screen: the run that this visitor began last


def begin_tour(name: str, number: int = 1) -> None:
    """Open a scene of a lecture, counted from 1, as it is written: what was chosen before is let go of."""
    lecture = find_lecture(name, language())
    if lecture is None:
        return
    scene = lecture.scenes[number - 1]
    forget_all()
    state = {**scene.state, "lang": language(), TOUR: name, SCENE: str(number)}
    open_page(scene.page, state)


def find_newest() -> None:
    """Where a link asks for the newest run, take the one that this visitor began last."""
    if current("run") == NEWEST:
        keep("run", newest_run() or "", "")


def show_tour() -> None:
    """Show the bar, where somebody is on a tour."""
    found = scene_of_link()
    if found is None:
        return
    lecture, number = found
    keep(TOUR, lecture.name, "")
    keep(SCENE, str(number), "")
    with st.container(key="tour", border=True):
        if _leave_pressed(lecture, number):
            keep(TOUR, "", "")
            keep(SCENE, "", "")
            st.rerun()
        own = lecture.name.startswith(OWN)
        scene, show = lecture.scenes[number - 1], st.markdown if own else show_prose
        if own:
            scene = _safe(scene)
        if scene.each is not None:
            show(scene.text)
            place = urlencode({"lecture": lecture.name, "scene": number, "lang": language()})
            st.iframe(f"{below_base('hall/alone')}?{place}", height=HEIGHT_OF_PART)
            return
        if scene.question is None:
            show(scene.text)
            return
        words_place, question_place = st.columns([3, 2], gap="large")
        with words_place:
            show(scene.text)
        with question_place:
            _ask(scene, question_name(number))


def ask_in_hall() -> None:
    """Have the scene's question in the projector's frame, where it is not seen: the projector's keys answer it."""
    found = scene_of_link()
    if found is None:
        return
    lecture, number = found
    scene = lecture.scenes[number - 1]
    keep(TOUR, lecture.name, "")
    keep(SCENE, str(number), "")
    if scene.question is not None and scene.chooses:
        with st.container(key="asked_by_keys"):
            ask_first("", scene.question.options, name=question_name(number))


def _leave_pressed(lecture: Lecture, number: int) -> bool:
    """Show the scene's title and the ways on from it; tell whether a person leaves the tour."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(lecture.scenes[number - 1].title)}**", width="stretch")
        st.markdown(t("tour.place", number=number, count=len(lecture.scenes)), width="content")
        back = st.button(t("tour.back"), icon=":material/arrow_back:", disabled=number == 1, key="tour_back")
        last = number == len(lecture.scenes)
        onward = st.button(
            t("tour.next"), icon=":material/arrow_forward:", type="primary", disabled=last, key="tour_next"
        )
        again = st.button(t("tour.again"), icon=":material/replay:", type="tertiary", key="tour_again")
        leave = st.button(t("tour.leave"), icon=":material/close:", type="tertiary", key="tour_leave")
    for pressed, to in ((back, number - 1), (onward, number + 1), (again, number)):
        if pressed:
            begin_tour(lecture.name, to)
    return leave


def _ask(scene: Scene, name: str) -> None:
    """Ask the scene's question; once somebody answered or asked to be shown, say what was measured."""
    assert scene.question is not None
    if not scene.chooses:
        st.markdown(scene.question.words)
        return
    cover = ask_first(scene.question.words, scene.question.options, name=name, about=scene.screen)
    if not cover.open:
        return
    try:
        found = measured(scene)
    except (ValueError, BundleError, LectureError) as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    cover.judge(found.option, finding_in_words(found, scene.question.measured, language()))


def _safe(scene: Scene) -> Scene:
    """Return a scene that anyone may have written, without pictures and links."""
    question = scene.question
    if question is not None:
        options = {option: plain(label) for option, label in question.options.items()}
        question = replace(question, words=safe_text(question.words), options=options)
    return replace(scene, text=safe_text(scene.text), question=question)


def measured(scene: Scene) -> Finding:
    """Return what the scene's question comes to, measured in the scene's own state.

    Raises:
        ValueError: as the question's function.
        BundleError: this visitor has no such model, or it cannot be opened.
    """
    assert scene.question is not None
    of_text = {}
    about = reads(scene.question.measured)
    if about:
        name = scene.state["model"]
        if not is_there(name):
            raise BundleError(t("model.gone", name=name))
        bundle = open_bundle(name)
        n_tokens = min(MOST_TOKENS, bundle.config.max_len)
        of_text = {"bundle": bundle, "prompt": Prompt(bundle, scene.state.get("text", ""), n_tokens)}
    return ask_once(
        QUESTIONS[scene.question.measured], **{name: of_text[name] for name in about}, **scene.asked()
    ).value
