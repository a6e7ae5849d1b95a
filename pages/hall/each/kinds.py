"""All kinds of part, and a scene's task: what is exact is computed once for everybody and kept by pages/kit/asking.py.

A scene costs as many passes as it has distinct tasks, whatever the number of phones: one for a draw or a guess, one a
sentence to label, one a cut (at most 400), one a run (at most 24), none for a table of embeddings.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pages.hall.each.cut import Cut
from pages.hall.each.draw import Draw
from pages.hall.each.frame import Body, Given, Kind, Phone, Picture, Task
from pages.hall.each.guess import Guess
from pages.hall.each.label import Label
from pages.hall.each.train import Train
from pages.hall.each.vector import Vector
from pages.hall.each.written import KINDS, Each
from pages.kit.asking import ask_away, ask_once
from pages.language import words
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.warm_process import ProcessDiedError

OF_KIND: Mapping[str, Kind[Any]] = {
    "draw": Draw(),
    "guess": Guess(),
    "cut": Cut(),
    "label": Label(),
    "vector": Vector(),
    "train": Train(),
}
assert OF_KIND.keys() == KINDS.keys()
OTHERS = 60  # draws of the model that stand for a class where there is none
SEATS = 1_000


class CannotAskError(ValueError):
    """What is exact cannot be computed; the message says why, in words for the page."""


def task_of(
    each: Each, state: Mapping[str, str], language: str, who: str, *, stage: str, setting: float | None = None
) -> Task[Any] | None:
    """Return a scene's task, None while what is exact is being computed; called while a link is read.

    Args:
        state: of the scene's screen.
        who: waits for it, as of ask_away.
        stage: of the scene in the room; setting: of the lecturer's slider.

    Raises:
        CannotAskError: it cannot be computed.
    """
    kind = OF_KIND[each.kind]
    try:
        function, asked = kind.question(each, state)
        if not kind.heavy:
            return Task(each, ask_once(function, **asked).value, language, setting, stage)
        future = ask_away(function, who, **asked)
        if not future.done():
            return None
        return Task(each, future.result(), language, setting, stage)
    except (ValueError, BundleError) as error:
        raise CannotAskError(str(error)) from None
    except ProcessDiedError:
        raise CannotAskError(words(language)["await.died"]) from None


def phone_of(place: str, seat: int) -> Phone:
    """Return a phone by its seat.

    Args:
        place: the room and the scene, on which the seeds of all its phones depend.
    """
    return Phone(seat, _start(place) * SEATS + seat % SEATS)


@lru_cache(maxsize=256)
def _start(place: str) -> int:
    return int(hashlib.sha256(place.encode()).hexdigest()[:8], 16) % 9_000 + 1_000


def part_of(task: Task[Any], phone: Phone, given: Sequence[Any]) -> Body:
    """Return what a phone sees of its part: lines, ask, results; and which round it is at."""
    kind = OF_KIND[task.each.kind]
    return kind.part(task, phone, given) | {"round": len(given), "rounds": kind.rounds(task.each)}


def slider_of(each: Each, language: str) -> Body | None:
    """Return the lecturer's slider as the projector shows it."""
    slider = OF_KIND[each.kind].slider(each)
    if slider is None:
        return None
    numbers = {"low": slider.low, "high": slider.high, "step": slider.step, "first": slider.first}
    return numbers | {"label": words(language)[f"each.{slider.label}"].format(number="")}


def set_within(each: Each, value: object) -> float | None:
    """Return a number that the lecturer's slider can stand at, None where it cannot."""
    slider = OF_KIND[each.kind].slider(each)
    if slider is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if slider.low <= value <= slider.high else None


def alone(task: Task[Any], seat: int, sent: Sequence[Any]) -> tuple[Body, Picture]:
    """Return the part of one person without a class, and a picture in which draws of the model stand for the others.

    Args:
        task: of the scene; its stage is made "measured" once this person's part is done.
        seat: of this person; sent: what they sent so far, one a round.

    Raises:
        BadPartError: something sent is nothing that the part takes.
    """
    kind, place = OF_KIND[task.each.kind], f"alone {task.each.head} {seat}"
    phone = phone_of(place, seat)
    mine = [kind.take(task, phone, number, said) for number, said in enumerate(sent[: kind.rounds(task.each)])]
    given = [Given(phone, number, said) for number, said in enumerate(mine)]
    for other in range(OTHERS):
        one = phone_of(place, (seat + 1 + other) % SEATS)
        given += [Given(one, number, said) for number, said in enumerate(kind.other(task, one))]
    return part_of(task, phone, mine), kind.picture(task, given)
