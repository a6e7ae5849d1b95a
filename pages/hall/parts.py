"""The parts of a room's phones: what a scene gives to each, and what the class came to so far."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from cachetools import LRUCache

from pages.hall.each.frame import BadPartError, Body, Given, Phone, Picture, Task
from pages.hall.each.kinds import OF_KIND, CannotAskError, part_of, phone_of, task_of
from pages.hall.rooms import RoomError, Rooms, RoomState
from pages.kit.url import whole_number
from pages.link import Link, reading

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


def phone_in(state: RoomState, seat: int) -> Phone:
    """Return a phone of a room in its scene."""
    return phone_of(f"{state.code} {state.scene}", seat)


def rounds_in(state: RoomState) -> int:
    """Return how many rounds the scene's part has, 0 where it gives none."""
    each = state.lecture.scenes[state.scene - 1].each
    return 0 if each is None else OF_KIND[each.kind].rounds(each)


@dataclass(frozen=True)
class Sent:
    """What a phone sends: it asks for its part, or gives something in a round, from 0.

    Args:
        owner: of the phone, as of pages/serving/owners.py.
        scene, round, said: as they came; language: of the words that it reads.
    """

    owner: str
    scene: Any
    language: str
    gives: bool = False
    round: Any = None
    said: Any = None


def parts_in(rooms: Rooms, code: str, sent: Sequence[Sent]) -> list[Body | Exception] | None:
    """Keep what phones of a room give, all in one transaction, and return each one's part or why it is refused.

    None where there is no such room. A part is as of part_of; or it says that it is pending, or the error in words.
    """
    state = rooms.state(code, parts=False)
    if state is None:
        return None
    seats = rooms.seats(code, dict.fromkeys(one.owner for one in sent))
    given = rooms.parts_of(code, state.scene, seats.values())
    tasks = {language: _task(state, language) for language in {one.language for one in sent}}
    taken, refused = dict[int, tuple[int, int, Any]](), dict[int, Exception]()
    for place, one in enumerate(sent):
        phone = phone_in(state, seats[one.owner])
        try:
            if kept := _taken(state, tasks[one.language], one, phone, len(given[phone.seat])):
                taken[place] = kept
        except (RoomError, BadPartError, CannotAskError) as error:
            refused[place] = error
    if taken:
        try:
            rooms.give(code, state.scene, taken.values())
        except RoomError as error:  # the lecturer went on
            refused |= dict.fromkeys(taken, error)
        given |= rooms.parts_of(code, state.scene, {seat for seat, _, _ in taken.values()})
    return [
        refused.get(place) or _part(state, tasks[one.language], seats[one.owner], given)
        for place, one in enumerate(sent)
    ]


def _task(state: RoomState, language: str) -> Task[Any] | CannotAskError | None:
    try:
        return task_in(state, language=language) if rounds_in(state) and ready(state) else None
    except CannotAskError as error:
        return error


def _taken(
    state: RoomState, task: Task[Any] | CannotAskError | None, one: Sent, phone: Phone, done: int
) -> tuple[int, int, Any] | None:
    """Return what is kept of what a phone sent: its seat, the round and what it gave; None where that is nothing new.

    Args:
        done: rounds in which it gave something.

    Raises:
        RoomError: the scene is another one.
        BadPartError: it is nothing that its part takes.
        CannotAskError: what is exact cannot be computed, or is being computed.
    """
    if one.scene != state.scene or not rounds_in(state):
        raise RoomError("room.late")
    if not one.gives:
        return None
    number = whole_number(one.round, rounds_in(state) - 1)
    if number is None or number > done:
        raise BadPartError("there is no such round, or one before it was left out")
    if number < done:
        return None
    if not isinstance(task, Task):
        raise task or CannotAskError("what is exact is being computed")
    return phone.seat, number, OF_KIND[task.each.kind].take(task, phone, number, one.said)


def _part(
    state: RoomState, task: Task[Any] | CannotAskError | None, seat: int, given: Mapping[int, Sequence[Any]]
) -> Body:
    if isinstance(task, Task):
        found = part_of(task, phone_in(state, seat), given[seat])
    else:
        found = {"pending": True} if task is None else {"error": str(task)}
    return {"scene": state.scene, **found}
