"""Rooms as browsers reach them: the lecturer's part, the phones' part, and who hears of a change.

A room's state goes to everybody whole, as server-sent events, so that a phone that slept needs nothing but the newest.
It is written once for all phones; answers that come fast are told together.
"""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, NoReturn

import segno
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pages.hall.projector import hall_page, language_of, measure
from pages.hall.rooms import CODE_LENGTH, LONGEST_TEXT, MOST_PHONES, STAGES, RoomError, Rooms, RoomState, rooms_file
from pages.hall.take_home import take_home
from pages.hall.told import scene_told
from pages.ui.asking import ask_away
from pages.ui.heavy import ProcessDiedError
from pages.ui.language import LANGUAGES, strings, words
from pages.ui.lectures import Scene, find_lecture
from pages.ui.limits import limits
from pages.ui.link import Link, reading
from pages.ui.server import before_stopping
from pages.ui.url import below_base, whole_number
from pages.ui.who import is_home, owner_in, person_of

MOST_BODY, MOST_TEXTS = 8_192, 200
SECONDS_BETWEEN_COUNTS, SECONDS_BETWEEN_BEATS = 0.2, 15.0
SECONDS_BETWEEN_ANSWERS, MOST_ANSWERS_A_SECOND = 0.3, 400
SECONDS_BETWEEN_LOOKS = 1.0
WRONG_AT_ONCE, SECONDS_OF_A_WRONG_CODE, MOST_IN_LINE, MOST_REMEMBERED = 8, 1.0, 200, 10_000
FRESH = {"Cache-Control": "no-store"}
STREAM = FRESH | {"X-Accel-Buffering": "no"}
Body = dict[str, Any]
_live: dict[str, "Live"] = {}
_been_in: OrderedDict[tuple[str, str], None] = OrderedDict()  # codes and phones that were let in
_answered: OrderedDict[str, float] = OrderedDict()  # phones, and when they answered last


@cache
def _rooms() -> Rooms:
    return Rooms(rooms_file(), most=limits().rooms)


def _event(message: Body) -> bytes:
    return f"data: {json.dumps(message, ensure_ascii=False, separators=(',', ':'))}\n\n".encode("utf-8", "replace")


class Live:
    """A room that somebody listens to: its state as it was last told, and those who wait for the next one."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.phones = self.listeners = self.version = 0
        self.messages: dict[str, bytes] = {}
        self.closed = self._ended = False
        self._next: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wanted, self._at_once = asyncio.Event(), asyncio.Event()
        self._teller = asyncio.create_task(self._tell())

    def changed(self, *, at_once: bool = True) -> None:
        """Let everybody hear of a change, at once or together with what else changes within a moment."""
        self._wanted.set()
        if at_once:
            self._at_once.set()

    async def listen(self, kind: str) -> AsyncIterator[bytes]:
        """Yield the state, and again whenever it has changed.

        Args:
            kind: of the listener, "phone" or "lecturer".
        """
        self.listeners += 1
        self.phones += kind == "phone"
        if self._teller.done() and not self.closed:  # the last one left just now
            _live[self.code], self._teller = self, asyncio.create_task(self._tell())
        self.changed(at_once=not self.version)
        seen = 0
        try:
            while not self._ended and (not self.closed or seen != self.version):
                following = self._next
                if self.version != seen:
                    seen = self.version
                    yield self.messages[kind]
                    continue
                done, _ = await asyncio.wait({following}, timeout=SECONDS_BETWEEN_BEATS)
                if not done:
                    yield b": still here\n\n"
        finally:
            self.listeners -= 1
            self.phones -= kind == "phone"
            self.changed(at_once=False)

    def end(self) -> None:
        """End all streams: the server stops."""
        self._ended = True
        self._hear()

    def _hear(self) -> None:
        following, self._next = self._next, asyncio.get_running_loop().create_future()
        following.set_result(None)

    async def _tell(self) -> None:
        while True:
            await self._wanted.wait()
            if not self.listeners and self.version:
                break
            self._wanted.clear()
            self._at_once.clear()
            state = await run_in_threadpool(_rooms().state, self.code)
            self.closed = state is None
            self.messages = {"phone": _event(_for_phones(state)), "lecturer": _event(_for_lecturer(state, self.phones))}
            self.version += 1
            self._hear()
            if self.closed:
                break
            with suppress(TimeoutError):
                await asyncio.wait_for(self._at_once.wait(), SECONDS_BETWEEN_COUNTS)
        _live.pop(self.code, None)


def _listened(code: str) -> Live:
    if code not in _live:
        _live[code] = Live(code)
    return _live[code]


def _changed(code: str, *, at_once: bool = True) -> None:
    if code in _live:
        _live[code].changed(at_once=at_once)


def _for_phones(state: RoomState | None) -> Body:
    """Return what a phone may know: counts once they are shown, what was measured once the model has answered."""
    if state is None:
        return {"closed": True}
    told = scene_told(state.lecture, state.scene, state.language)
    known: Body = {"lecture": state.lecture.title, "stage": state.stage, **told, "look": below_base(told["look"])}
    known["answers"] = sum(state.counts.values()) + len(state.texts)
    known["picked"] = state.texts.get(state.picked or 0)
    if state.stage != STAGES[0]:
        known["counts"] = state.counts
    if state.stage == STAGES[-1]:
        known["finding"] = state.findings.get(state.scene)
    return known


def _for_lecturer(state: RoomState | None, phones: int) -> Body:
    if state is None:
        return {"closed": True}
    texts = [{"id": number, "text": text} for number, text in list(state.texts.items())[:MOST_TEXTS]]
    return {
        "scene": state.scene,
        "stages": state.stages,
        "counts": state.counts,
        "answers": sum(state.counts.values()) + len(state.texts),
        "phones": phones,
        "texts": texts,
        "picked": state.texts.get(state.picked or 0),
        "finding": state.findings.get(state.scene),
    }


class _RefusalError(Exception):
    """An answer in words, with its status."""

    def __init__(self, status: int, key: str, **values: object) -> None:
        self.status, self.key, self.values = status, key, values


Handler = Callable[[Request, Body], Awaitable[Response]]


def _said(handler: Handler):
    """Return a route's function: it reads the body as JSON, and says refusals in the visitor's language."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request, await _body(request))
        except RoomError as error:
            status, key, values = 409, str(error), {"most": LONGEST_TEXT}
        except _RefusalError as refusal:
            status, key, values = refusal.status, refusal.key, refusal.values
        said = words(language_of(request))[key].format(**values)
        return JSONResponse({"error": said}, status, headers=FRESH)

    return answer


async def _body(request: Request) -> Body:
    """Return the JSON of a request, {} where it has none."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            raise _RefusalError(413, "room.bad")
    try:
        found = json.loads(body) if body else {}
    except ValueError:
        raise _RefusalError(400, "room.bad") from None
    if not isinstance(found, dict):
        raise _RefusalError(400, "room.bad")
    return found


def _code(request: Request) -> str:
    return request.path_params["code"].upper()[:CODE_LENGTH]


class _Wrong:
    """Slows down whoever guesses codes: a wrong one takes a second, and few are looked up at once.

    Right ones wait only while many wrong ones do, and those of phones that have been in their room never.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(WRONG_AT_ONCE)
        self._queued = 0

    async def wait_in_line(self) -> None:
        """Wait until fewer wrong codes are being answered."""
        if not self._slots.locked():
            return
        if self._queued >= MOST_IN_LINE:
            raise _RefusalError(429, "room.fast")
        self._queued += 1
        try:
            async with self._slots:
                pass
        finally:
            self._queued -= 1

    async def answer(self) -> NoReturn:
        """Say, slowly, that there is no such room."""
        async with self._slots:
            await asyncio.sleep(SECONDS_OF_A_WRONG_CODE)
        raise _RefusalError(404, "room.none")


_wrong = _Wrong()


async def _let_in(request: Request) -> str:
    """Return the code of the room that a request names; where there is none, say so, slowly."""
    code, owner = _code(request), owner_in(request.headers.get("cookie", ""))
    if (code, owner) not in _been_in:
        await _wrong.wait_in_line()
    if not await run_in_threadpool(_rooms().has, code):
        await _wrong.answer()
    if owner:
        _been_in[code, owner] = None
        while len(_been_in) > MOST_REMEMBERED:
            _been_in.popitem(last=False)
    return code


async def _state(code: str) -> RoomState:
    """Return the state of a room, which may have been closed a moment ago."""
    state = await run_in_threadpool(_rooms().state, code)
    if state is None:
        raise _RefusalError(404, "room.none")
    return state


async def _lecturers(request: Request, body: Body) -> str:
    """Return the code of a room whose lecturer asks."""
    code = _code(request)
    if not await run_in_threadpool(_rooms().is_lecturer, code, str(body.get("secret", ""))):
        await _wrong.wait_in_line()
        await _wrong.answer()
    return code


async def _open(request: Request, body: Body) -> Response:
    """Open a room for a lecture that this visitor can see."""
    if limits().read_only:
        raise _RefusalError(403, "room.read_only")
    tongue = body.get("language") if body.get("language") in LANGUAGES else language_of(request)
    owner = owner_in(request.headers.get("cookie", ""))

    def open_room() -> tuple[str, str] | None:
        with reading(Link({"lang": str(tongue)}, owner)):
            lecture = find_lecture(str(body.get("lecture", "")), str(tongue))
        scene = lecture and whole_number(body.get("scene", 1), len(lecture.scenes), least=1)
        return _rooms().open(owner, lecture, str(tongue), scene) if lecture and scene else None

    made = await run_in_threadpool(open_room)
    if made is None:
        raise _RefusalError(404, "room.bad")
    code, secret = made
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
        raise _RefusalError(400, "room.bad")
    finding, asked = None, _asked_of_the_model(state, scene) if stage == STAGES[-1] else None
    if asked is not None and asked.question is not None:
        link = Link({**asked.state, "lang": state.language}, owner_in(request.headers.get("cookie", "")))
        finding = await run_in_threadpool(measure, asked, asked.question, link)
    await run_in_threadpool(_rooms().step, code, scene, stage, finding)
    _changed(code)
    return JSONResponse({}, headers=FRESH)


async def _pick(request: Request, body: Body) -> Response:
    """Show one answer in words to everybody, or none."""
    code = await _lecturers(request, body)
    answer = whole_number(body.get("answer"), 2**53)
    await run_in_threadpool(_rooms().pick, code, answer)
    _changed(code)
    return JSONResponse({}, headers=FRESH)


async def _close(request: Request, body: Body) -> Response:
    """Delete a room and its answers."""
    code = await _lecturers(request, body)
    await run_in_threadpool(_rooms().close, code)
    _changed(code)
    return JSONResponse({}, headers=FRESH)


async def _table(request: Request, body: Body) -> Response:
    """Send all answers as CSV."""
    code = await _lecturers(request, body)
    return Response(await run_in_threadpool(_rooms().to_csv, code), media_type="text/csv", headers=FRESH)


async def _home(request: Request, body: Body) -> Response:
    """Send the lecture as one file, with the class's answers; a process of low priority makes it."""
    code = await _lecturers(request, body)
    state = await _state(code)
    said = await run_in_threadpool(_rooms().counted, code)
    asked = {"lecture": state.lecture.written(), "name": state.lecture.name, "language": state.language}
    asked["stranger"] = "" if is_home() else "yes"
    who = f"{person_of(request)} room {code}"
    while not (future := ask_away(take_home, who, **asked, answers=json.dumps(said))).done():
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        if await request.is_disconnected():
            return Response(status_code=204)
    try:
        html = future.result().html
    except (ValueError, ProcessDiedError):
        raise _RefusalError(422, "room.no_file") from None
    return Response(html, media_type="text/html", headers=FRESH | {"Content-Disposition": "attachment"})


async def _follow(request: Request, body: Body) -> Response:
    """Tell a lecturer's window all there is to know, now and at each change."""
    code = await _lecturers(request, body)
    return StreamingResponse(_listened(code).listen("lecturer"), media_type="text/event-stream", headers=STREAM)


async def _events(request: Request, body: Body) -> Response:
    """Tell a phone what it may know, now and at each change."""
    code = await _let_in(request)
    live = _listened(code)
    if live.phones >= MOST_PHONES:
        raise _RefusalError(503, "room.crowded", most=f"{MOST_PHONES:,}")
    return StreamingResponse(live.listen("phone"), media_type="text/event-stream", headers=STREAM)


async def _answer(request: Request, body: Body) -> Response:
    """Take a phone's answer; whoever answers too fast is asked to try again."""
    owner = owner_in(request.headers.get("cookie", ""))
    if not owner:
        raise _RefusalError(403, "room.cookies")
    code = await _let_in(request)
    now = time.monotonic()
    recent = list(_answered.values())[-MOST_ANSWERS_A_SECOND:]
    crowd = len(recent) == MOST_ANSWERS_A_SECOND and now - recent[0] < 1
    if crowd or now - _answered.get(owner, -SECONDS_BETWEEN_ANSWERS) < SECONDS_BETWEEN_ANSWERS:
        raise _RefusalError(429, "room.fast")
    _answered[owner] = now
    _answered.move_to_end(owner)
    while len(_answered) > MOST_REMEMBERED:
        _answered.popitem(last=False)
    scene = whole_number(body.get("scene"), 10_000, least=1)
    await run_in_threadpool(_rooms().answer, code, owner, scene or 0, str(body.get("said", "")))
    _changed(code, at_once=False)
    return JSONResponse({}, headers=FRESH)


async def _phone(request: Request, body: Body) -> Response:
    """Send the phones' page; without a code it asks for one."""
    found: dict[str, str] = {"code": ""}
    if "code" in request.path_params:
        with suppress(_RefusalError):  # then the page asks for a code
            state = await _state(await _let_in(request))
            found = {"code": state.code, "language": state.language}
    tongue = found.get("language") or language_of(request)
    said = {name: strings("phone", name) for name in LANGUAGES}
    data = {"code": "", "language": tongue, "words": said, "longest": LONGEST_TEXT, "base": below_base("")} | found
    return hall_page("phone", words(tongue)["phone.title"], tongue, data, large=False)


def _end_streams() -> None:
    for live in list(_live.values()):
        live.end()


def room_routes() -> list[Route]:
    """Return the routes of rooms for st.App, below server.baseUrlPath."""
    before_stopping(_end_streams)
    asked: dict[str, Handler] = {"step": _step, "pick": _pick, "close": _close, "enter": _enter}
    asked |= {"answers": _table, "home": _home, "lecturer": _follow, "answer": _answer}
    return [
        Route(below_base("room"), _said(_phone)),
        Route(below_base("room/open"), _said(_open), methods=["POST"]),
        *(Route(below_base(f"room/{{code}}/{name}"), _said(one), methods=["POST"]) for name, one in asked.items()),
        Route(below_base("room/{code}/events"), _said(_events)),
        Route(below_base("room/{code}"), _said(_phone)),
    ]
