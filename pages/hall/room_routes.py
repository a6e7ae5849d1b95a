"""Rooms as browsers reach them: the lecturer's part and the phones' part."""

import asyncio
import json
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import segno
from cachetools import TTLCache
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pages.hall.each.frame import BadPartError, Picture
from pages.hall.each.kinds import CannotAskError, set_within
from pages.hall.lectures import Scene, find_lecture
from pages.hall.listening import Body, all_changed, changed, end_all, is_listened, listened, rooms, rooms_file
from pages.hall.parts import Sent, parts_in, picture_in, prepare
from pages.hall.projector import hall_page, language_of, measure
from pages.hall.rooms import CODE_LENGTH, LONGEST_TEXT, MOST_PHONES, STAGES, RoomError, RoomState
from pages.hall.take_home import take_home
from pages.kit.asking import ask_away
from pages.kit.url import whole_number
from pages.language import LANGUAGES, strings, words
from pages.link import Link, below_base, reading
from pages.serving.hooks import before_serving, before_stopping
from pages.serving.limits import limits
from pages.serving.owners import is_home, owner_in, person_of
from transformer_core.warm_process import ProcessDiedError

MOST_BODY = 8_192  # bytes
SECONDS_BETWEEN_ANSWERS, MOST_ANSWERS_A_SECOND = 0.3, 400
SECONDS_BETWEEN_LOOKS = 1.0
WRONG_AT_ONCE, SECONDS_OF_A_WRONG_CODE = 8, 1.0
MOST_ROOMS_OF_AN_ADDRESS = 8
FRESH = {"Cache-Control": "no-store"}
STREAM = FRESH | {"X-Accel-Buffering": "no"}
UNUSABLE = "the file of the rooms, %s, cannot be used, and no room can be opened: %s"
log = logging.getLogger("vitrine")
_opened_from: dict[str, str] = {}  # codes of rooms that this server opened, and the addresses that asked for them
_answered: TTLCache[str, float] = TTLCache(MOST_ANSWERS_A_SECOND, 1.0)  # phones, and when they may answer again


class RefusalError(Exception):
    """An answer in words, with its status."""

    def __init__(self, status: int, key: str, **values: object) -> None:
        self.status, self.key, self.values = status, key, values


Handler = Callable[[Request, Body], Awaitable[Response]]


def answering(handler: Handler):
    """Return a route's function: it reads the body as JSON, and says refusals in the visitor's language."""

    async def answer(request: Request) -> Response:
        body: Body = {}
        try:
            body = await _body(request)
            return await handler(request, body)
        except BadPartError:
            status, key, values = 400, "room.bad", {}
        except CannotAskError:
            status, key, values = 503, "room.fast", {}
        except RoomError as error:
            status, key, values = 409, str(error), {"most": LONGEST_TEXT}
        except (OSError, sqlite3.Error) as error:
            log.warning(UNUSABLE, rooms_file().name, error)
            status, key, values = 503, "room.unusable", {}
        except RefusalError as refusal:
            status, key, values = refusal.status, refusal.key, refusal.values
        said = words(lang_of(request, body))[key].format(**values)
        return JSONResponse({"error": said, "why": key}, status, headers=FRESH)

    return answer


def lang_of(request: Request, body: Body) -> str:
    """Return the language of what is asked, else that of the request."""
    asked = body.get("language")
    return asked if isinstance(asked, str) and asked in LANGUAGES else language_of(request)


def read_body(body: bytes) -> Body:
    """Return the JSON of a request, {} where it has none."""
    try:
        found = json.loads(body) if body else {}
        json.dumps(found, ensure_ascii=False).encode()  # halves of characters are no text
    except (ValueError, RecursionError):
        raise RefusalError(400, "room.bad") from None
    if not isinstance(found, dict):
        raise RefusalError(400, "room.bad")
    return found


async def _body(request: Request) -> Body:
    """Return what a request says, read in a thread."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            raise RefusalError(413, "room.bad")
    return await run_in_threadpool(read_body, body)


def _code(request: Request) -> str:
    return request.path_params["code"].upper()[:CODE_LENGTH]


_guessing = asyncio.Semaphore(WRONG_AT_ONCE)


async def _guessed() -> NoReturn:
    """Say, slowly, that there is no such room; whoever comes while many hear that is told to come again.

    A right code waits for nothing, however many wrong ones there are.
    """
    if _guessing.locked():
        raise RefusalError(429, "room.fast")
    async with _guessing:
        await asyncio.sleep(SECONDS_OF_A_WRONG_CODE)
    raise RefusalError(404, "room.none")


async def _let_in(request: Request) -> str:
    """Return the code of the room that a request names; where there is none, say so, slowly."""
    code = _code(request)
    if not is_listened(code) and not await run_in_threadpool(rooms().has, code):
        await _guessed()
    return code


async def _state(code: str) -> RoomState:
    """Return the state of a room, which may have been closed a moment ago."""
    state = await run_in_threadpool(rooms().state, code)
    if state is None:
        raise RefusalError(404, "room.none")
    return state


async def _lecturers(request: Request, body: Body) -> str:
    """Return the code of a room whose lecturer asks."""
    code = _code(request)
    if not await run_in_threadpool(rooms().is_lecturer, code, str(body.get("secret", ""))):
        await _guessed()
    return code


async def _open(request: Request, body: Body) -> Response:
    """Open a room for a lecture that this visitor can see."""
    if limits().read_only:
        raise RefusalError(403, "room.read_only")
    lang = lang_of(request, body)
    owner, address = owner_in(request.headers.get("cookie", "")), request.client.host if request.client else ""
    if not (owner or is_home()):
        raise RefusalError(403, "room.cookies")

    def open_room() -> tuple[str, str]:
        with reading(Link({"lang": lang}, owner)):
            lecture = find_lecture(str(body.get("lecture", "")), lang)
        scene = lecture and whole_number(body.get("scene", 1), len(lecture.scenes), least=1)
        if not (lecture and scene):
            raise RefusalError(404, "room.bad")
        if body.get("instead") is not True and (gone := rooms().goes_for_another(owner)):
            raise RefusalError(409, "room.third", code=gone[0], count=gone[1])
        there = {code for code, *_ in rooms().all()}
        for code in _opened_from.keys() - there:
            del _opened_from[code]
        if not is_home() and list(_opened_from.values()).count(address) >= MOST_ROOMS_OF_AN_ADDRESS:
            raise RefusalError(409, "room.address", most=MOST_ROOMS_OF_AN_ADDRESS)
        made = rooms().open(owner, lecture, lang, scene)
        _opened_from[made[0]] = address
        return made

    code, secret = await run_in_threadpool(open_room)
    all_changed()  # one may have given way
    return JSONResponse({"code": code, "secret": secret, **_invitation(request, code)}, headers=FRESH)


def _invitation(request: Request, code: str) -> Body:
    """Return the phones' link as this browser names the server, and its QR code as a picture in a link."""
    link = f"{request.url.scheme}://{request.headers['host']}{below_base(f'room/{code}')}"
    return {"link": link, "qr": segno.make(link, error="m").svg_data_uri(scale=8, border=2)}


async def _enter(request: Request, body: Body) -> Response:
    """Let a lecturer whose window was closed take the room up again."""
    code = await _lecturers(request, body)
    return JSONResponse({"code": code, **_invitation(request, code)}, headers=FRESH)


def _asked_of_the_model(state: RoomState, number: int) -> Scene | None:
    """Return the scene whose question the model can answer; where that wants a sentence, with the one picked."""
    scene = state.lecture.scenes[number - 1]
    if scene.question is None or scene.question.options:
        return scene
    picked = state.texts.get(state.picked or 0) if number == state.scene else None
    return replace(scene, state={**scene.state, "text": picked}) if picked else None


async def _step(request: Request, body: Body) -> Response:
    """Go to a scene and a stage; at the last stage the model answers first."""
    code = await _lecturers(request, body)
    state = await _state(code)
    scene, stage = whole_number(body.get("scene"), len(state.lecture.scenes), least=1), body.get("stage")
    if scene is None or stage not in STAGES:
        raise RefusalError(400, "room.bad")
    finding, asked = None, _asked_of_the_model(state, scene) if stage == STAGES[-1] else None
    if asked is not None and asked.question is not None:
        link = Link({**asked.state, "lang": state.language}, owner_in(request.headers.get("cookie", "")))
        finding = await run_in_threadpool(measure, asked, asked.question, link)
    await run_in_threadpool(rooms().step, code, scene, stage, finding)
    changed(code)
    prepare(state, scene)
    prepare(state, scene + 1)
    return JSONResponse({}, headers=FRESH)


async def _pick(request: Request, body: Body) -> Response:
    """Show one answer in words to everybody, or none."""
    code = await _lecturers(request, body)
    answer = whole_number(body.get("answer"), 2**53)
    await run_in_threadpool(rooms().pick, code, answer)
    changed(code)
    return JSONResponse({}, headers=FRESH)


async def _close(request: Request, body: Body) -> Response:
    """Delete a room and its answers."""
    code = await _lecturers(request, body)
    await run_in_threadpool(rooms().close, code)
    changed(code)
    return JSONResponse({}, headers=FRESH)


async def _slide(request: Request, body: Body) -> Response:
    """Move the slider of a scene that gives every phone a part."""
    code = await _lecturers(request, body)
    state = await _state(code)
    each = state.lecture.scenes[state.scene - 1].each
    value = each and set_within(each, body.get("value"))
    if value is None or body.get("scene") != state.scene:
        raise RefusalError(400, "room.bad")
    await run_in_threadpool(rooms().slide, code, state.scene, value)
    changed(code)
    return JSONResponse({}, headers=FRESH)


async def _measured_parts(request: Request, code: str) -> dict[int, Picture]:
    """Return what the class came to in each scene that gave every phone a part, by scene; without those that failed."""
    found: dict[int, Picture] = {}
    state = await _state(code)
    for number, scene in enumerate(state.lecture.scenes, 1):
        while scene.each is not None and number not in found and not await request.is_disconnected():
            at = await run_in_threadpool(rooms().state, code, number)
            if at is None or not at.parts:
                break
            try:
                picture = await run_in_threadpool(partial(picture_in, at, stage=STAGES[-1]))
            except CannotAskError:
                break
            if picture is None:
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            else:
                found[number] = picture
    return found


async def _table(request: Request, body: Body) -> Response:
    """Send all answers as CSV."""
    code = await _lecturers(request, body)
    table = await _as_csv(code, await _measured_parts(request, code))
    return Response(table.encode("utf-8-sig"), media_type="text/csv", headers=FRESH)


async def _as_csv(code: str, pictures: Mapping[int, Picture]) -> str:
    parts = {number: picture.table() for number, picture in pictures.items()}
    return await run_in_threadpool(rooms().to_csv, code, parts)


async def _home(request: Request, body: Body) -> Response:
    """Send the lecture as one file, with the class's answers; a process of low priority makes it."""
    code = await _lecturers(request, body)
    state = await _state(code)
    said = await run_in_threadpool(rooms().counted, code)
    pictures = await _measured_parts(request, code)
    sent = {number: picture.sent() for number, picture in pictures.items()}
    asked: dict[str, Any] = {"lecture": state.lecture.written(), "name": state.lecture.name}
    asked |= {"language": state.language, "public": not is_home()}
    asked |= {"answers": json.dumps(said), "pictures": json.dumps(sent), "table": await _as_csv(code, pictures)}
    who = f"{person_of(request)} room {code}"
    while not (future := ask_away(take_home, who, **asked)).done():
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        if await request.is_disconnected():
            return Response(status_code=204)
    try:
        html = future.result().html
    except (ValueError, ProcessDiedError):
        raise RefusalError(422, "room.no_file") from None
    return Response(html, media_type="text/html", headers=FRESH | {"Content-Disposition": "attachment"})


async def _follow(request: Request, body: Body) -> Response:
    """Tell a lecturer's window all there is to know, now and at each change."""
    code = await _lecturers(request, body)
    return StreamingResponse(listened(code).listen("lecturer"), media_type="text/event-stream", headers=STREAM)


async def _events(request: Request, body: Body) -> Response:
    """Tell a phone what it may know, now and at each change."""
    code = await _let_in(request)
    live = listened(code)
    if live.phones >= MOST_PHONES:
        raise RefusalError(503, "room.crowded", most=f"{MOST_PHONES:,}")
    return StreamingResponse(live.listen("phone"), media_type="text/event-stream", headers=STREAM)


async def _phone_in(request: Request) -> tuple[str, str]:
    """Return whose phone asks, and the code of the room that it is in."""
    owner = owner_in(request.headers.get("cookie", ""))
    if not owner:
        raise RefusalError(403, "room.cookies")
    return owner, await _let_in(request)


def _slowed(owner: str) -> None:
    """Refuse who answers too fast, and all where the server has as many answers a second as it may."""
    now = time.monotonic()
    if _answered.currsize == MOST_ANSWERS_A_SECOND or now < _answered.get(owner, now):
        raise RefusalError(429, "room.fast")
    _answered[owner] = now + SECONDS_BETWEEN_ANSWERS


async def _answer(request: Request, body: Body) -> Response:
    """Take a phone's answer; whoever answers too fast is asked to try again."""
    owner, code = await _phone_in(request)
    _slowed(owner)
    scene = whole_number(body.get("scene"), 10_000, least=1)
    await run_in_threadpool(rooms().answer, code, owner, scene or 0, str(body.get("said", "")))
    changed(code, at_once=False)
    return JSONResponse({}, headers=FRESH)


async def _part(request: Request, body: Body) -> Response:
    """Tell a phone its part in the scene where the lecturer is."""
    return await _part_of(request, body, gives=False)


async def _give(request: Request, body: Body) -> Response:
    """Take what a phone gives in a round of its part; what it gave before stays, and it hears how its part goes on."""
    return await _part_of(request, body, gives=True)


async def _part_of(request: Request, body: Body, *, gives: bool) -> Response:
    """Let what a phone sends be served with what others of its room send meanwhile."""
    owner, code = await _phone_in(request)
    if gives:
        _slowed(owner)
    sent = Sent(owner, body.get("scene"), lang_of(request, body), gives, body.get("round"), body.get("said"))
    answer: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
    _waiting.setdefault(code, []).append((sent, answer))
    if code not in _serving:
        _serving[code] = asyncio.create_task(_serve(code))
    found = await answer
    if found is None:
        raise RefusalError(404, "room.none")
    return JSONResponse(found, headers=FRESH)


_waiting: dict[str, list[tuple[Sent, asyncio.Future[Body | None]]]] = {}  # by room
_serving: dict[str, asyncio.Task[None]] = {}


async def _serve(code: str) -> None:
    """Serve what phones of a room sent until nothing waits, all that came meanwhile together."""
    try:
        while waiting := _waiting.pop(code, None):
            try:
                found = await run_in_threadpool(parts_in, rooms(), code, [sent for sent, _ in waiting])
            except Exception as error:
                found = [error] * len(waiting)
            for (_, answer), one in zip(waiting, found or [None] * len(waiting), strict=True):
                if answer.done():  # who asked has gone
                    continue
                if isinstance(one, Exception):
                    answer.set_exception(one)
                else:
                    answer.set_result(one)
            if any(sent.gives for sent, _ in waiting):
                changed(code, at_once=False)
    finally:  # whatever happens, the next phone starts this anew
        del _serving[code]


async def _phone(request: Request, body: Body) -> Response:
    """Send the phones' page; without a code it asks for one."""
    found: dict[str, str] = {"code": ""}
    if "code" in request.path_params:
        with suppress(RefusalError):  # then the page asks for a code
            state = await _state(await _let_in(request))
            found = {"code": state.code, "language": state.language}
    lang = found.get("language") or language_of(request)
    said = {name: strings("phone", name) for name in LANGUAGES}
    data = {"code": "", "language": lang, "words": said, "longest": LONGEST_TEXT, "base": below_base("")} | found
    return hall_page("phone", words(lang)["phone.title"], lang, data, large=False)


def _look_at_file() -> None:
    try:
        rooms()
    except (OSError, sqlite3.Error) as error:
        log.warning(UNUSABLE, rooms_file().name, error)


def room_routes() -> list[Route]:
    """Return the routes of rooms for st.App, below server.baseUrlPath."""
    before_serving(_look_at_file)
    before_stopping(end_all)
    asked: dict[str, Handler] = {"step": _step, "pick": _pick, "close": _close, "enter": _enter}
    asked |= {"answers": _table, "home": _home, "lecturer": _follow, "answer": _answer}
    asked |= {"slide": _slide, "part": _part, "give": _give}
    return [
        Route(below_base("room"), answering(_phone)),
        Route(below_base("room/open"), answering(_open), methods=["POST"]),
        *(Route(below_base(f"room/{{code}}/{name}"), answering(one), methods=["POST"]) for name, one in asked.items()),
        Route(below_base("room/{code}/events"), answering(_events)),
        Route(below_base("room/{code}"), answering(_phone)),
    ]
