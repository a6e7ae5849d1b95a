"""Label: every phone labels the same sentences; how far people agree, and the model beside them."""

from collections.abc import Callable, Mapping, Sequence
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
    choice_in,
    known,
    random_of,
)
from pages.hall.each.written import Each
from transformer_core.analysis.classroom.agreement import Judged, ceiling, cohen_kappa, fleiss_kappa, judged, mean_cohen
from transformer_core.shares import interval

MOST_PAIRED = 40  # people whose pairs are compared one by one
FEWEST_PEOPLE = 5  # with fewer, nothing is said of who agrees more


class Label(Kind[Judged]):
    """What is kept is the sentence's number and the label; phones get the sentences in an order of their own."""

    def question(self, each: Each, state: Mapping[str, str]) -> tuple[Callable[..., Judged], Body]:
        """Return what the model says of each sentence."""
        return judged, {"bundle": bundle_of(each, state), "texts": each.items}

    def rounds(self, each: Each) -> int:
        """Return how many sentences there are."""
        return len(each.items)

    def part(self, task: Task[Judged], phone: Phone, given: Sequence[Any]) -> Body:
        """Return the next sentence and its labels."""
        here, count = len(given), self.rounds(task.each)
        if here == count:
            same = sum(label == _of_model(task.exact)[place] for place, label in given)
            return {
                "lines": [task.say("labelled")],
                "results": [task.say("same_as_model", same=same, n=count)],
                "ask": None,
            }
        options = [[label, task.called(label)] for label in task.exact.labels]
        place = task.say("sentence_of", number=here + 1, count=count)
        return {
            "lines": [task.exact.texts[_order(phone, count)[here]], place],
            "results": [],
            "ask": {"type": "options", "options": options},
        }

    def take(self, task: Task[Judged], phone: Phone, place: int, said: Any) -> list[int]:
        """Return the sentence's number and the label's."""
        label = task.exact.labels.index(choice_in(said, task.exact.labels))
        return [int(_order(phone, self.rounds(task.each))[place]), label]

    def other(self, task: Task[Judged], phone: Phone) -> list[list[int]]:
        """Return labels drawn with the model's probabilities."""
        rng = random_of(phone)
        order = _order(phone, self.rounds(task.each))
        return [
            [int(place), int(rng.choice(len(row), p=row / row.sum()))]
            for place in order
            for row in [task.exact.probabilities[place]]
        ]

    def picture(self, task: Task[Judged], given: Sequence[Given]) -> Picture:
        """Return each sentence's share of the last label, and once it is measured the model's probability of it."""
        found = task.exact
        counts = np.zeros((len(found.texts), len(found.labels)), np.int64)
        for one in given:
            counts[one.said[0], one.said[1]] += 1
        rows, table = [], []
        for place, (text, of_text) in enumerate(zip(found.texts, counts, strict=True)):
            n = int(of_text.sum())
            share = of_text[-1] / n if n else float("nan")
            low, high = interval(share, n) if n else (float("nan"), float("nan"))
            exact = found.probabilities[place, -1]
            shown = known(exact) if task.measured else None
            rows.append(
                {"label": text, "values": [known(share), shown], "low": known(low), "high": known(high), "n": n}
            )
            table.append(Row(text, n, known(share), known(exact), "share"))
        label = task.called(found.labels[-1])
        names = [task.say("of_class"), task.say("of_model")]
        figure = bars(task.say("title_label", label=label), "share", names, rows, most=1.0)
        return task.picture([figure], _said(task, given, counts), table, given)


def _order(phone: Phone, count: int) -> np.ndarray:
    return random_of(phone).permutation(count)


def _of_model(found: Judged) -> np.ndarray:
    return found.probabilities.argmax(1)


def _said(task: Task[Judged], given: Sequence[Given], counts: np.ndarray) -> list[str]:
    seats = {phone: place for place, phone in enumerate(dict.fromkeys(one.phone for one in given))}
    labels = np.full((len(seats), len(counts)), -1)
    for one in given:
        labels[seats[one.phone], one.said[0]] = one.said[1]
    twice = int((counts.sum(1) >= 2).sum())
    if not task.open or not twice:
        return [task.say("labels_in", n=len(given), people=len(seats))]
    kappa, pairs = fleiss_kappa(counts), mean_cohen(labels[:MOST_PAIRED])
    said = [task.say("fleiss", kappa=_two(kappa), people=len(seats), n=twice)]
    said.append(task.say("cohen", kappa=_two(pairs), people=min(len(seats), MOST_PAIRED)))
    said.append(task.say("ceiling", share=f"{ceiling(counts):.0%}", n=int(counts.sum())))
    if task.measured:
        model = _of_model(task.exact)
        alike = float(counts[np.arange(len(counts)), model].sum() / counts.sum())
        low, high = interval(alike, int(counts.sum()))
        own = np.array([value for one in labels[:MOST_PAIRED] if not np.isnan(value := cohen_kappa(one, model))])
        mean = float(own.mean()) if len(own) else float("nan")
        said.append(
            task.say(
                "model_alike",
                share=f"{alike:.0%}",
                low=f"{low:.0%}",
                high=f"{high:.0%}",
                n=int(counts.sum()),
                kappa=_two(mean),
            )
        )
        if len(seats) >= FEWEST_PEOPLE and not np.isnan(mean - pairs):
            said.append(task.say("model_as_people" if mean >= pairs else "model_below_people"))
    return said


def _two(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"
