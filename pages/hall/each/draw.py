"""Draw: every phone draws the next token from the model's own distribution, with its own random numbers."""

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
    Slider,
    Task,
    bars,
    bundle_of,
    known,
    prompt_of,
    random_of,
)
from pages.hall.each.written import COOLEST, Each
from transformer_core.analysis.classroom.draws import HOTTEST, Forecast, distance, forecast
from transformer_core.shares import interval

TOP = 10
STEP = 0.1  # of the temperature


class Draw(Kind[Forecast]):
    """What is kept of a draw is its number; which token that is depends on the temperature."""

    def question(self, each: Each, state: Mapping[str, str]) -> tuple[Callable[..., Forecast], Body]:
        """Return the forecast of the screen's text."""
        return forecast, {"prompt": prompt_of(bundle_of(each, state), state["text"])}

    def rounds(self, each: Each) -> int:
        """Return how many draws a phone has."""
        return int(each["draws"])

    def slider(self, each: Each) -> Slider:
        """Return the temperature."""
        return Slider("temperature", COOLEST, HOTTEST, STEP, float(each["temperature"]))

    def part(self, task: Task[Forecast], phone: Phone, given: Sequence[Any]) -> Body:
        """Return the seed, and each number drawn with the token that it falls on."""
        found = task.exact.drawn(np.array(given), _temperature(task)) if given else np.zeros(0, np.int64)
        shares = task.exact.shares(_temperature(task))
        labels = task.exact.labels(found)
        results = [
            task.say("drew", number=f"{number:.4f}", token=label, share=f"{shares[place]:.1%}")
            for number, label, place in zip(given, labels, found, strict=True)
        ]
        asked = {"type": "tap", "label": task.say("do_draw")}
        lines = [
            task.exact.prompt.text + " …",
            task.say("seed", seed=phone.seed),
            task.say("at", temperature=f"{_temperature(task):.1f}"),
        ]
        return {"lines": lines, "results": results, "ask": asked if len(given) < self.rounds(task.each) else None}

    def take(self, task: Task[Forecast], phone: Phone, place: int, said: Any) -> float:
        """Return the phone's random number of this round; nothing that it sends changes that."""
        return float(random_of(phone).random(self.rounds(task.each))[place])

    def other(self, task: Task[Forecast], phone: Phone) -> list[float]:
        """Return draws."""
        return random_of(phone).random(self.rounds(task.each)).tolist()

    def picture(self, task: Task[Forecast], given: Sequence[Given]) -> Picture:
        """Return the histogram of all draws beside the softmax."""
        shares = task.exact.shares(_temperature(task))
        found = (
            task.exact.drawn(np.array([one.said for one in given]), _temperature(task))
            if given
            else np.zeros(0, np.int64)
        )
        order = np.argsort(-shares, kind="stable")[:TOP]
        n, counts = len(found), np.bincount(found, minlength=len(shares))
        named = [f"“{label}”" for label in task.exact.labels(order)]
        exact = [*shares[order].tolist(), max(0.0, float(1 - shares[order].sum()))]
        drawn = [*counts[order].tolist(), int(n - counts[order].sum())]
        rows, table = [], []
        for label, count, share in zip(
            [*named, task.say("others", count=f"{len(shares) - len(order):,}")], drawn, exact, strict=True
        ):
            low, high = interval(count / n, n) if n else (float("nan"), float("nan"))
            own = count / n if n else float("nan")
            rows.append(
                {
                    "label": label,
                    "values": [known(own), known(share)],
                    "low": known(low),
                    "high": known(high),
                    "n": count,
                }
            )
            table.append(Row(label, count, known(own), known(share), "share"))
        names = [task.say("of_class"), task.say("softmax")]
        figure = bars(task.say("title_draw", temperature=f"{_temperature(task):.1f}"), "share", names, rows, most=1.0)
        return task.picture([figure], _said(task, np.array(exact), np.array(drawn)), table, given)


def _temperature(task: Task[Forecast]) -> float:
    return float(task.each["temperature"]) if task.setting is None else task.setting


def _said(task: Task[Forecast], shares: np.ndarray, counts: np.ndarray) -> list[str]:
    if not counts.sum():
        return [task.say("none_drawn")]
    apart, chance, most = distance(shares / shares.sum(), counts)
    values = {"n": int(counts.sum()), "apart": f"{apart:.3f}", "chance": f"{chance:.3f}", "most": f"{most:.3f}"}
    return [task.say("drawn", **values), task.say("as_chance" if apart <= most else "beyond_chance")]
