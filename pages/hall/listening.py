"""Who listens to a room: its state goes to everybody whole, as server-sent events, at each change.

A phone that slept needs nothing but the newest. The state is written once for all phones; answers that come fast are
told together, to phones once a second. Another process of the machine may have changed a room: its file is looked at
while anybody listens.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool

from pages.hall.parts import shown_of
from pages.hall.rooms import STAGES, Rooms, RoomState
from pages.hall.scene_words import scene_in_words
from pages.link import below_base
from pages.serving.limits import limits
from transformer_core.kept import kept_at

FILE = "VITRINE_ROOMS"  # names the file of the rooms, by default .runs/rooms.sqlite3
MOST_TEXTS = 200
SECONDS_BETWEEN_COUNTS, SECONDS_BETWEEN_LOOKS, SECONDS_BETWEEN_BEATS = 0.2, 0.1, 15.0
SECONDS_BETWEEN_READINGS = 0.4  # of what is being computed for a scene
SECONDS_BETWEEN_COUNTS_OF_PHONES = 1.0  # there are hundreds
Body = dict[str, Any]
_live: dict[str, "Live"] = {}
_looking: list[asyncio.Task[None]] = []  # the one that looks for what other processes have changed


def rooms_file() -> Path:
    """Return where the rooms are kept."""
    return kept_at(FILE, "rooms.sqlite3")


@cache
def rooms() -> Rooms:
    """Return the rooms of this server.

    Raises:
        OSError, sqlite3.Error: their file cannot be used.
    """
    return Rooms(rooms_file(), most=limits().rooms)


def close_room(code: str) -> None:
    """Close a room, and let everybody in it know; from any thread."""
    rooms().close(code)
    live = _live.get(code)
    if live is not None:
        live.loop.call_soon_threadsafe(live.changed)


def _event(message: Body) -> bytes:
    return f"data: {json.dumps(message, ensure_ascii=False, separators=(',', ':'))}\n\n".encode("utf-8", "replace")


class Told(NamedTuple):
    """A room's state as it goes to each kind of listener.

    Args:
        place: another one where more than counts has changed.
        pending: what is exact about the scene is being computed, so it is read again soon.
    """

    phone: bytes
    lecturer: bytes
    place: tuple[Any, ...] = ()
    pending: bool = False


KINDS = Told._fields[:2]  # of listeners


class Live:
    """A room that somebody listens to: its state as it was last told, and those who wait for the next one."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.phones = self.listeners = 0
        self.told: Told | None = None
        self.closed = self._ended = False
        self.loop = asyncio.get_running_loop()
        self._next = {kind: self.loop.create_future() for kind in KINDS}
        self._wanted, self._at_once = asyncio.Event(), asyncio.Event()
        self._phones_wait_until = 0.0  # for counts alone
        self._teller = asyncio.create_task(self._tell())

    def changed(self, *, at_once: bool = True) -> None:
        """Let everybody hear of a change, at once or together with what else changes within a moment."""
        self._wanted.set()
        if at_once:
            self._at_once.set()

    async def listen(self, kind: str) -> AsyncIterator[bytes]:
        """Yield the state, and again whenever it has changed.

        Args:
            kind: of the listener, of KINDS.
        """
        self.listeners += 1
        self.phones += kind == "phone"
        if self._teller.done() and not self.closed:  # the last one left just now
            _live[self.code], self._teller = self, asyncio.create_task(self._tell())
        self.changed(at_once=self.told is None)
        heard = None
        try:
            while not self._ended:
                following, told = self._next[kind], self.told and getattr(self.told, kind)
                if told != heard:
                    heard = told
                    yield told
                elif self.closed:
                    break
                else:
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
        for kind in KINDS:
            self._hear(kind)

    def _hear(self, kind: str) -> None:
        following, self._next[kind] = self._next[kind], self.loop.create_future()
        following.set_result(None)

    def _with_former_counts(self, told: Told) -> Told:
        """Return what is told now: phones that have heard of counts within the last second hear the former ones."""
        if self.told is not None and told.phone == self.told.phone:
            return told
        wait = self._phones_wait_until - self.loop.time()
        if self.told is not None and told.place == self.told.place and wait > 0:
            self.loop.call_later(wait, partial(self.changed, at_once=False))
            return told._replace(phone=self.told.phone)
        self._phones_wait_until = self.loop.time() + SECONDS_BETWEEN_COUNTS_OF_PHONES
        return told

    async def _tell(self) -> None:
        while True:
            await self._wanted.wait()
            if not self.listeners and self.told is not None:
                await run_in_threadpool(rooms().note_phones, self.code, 0)
                if not self.listeners:
                    break
            self._wanted.clear()
            self._at_once.clear()
            told = self._with_former_counts(await run_in_threadpool(_told, self.code, self.phones))
            if told.pending:
                self.loop.call_later(SECONDS_BETWEEN_READINGS, self.changed)
            before, self.told = self.told, told
            self.closed = told == CLOSED
            for kind in KINDS:
                if before is None or getattr(before, kind) != getattr(told, kind):
                    self._hear(kind)
            if self.closed:
                break
            with suppress(TimeoutError):
                await asyncio.wait_for(self._at_once.wait(), SECONDS_BETWEEN_COUNTS)
        _live.pop(self.code, None)


def is_listened(code: str) -> bool:
    """Tell whether somebody listens to a room in this process, so that there is one."""
    return code in _live


def listened(code: str) -> Live:
    """Return a room as those who listen to it share it."""
    if code not in _live:
        _live[code] = Live(code)
    if not _looking:
        _looking.append(asyncio.create_task(_look_elsewhere()))
    return _live[code]


async def _look_elsewhere() -> None:
    """Let rooms hear of what other processes have changed, for as long as anybody listens."""
    known = None
    try:
        while _live:
            with suppress(sqlite3.Error):
                found = await run_in_threadpool(rooms().changed_elsewhere)
                if known not in (None, found):
                    all_changed(at_once=False)
                known = found
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
    finally:
        _looking.clear()


def changed(code: str, *, at_once: bool = True) -> None:
    """Let everybody in a room hear of a change, as Live.changed."""
    if code in _live:
        _live[code].changed(at_once=at_once)


def _for_phones(state: RoomState, each: Body | None) -> Body:
    """Return what a phone may know: counts once they are shown, what was measured once the model has answered."""
    shown = scene_in_words(state.lecture, state.scene, state.language)
    known: Body = {
        "lecture": state.lecture.title,
        "stage": state.stage,
        **shown,
        "look": below_base(shown["look"]),
    }
    known["answers"] = sum(state.counts.values()) + len(state.texts)
    known["picked"] = state.texts.get(state.picked or 0)
    if each is not None:
        known["class"] = each if state.stage != STAGES[0] else {**each, "picture": None}
        known["answers"] = each["given"]
    if state.stage != STAGES[0]:
        known["counts"] = state.counts
    if state.stage == STAGES[-1]:
        known["finding"] = state.findings.get(state.scene)
    return known


def _for_lecturer(state: RoomState, phones: int, each: Body | None) -> Body:
    texts = [{"id": number, "text": text} for number, text in list(state.texts.items())[:MOST_TEXTS]]
    return {
        "scene": state.scene,
        "stages": state.stages,
        "counts": state.counts,
        "answers": sum(state.counts.values()) + len(state.texts) if each is None else each["given"],
        "class": each,
        "phones": phones,
        "texts": texts,
        "picked": state.texts.get(state.picked or 0),
        "finding": state.findings.get(state.scene),
    }


GONE = _event({"closed": True})
CLOSED = Told(GONE, GONE)


def _told(code: str, phones: int) -> Told:
    """Return the state of a room as each kind of listener hears it; in a thread, for a lecture's words are parsed."""
    all_phones = rooms().note_phones(code, phones)
    state = rooms().state(code)
    if state is None:
        return CLOSED
    each = None if state.lecture.scenes[state.scene - 1].each is None else shown_of(state)
    return Told(
        _event(_for_phones(state, each)),
        _event(_for_lecturer(state, all_phones, each)),
        place=(state.scene, state.stage, state.picked, state.slider, *(each or ())),
        pending="pending" in (each or ()),
    )


def all_changed(*, at_once: bool = True) -> None:
    """Let everybody in any room hear of a change, as Live.changed."""
    for live in list(_live.values()):
        live.changed(at_once=at_once)


def end_all() -> None:
    """End all streams: the server stops."""
    for live in list(_live.values()):
        live.end()
