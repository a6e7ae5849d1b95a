"""Vector: every phone places words on two axes; the class's map beside that of a table of embeddings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pages.hall.each.frame import (
    BadPartError,
    Body,
    Given,
    Kind,
    Phone,
    Picture,
    Row,
    Task,
    bundle_of,
    known,
    random_of,
    share_of,
)
from pages.hall.each.written import Each
from transformer_core.analysis.classroom.places import Places, places
from transformer_core.analysis.rank_correlation import FEWEST, agreement_word, rank_correlation

AXES = ("x", "y")


class Vector(Kind[Places]):
    """What is kept is the word's number and its place on both axes, from -1 to 1."""

    def question(self, each: Each, state: Mapping[str, str]) -> tuple[Callable[..., Places], Body]:
        """Return where the table puts the words."""
        x, y = (tuple(each[axis].split("/")) for axis in AXES)
        return places, {"bundle": bundle_of(each, state), "words": each.items, "x": x, "y": y}

    def rounds(self, each: Each) -> int:
        """Return how many words a phone places."""
        return min(int(each["words"]), len(each.items))

    def part(self, task: Task[Places], phone: Phone, given: Sequence[Any]) -> Body:
        """Return the next word and both axes, and where the table puts those that are placed."""
        here, count = len(given), self.rounds(task.each)
        results = [
            task.say(
                "placed",
                word=task.exact.words[word],
                x=f"{x:+.2f}",
                y=f"{y:+.2f}",
                at_x=f"{at[0]:+.2f}",
                at_y=f"{at[1]:+.2f}",
            )
            for word, x, y in given
            for at in [task.exact.at[word]]
        ]
        if here == count:
            return {"lines": [task.say("all_placed")], "results": results, "ask": None}
        axes = [task.each[axis].split("/") for axis in AXES]
        word = task.exact.words[_word(task, phone, here)]
        lines = [f"“{word}”", task.say("word_of", number=here + 1, count=count)]
        return {"lines": lines, "results": results, "ask": {"type": "axes", "axes": axes, "send": task.say("send")}}

    def take(self, task: Task[Places], phone: Phone, place: int, said: Any) -> list[Any]:
        """Return the word's number and its place."""
        if not isinstance(said, list) or len(said) != 2:
            raise BadPartError(f"said={said!r:.40} must be two numbers from -1 to 1")
        return [_word(task, phone, place), *(share_of(value, -1.0) for value in said)]

    def other(self, task: Task[Places], phone: Phone) -> list[list[Any]]:
        """Return, for each word, where the table puts one of its five nearest words."""
        rng, found = random_of(phone), []
        for place in range(self.rounds(task.each)):
            word = _word(task, phone, place)
            at = np.clip(task.exact.near[word, rng.integers(task.exact.near.shape[1])], -1, 1)
            found.append([word, *at.tolist()])
        return found

    def picture(self, task: Task[Places], given: Sequence[Given]) -> Picture:
        """Return the map of the class's means, and once it is measured the table's places."""
        found = task.exact
        said = np.array([one.said for one in given], dtype=np.float64).reshape(-1, 3)
        points, table, means = [], [], np.full(found.at.shape, np.nan)
        for word, label in enumerate(found.words):
            here = said[said[:, 0] == word, 1:]
            if len(here):
                means[word] = here.mean(0)
            exact = [known(value) for value in found.at[word]] if task.measured else None
            own = [known(value) for value in means[word]] if len(here) else None
            points.append({"label": label, "own": own, "exact": exact, "n": len(here)})
            for axis, name in enumerate(AXES):
                ends = task.each[name]
                table.append(
                    Row(f"{label}, {ends}", len(here), known(means[word, axis]), known(found.at[word, axis]), "axis")
                )
        axes = [task.each[axis].split("/") for axis in AXES]
        names = [task.say("of_class"), task.say("of_table")]
        figure = {"form": "map", "title": task.say("title_vector"), "axes": axes, "names": names, "points": points}
        return task.picture([figure], self._said(task, means, len(given)), table, given)

    def _said(self, task: Task[Places], means: np.ndarray, n: int) -> list[str]:
        said = [task.say("places_in", n=n)]
        there = ~np.isnan(means[:, 0])
        if not task.measured or there.sum() < FEWEST:
            return said
        for axis, name in enumerate(AXES):
            rho = rank_correlation(means[there, axis], task.exact.at[there, axis])
            if not np.isnan(rho.rho):
                word = agreement_word(rho.rho)
                said.append(
                    task.say(
                        f"axis_{word}",
                        axis=task.each[name],
                        rho=f"{rho.rho:.2f}",
                        n=rho.count,
                        chance=f"{rho.chance:.1%}",
                    )
                )
        return said


def _word(task: Task[Places], phone: Phone, place: int) -> int:
    """Return the number of a phone's word: the seats go round the words, so that all are placed as often."""
    return (phone.seat * min(int(task.each["words"]), len(task.each.items)) + place) % len(task.each.items)
