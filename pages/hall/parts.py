"""The parts of a room's phones: what a scene gives to each, and what the class came to so far."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from cachetools import LRUCache

from pages.hall.each.frame import Body, Given, Phone, Picture, Task
from pages.hall.each.kinds import OF_KIND, CannotAskError, part_of, phone_of, task_of
from pages.hall.rooms import RoomState
from pages.link import Link, reading

Answers = list[Any]
Key = tuple[str, str, str, tuple[str, ...]]
MOST_AHEAD, MOST_KNOWN = 2, 256  # scenes computed at once, and known to be computed
_ahead = ThreadPoolExecutor(MOST_AHEAD, "class scene")
_computed: LRUCache[Key, bool] = LRUCache(MOST_KNOWN)
_begun = set[Key]()
_lock = threading.Lock()


def task_in(state: RoomState, *, stage: str | None = None, language: str | None = None) -> Task[Any] | None:
    """Return the task of the scene that a room is at, None while what is exact is being computed.

    Args:
        state: at a scene that gives every phone a part.
        stage: by default the room's; language: of the words, by default the room's.

    Raises:
        CannotAskError: it cannot be computed.
    """
    scene = state.lecture.scenes[state.scene - 1]
    assert scene.each is not None
    lang = language or state.language
    who = f"{state.owner or 'home'} room {state.code} {state.scene}"
    with reading(Link({**scene.state, "lang": lang}, state.owner)):
        return task_of(scene.each, scene.state, lang, who, stage=stage or state.stage, setting=state.slider)


def ready(state: RoomState) -> bool:
    """Tell whether what is exact about a scene was computed before; else begin it, and make nobody wait."""
    scene = state.lecture.scenes[state.scene - 1]
    assert scene.each is not None
    key = (state.owner, scene.screen, scene.each.head, scene.each.items)
    with _lock:
        begins = key not in _begun and key not in _computed
        if begins:
            _begun.add(key)
    if begins:
        _ahead.submit(_compute, key, state)
    with _lock:
        return key in _computed


def _compute(key: Key, state: RoomState) -> None:
    try:
        task_in(state)
    except CannotAskError:
        pass  # told to whoever asks
    finally:
        with _lock:
            _computed[key] = True
            _begun.discard(key)


def prepare(state: RoomState, number: int) -> None:
    """Begin to compute what is exact about a scene, if there is such a one that gives every phone a part."""
    if 1 <= number <= len(state.lecture.scenes) and state.lecture.scenes[number - 1].each is not None:
        ready(replace(state, scene=number))


def picture_in(state: RoomState, *, stage: str | None = None) -> Picture | None:
    """Return what the class came to so far, None while what is exact is being computed.

    Raises:
        CannotAskError: it cannot be computed.
    """
    task = task_in(state, stage=stage)
    if task is None:
        return None
    phones = {seat: phone_in(state, seat) for seat in {seat for seat, _, _ in state.parts}}
    given = [Given(phones[seat], number, said) for seat, number, said in state.parts]
    return OF_KIND[task.each.kind].picture(task, given)


def shown_of(state: RoomState) -> Body:
    """Return what a browser shows of the class: its picture; or that it is pending, or the error in words."""
    people = len({seat for seat, _, _ in state.parts})
    known: Body = {"setting": state.slider, "given": len(state.parts), "people": people}
    try:
        picture = picture_in(state) if ready(state) else None
    except CannotAskError as error:
        return known | {"error": str(error)}
    return known | ({"pending": True} if picture is None else {"picture": picture.sent()})


def part_in(state: RoomState, seat: int, given: Answers, language: str) -> Body:
    """Return a phone's part; or that it is pending, or the error in words."""
    try:
        task = task_in(state, language=language) if ready(state) else None
    except CannotAskError as error:
        return {"error": str(error)}
    if task is None:
        return {"pending": True}
    return part_of(task, phone_in(state, seat), given)


def needed_task(state: RoomState, language: str) -> Task[Any]:
    """Return the task of the scene that a room is at, in which a phone gives something.

    Raises:
        CannotAskError: it cannot be computed, or is being computed.
    """
    task = task_in(state, language=language)
    if task is None:
        raise CannotAskError("what is exact is being computed")
    return task


def phone_in(state: RoomState, seat: int) -> Phone:
    """Return a phone of a room in its scene."""
    return phone_of(f"{state.code} {state.scene}", seat)


def taken_in(task: Task[Any], phone: Phone, number: int, said: Any) -> Any:
    """Return what is kept of what a phone sent in a round.

    Raises:
        BadPartError: it is nothing that its part takes.
    """
    return OF_KIND[task.each.kind].take(task, phone, number, said)


def rounds_in(state: RoomState) -> int:
    """Return how many rounds the scene's part has, 0 where it gives none."""
    each = state.lecture.scenes[state.scene - 1].each
    return 0 if each is None else OF_KIND[each.kind].rounds(each)
