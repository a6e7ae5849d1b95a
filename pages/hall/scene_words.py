"""A scene as the pages without Streamlit show it: projector, notes, phones, and what is taken home.

Words become nodes that a browser builds without reading markup, so that nobody's text can be more than text.
"""

from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from markdown_it import MarkdownIt

from pages.hall.each.kinds import OTHERS, slider_of
from pages.hall.lectures import Lecture, Scene
from pages.kit.live import nodes_of
from pages.kit.navigation import ICONS
from pages.language import words

_markdown = MarkdownIt("commonmark", {"html": False, "xhtmlOut": True}).enable("table").disable(["link", "image"])


@lru_cache(maxsize=1_024)
def markdown_nodes(markdown: str) -> list[Any]:
    """Return Markdown as nodes_of does; links, pictures and HTML in it stay the characters that they are."""
    return nodes_of(_markdown.render(markdown))


def look_at(scene: Scene, language: str, /, **more: str) -> str:
    """Return the link of a scene's screen in the app, below the app's address.

    Args:
        scene: of which it is the screen.
        language: of the page.
        more: what the link says beside the scene's state.
    """
    page = "" if scene.page == next(iter(ICONS)) else scene.page
    return f"{page}?{urlencode({**scene.state, 'lang': language, **more})}"


def scene_in_words(lecture: Lecture, number: int, language: str) -> dict[str, Any]:
    """Return what anybody may know of a scene before its question is answered; nodes are as of told.

    Args:
        lecture: that has the scene.
        number: of the scene, from 1.
        language: of the app's page that `look` leads to.

    Returns:
        ``number``, ``count`` (scenes), ``title`` (text), ``text`` (nodes), ``look`` (a link below the app's address)
        ``question``: None, or ``words`` (nodes) and ``options`` (labels in plain words, by what may be found), and
        ``each``: None, or ``words`` (nodes), ``slider`` (the lecturer's) and ``alone``: who stands for a class.
    """
    scene = lecture.scenes[number - 1]
    question, each, known = scene.question, scene.each, words(language)
    part = each and {
        "words": markdown_nodes(each.words or known[f"each.words_{each.kind}"]),
        "slider": slider_of(each, language),
        "alone": known[f"each.alone_{each.kind}"].format(count=OTHERS),
    }
    return {
        "number": number,
        "count": len(lecture.scenes),
        "title": scene.title,
        "text": markdown_nodes(scene.text),
        "look": look_at(scene, language),
        "question": question and {"words": markdown_nodes(question.words), "options": dict(question.options)},
        "each": part,
    }
