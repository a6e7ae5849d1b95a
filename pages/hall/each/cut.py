"""Cut: every phone takes away one head, word, layer, or bits, foretells the answer, and then sees it measured."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pages.hall.each.frame import (
    Body,
    Given,
    Kind,
    Phone,
    Picture,
    Row,
    Task,
    bars,
    bundle_of,
    known,
    prompt_of,
    random_of,
    share_of,
)
from pages.hall.each.written import Each
from transformer_core.analysis.classroom.cuts import STEPS, Cuts, cuts, step_of
from transformer_core.shares import interval

POINTS = 100


class Cut(Kind[Cuts]):
    """What is kept is the foretold probability; which cut a phone has follows from its seat."""

    heavy = True

    def question(self, each: Each, state: Mapping[str, str]) -> tuple[Callable[..., Cuts], Body]:
        """Return all cuts, each measured alone."""
        return cuts, {"prompt": prompt_of(bundle_of(each, state), state["text"]), "of": each["of"]}

    def part(self, task: Task[Cuts], phone: Phone, given: Sequence[Any]) -> Body:
        """Return the cut, and once it is foretold what was measured."""
        found, place = task.exact, _place(task.exact, phone)
        now = task.say("model_says", answer=task.called(found.answer), share=f"{found.before:.1%}")
        results = []
        if given:
            values = {
                "said": f"{given[0]:.0%}",
                "measured": f"{found.after[place]:.1%}",
                "change": f"{POINTS * found.change[place]:+.1f}",
            }
            right = step_of(np.array([given[0] - found.before]))[0] == found.steps[place]
            results = [task.say("cut_measured", **values), task.say("cut_right" if right else "cut_wrong")]
        asked = {
            "type": "number",
            "label": task.say("do_cut", answer=task.called(found.answer)),
            "first": round(found.before, 2),
            "send": task.say("send"),
        }
        return {"lines": [_name(task, place), found.text, now], "results": results, "ask": None if given else asked}

    def take(self, task: Task[Cuts], phone: Phone, place: int, said: Any) -> float:
        """Return the foretold probability."""
        return share_of(said)

    def other(self, task: Task[Cuts], phone: Phone) -> list[float]:
        """Return what was measured of a cut drawn at random."""
        return [float(random_of(phone).choice(task.exact.after))]

    def picture(self, task: Task[Cuts], given: Sequence[Given]) -> Picture:
        """Return the board of what the class foretold, and once it is measured that of what came."""
        found = task.exact
        places = np.array([_place(found, one.phone) for one in given], dtype=np.int64)
        told = np.array([one.said for one in given]) - found.before
        counts = np.bincount(places, minlength=len(found.names))
        means = np.bincount(places, weights=told, minlength=len(found.names)) / np.where(counts, counts, np.nan)
        change = found.change if task.measured else np.full(len(means), np.nan)
        table = [
            Row(
                _name(task, place),
                int(counts[place]),
                known(POINTS * means[place]),
                known(POINTS * found.change[place]),
                "points",
            )
            for place in range(len(means))
        ]
        names = [task.say("foretold"), task.say("measured")]
        if found.of == "head":
            figures = [_board(task, names[0], means, counts)]
            figures += [_board(task, names[1], change, None)] if task.measured else []
        else:
            rows = [
                {
                    "label": _name(task, place),
                    "values": [known(POINTS * means[place]), known(POINTS * change[place])],
                    "n": int(counts[place]),
                }
                for place in range(len(means))
            ]
            figures = [
                bars(
                    task.say("title_cut", answer=task.called(found.answer)),
                    "points",
                    names,
                    rows,
                    least=-POINTS,
                    most=POINTS,
                )
            ]
        return task.picture(figures, _said(task, told, places), table, given)


def _place(found: Cuts, phone: Phone) -> int:
    """Return which cut a phone has: the seats take them in an order that is shuffled once a scene."""
    return int(_order(len(found.names))[phone.seat % len(found.names)])


@lru_cache(maxsize=64)
def _order(count: int) -> np.ndarray:
    return np.random.default_rng(count).permutation(count)


def _name(task: Task[Cuts], place: int) -> str:
    name = task.exact.names[place]
    if task.exact.of == "head":
        layer, head = name.split()
        return task.say("a_head", layer=layer, head=head)
    return task.say(f"a_{task.exact.of}", name=name)


def _board(task: Task[Cuts], name: str, change: np.ndarray, counts: np.ndarray | None) -> Body:
    columns = task.exact.columns
    rows = len(change) // columns
    cells = [[known(POINTS * value) for value in line] for line in change.reshape(rows, columns)]
    n = [] if counts is None else counts.reshape(rows, columns).tolist()
    titles = {
        "title": f"{task.say('title_cut', answer=task.called(task.exact.answer))}: {name}",
        "row": task.say("layer"),
        "column": task.say("head"),
    }
    return {
        "form": "board",
        "unit": "points",
        "cells": cells,
        "counts": n,
        "most": known(POINTS * max(0.01, np.abs(task.exact.change).max())),
        **titles,
    }


def _said(task: Task[Cuts], told: np.ndarray, places: np.ndarray) -> list[str]:
    found = task.exact
    seen = task.say("cuts_seen", n=len(told), seen=len(set(places.tolist())), count=len(found.names))
    if not task.measured or not len(told):
        return [seen]
    right = float((step_of(told) == found.steps[places]).mean())
    low, high = interval(right, len(told))
    still = float((np.abs(found.change[places]) < STEPS[-2]).mean())
    key = "class_knew" if low > still else "stays_knew" if high < still else "as_stays"
    error = POINTS * np.abs(told - found.change[places]).mean()
    of_none = POINTS * np.abs(found.change[places]).mean()
    return [
        seen,
        task.say(
            "cut_scored", right=f"{right:.0%}", low=f"{low:.0%}", high=f"{high:.0%}", n=len(told), still=f"{still:.0%}"
        ),
        task.say(key),
        task.say("cut_error", error=f"{error:.1f}", none=f"{of_none:.1f}"),
    ]
