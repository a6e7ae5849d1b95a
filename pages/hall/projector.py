"""The projector and its notes: a lecture in large type, without Streamlit's frame; ?lecture=NAME&scene=N opens it.

The screens of its scenes are frames of the app, the next one ready before it is asked for. ../../assets/hall has the
browser's part.
"""

import json
from collections.abc import Mapping
from functools import cache
from html import escape

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from pages.hall.files import linked_file
from pages.hall.lectures import Lecture, LectureError, Question, Scene, find_lecture, finding_in_words
from pages.hall.scene import SCENE, TOUR
from pages.hall.scene_words import look_at, markdown_nodes, scene_in_words
from pages.hall.tour import measured
from pages.kit.navigation import HALL
from pages.kit.url import whole_number
from pages.language import LANGUAGES, strings, words
from pages.link import Link, below_base, reading
from pages.serving.inside_streamlit import font_file
from pages.serving.owners import owner_in
from transformer_core.untrusted.bundle_files import BundleError

LECTURE = "lecture"
FRESH = {"Cache-Control": "no-store"}
PAGE = """<!DOCTYPE html>
<html lang="{language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
{font}<link rel="stylesheet" href="{shared}">
<link rel="stylesheet" href="{style}">
<script type="application/json" id="data">{data}</script>
<script type="module" src="{script}"></script>
"""


class _WithLecture(Route):
    """A route that only links of a lecture take; others go on to the app."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        named = scope["type"] == "http" and LECTURE in Request(scope).query_params
        return super().matches(scope) if named else (Match.NONE, {})


def language_of(request: Request) -> str:
    """Return the language of a link, else that of the browser."""
    asked = request.query_params.get("lang") or request.headers.get("accept-language", "")[:2].lower()
    return asked if asked in LANGUAGES else next(iter(LANGUAGES))


def _lecture(request: Request) -> tuple[Lecture | None, str]:
    lang = language_of(request)
    with reading(Link({"lang": lang}, owner_in(request.headers.get("cookie", "")))):
        return find_lecture(request.query_params.get(LECTURE, ""), lang), lang


def lecture_in_words(lecture: Lecture, language: str) -> dict[str, object]:
    """Return what the lecturer's windows show of a lecture, with its notes; nodes are as of told."""
    scenes = [
        scene_in_words(lecture, number, language)
        | {"notes": markdown_nodes(scene.notes), "figure": scene.figure}
        | {"frame": look_at(scene, language, **{HALL: "1", TOUR: lecture.name, SCENE: str(number)})}
        for number, scene in enumerate(lecture.scenes, 1)
    ]
    return {"name": lecture.name, "title": lecture.title, "minutes": lecture.minutes, "scenes": scenes}


@cache
def _font() -> str:
    """Return the style that names the app's font, "" where Streamlit has it no more under its name."""
    if not font_file():
        return ""
    link = below_base(font_file())
    return f'<style>@font-face {{ font-family: "Source Sans"; src: url("{link}"); font-weight: 200 900; }}</style>\n'


def hall_page(name: str, title: str, language: str, data: Mapping[str, object], *, large: bool = True) -> HTMLResponse:
    """Return a page of assets/hall with its data; what is in the data cannot end the element that holds it.

    Args:
        name: of its script and style.
        title, language: of the page.
        data: that its script reads.
        large: whether it may bring the app's font along, which is larger than all else.
    """
    body = PAGE.format(
        language=language,
        title=escape(title),
        font=_font() if large else "",
        shared=linked_file("hall.css"),
        style=linked_file(f"{name}.css"),
        script=linked_file(f"{name}.js"),
        data=json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
    )
    return HTMLResponse(body, headers=FRESH)


def _opens(name: str):
    async def window(request: Request) -> Response:
        return await run_in_threadpool(opened, request)

    def opened(request: Request) -> Response:
        lecture, lang = _lecture(request)
        said = strings("projector", lang)
        if lecture is None:
            missing = words(lang)["lectures.gone"].format(name=request.query_params.get(LECTURE, "")[:60])
            return HTMLResponse(f"<!DOCTYPE html><meta charset=utf-8><p>{escape(missing)}", 404, headers=FRESH)
        data = lecture_in_words(lecture, lang) | {"language": lang, "words": said, "base": below_base("")}
        return hall_page(name, lecture.title, lang, data)

    return window


def measure(scene: Scene, question: Question, link: Link) -> dict[str, object]:
    """Return what a scene's question comes to in the state of a link: the option, and how it is said, as nodes."""
    with reading(link):
        try:
            found = measured(scene)
        except (ValueError, BundleError, LectureError) as error:
            return {"option": None, "said": [str(error)]}
    return {
        "option": found.option,
        "said": markdown_nodes(finding_in_words(found, question.measured, link.said["lang"])),
    }


async def _measured(request: Request) -> Response:
    """Answer the question of a scene by measuring it in the scene's own state."""
    lecture, lang = await run_in_threadpool(_lecture, request)
    number = lecture and whole_number(request.query_params.get("scene"), len(lecture.scenes), least=1)
    scene = lecture.scenes[number - 1] if lecture is not None and number else None
    if scene is None or scene.question is None:
        return Response(status_code=404, headers=FRESH)
    link = Link({**scene.state, "lang": lang}, owner_in(request.headers.get("cookie", "")))
    return JSONResponse(await run_in_threadpool(measure, scene, scene.question, link), headers=FRESH)


def projector_routes() -> list[Route]:
    """Return the routes of the lecturer's windows for st.App, below server.baseUrlPath."""
    return [
        _WithLecture(below_base(""), _opens("projector")),
        Route(below_base("hall/notes"), _opens("notes")),
        Route(below_base("hall/measured"), _measured),
    ]
