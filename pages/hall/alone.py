"""A scene's part for one person without a class: draws of the same model stand for the other phones, and it says so."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from pages.hall.each.frame import STAGES, Body
from pages.hall.each.kinds import OF_KIND, SEATS, CannotAskError, alone, set_within, task_of
from pages.hall.lectures import Scene, find_lecture
from pages.hall.projector import FRESH, hall_page, language_of
from pages.hall.room_routes import RefusalError, answering
from pages.hall.scene_words import scene_in_words
from pages.kit.url import whole_number
from pages.language import strings
from pages.link import Link, below_base, reading
from pages.serving.owners import owner_in, person_of


def _found(request: Request) -> tuple[Scene, Body, str]:
    """Return the scene that a link names, its words, and the language."""
    asked, lang = request.query_params, language_of(request)
    with reading(Link({"lang": lang}, owner_in(request.headers.get("cookie", "")))):
        lecture = find_lecture(asked.get("lecture", ""), lang)
    number = lecture and whole_number(asked.get("scene"), len(lecture.scenes), least=1)
    if not lecture or not number or lecture.scenes[number - 1].each is None:
        raise RefusalError(404, "room.bad")
    return lecture.scenes[number - 1], scene_in_words(lecture, number, lang), lang


async def _page(request: Request, body: Body) -> Response:
    """Send the page with the part."""
    scene, shown, lang = await run_in_threadpool(_found, request)
    data = {"words": strings("phone", lang), "base": below_base(""), "query": request.url.query, "each": shown["each"]}
    page: HTMLResponse = hall_page("alone", scene.title, lang, data, large=False)
    return page


async def _asked(request: Request, body: Body) -> Response:
    """Answer with the part as it goes on after what was sent, and with the picture of a class of draws."""
    scene, _, lang = await run_in_threadpool(_found, request)
    seat, sent = whole_number(body.get("seat"), SEATS - 1), body.get("sent")
    if seat is None or not isinstance(sent, list) or scene.each is None:
        raise RefusalError(400, "room.bad")
    each, who = scene.each, f"{person_of(request)} part {scene.title}"
    setting = set_within(each, body.get("value"))
    of_class = body.get("stage") if body.get("stage") in STAGES else None  # the projector without a room

    def answer() -> Body:
        link = Link({**scene.state, "lang": lang}, owner_in(request.headers.get("cookie", "")))
        done = len(sent) >= OF_KIND[each.kind].rounds(each)
        stage = str(of_class or STAGES[-1 if done else 0])
        try:
            with reading(link):
                task = task_of(each, scene.state, lang, who, stage=stage, setting=setting)
        except CannotAskError as error:
            return {"error": str(error)}
        if task is None:
            return {"pending": True}
        part, picture = alone(task, seat, sent)
        return {"part": part, "picture": picture.sent()}

    found: dict[str, Any] = await run_in_threadpool(answer)
    return JSONResponse(found, headers=FRESH)


def alone_routes() -> list[Route]:
    """Return the routes for st.App, below server.baseUrlPath."""
    return [
        Route(below_base("hall/alone"), answering(_page), methods=["GET"]),
        Route(below_base("hall/alone"), answering(_asked), methods=["POST"]),
    ]
