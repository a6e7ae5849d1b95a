"""The scene of a lecture that a link is at, on a tour or on the projector, and the question that it asks of its screen.

While that question is open, all that its screen computes is covered, but for the figures that the scene leaves open.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from pages.hall.lectures import Lecture, find_lecture
from pages.kit.experiment import Asked
from pages.kit.navigation import ICONS
from pages.kit.url import current, whole_number
from pages.language import language

TOUR, SCENE = "tour", "scene"


def scene_of_link() -> tuple[Lecture, int] | None:
    """Return the lecture and the number of its scene, from 1; None where nobody is on a tour."""
    name = str(current(TOUR) or "")
    lecture = find_lecture(name, language()) if name else None
    if lecture is None:
        return None
    return lecture, whole_number(current(SCENE), len(lecture.scenes), least=1) or 1


def question_name(number: int) -> str:
    """Return the name of a scene's question, as of ask_first."""
    return f"tour_{number}"


def _asked() -> Asked | None:
    """Return the question that the scene asks of the page shown; None where there is none, or it asks for words."""
    found = scene_of_link()
    if found is None:
        return None
    lecture, number = found
    scene = lecture.scenes[number - 1]
    if not scene.chooses or scene.page != (st.session_state.get("page") or next(iter(ICONS))):
        return None
    return Asked(question_name(number), frozenset(scene.left_open.split()))


def part_of_scene(choice: str, first: str) -> str:
    """Return the part that the scene shows of its page.

    Args:
        choice: the name of the chosen part in a link; first: of the page's parts.
    """
    found = scene_of_link()
    return first if found is None else found[0].scenes[found[1] - 1].state.get(choice, first)


def question_open() -> bool:
    """Tell whether the scene asks something of the page shown that is not answered yet."""
    asked = _asked()
    return asked is not None and not asked.open


@contextmanager
def under_question(place: str, *, here: bool = True) -> Iterator[None]:
    """Show what a page computes; it is covered while the scene's question about it is open.

    Args:
        place: unique on the page.
        here: it is what the scene shows, not another part of its page.
    """
    asked = _asked() if here else None
    if asked is None:
        yield
        return
    with asked.about(place):
        yield
