"""Train: every phone is a seed or a setting of a small run, and foretells how well it will do."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pages.hall.each.frame import Body, Given, Kind, Phone, Picture, Row, Task, bars, known, random_of, share_of
from pages.hall.each.written import Each
from pages.kit.heavy import InParts, Part, Work
from transformer_core.analysis.classroom.small_runs import WINDOW, SmallRun, settings_of, small_run

SECONDS_OF_A_RUN = 60.0


@InParts
def small_runs(*, vary: str, runs: int, language: str) -> Work[tuple[SmallRun, ...]]:
    """Train so many small classifiers, one after another; each is measured on the same held-out reviews.

    Args:
        vary, language: as of small_run; runs: how many.

    Raises:
        ValueError: as settings_of and small_run.
    """
    settings, found = settings_of(vary, runs), []  # type: ignore[arg-type]
    for done, setting in enumerate(settings):
        asked = {"vary": vary, "setting": setting, "language": language}
        found.append((yield Part(small_run, asked, done, len(settings), SECONDS_OF_A_RUN)))
    return tuple(found)


class Train(Kind[tuple[SmallRun, ...]]):
    """What is kept is the foretold accuracy; which run a phone is follows from its seat."""

    heavy = True

    def question(self, each: Each, state: Mapping[str, str]) -> tuple[Callable[..., Any], Body]:
        """Return all runs."""
        return small_runs, {"vary": each["vary"], "runs": int(each["runs"]), "language": each["language"]}

    def part(self, task: Task[tuple[SmallRun, ...]], phone: Phone, given: Sequence[Any]) -> Body:
        """Return the run's setting, and once its accuracy is foretold what it reached."""
        run = task.exact[phone.seat % len(task.exact)]
        results = []
        if given:
            values = {
                "said": f"{given[0]:.0%}",
                "measured": f"{run.accuracy:.1%}",
                "low": f"{run.low:.1%}",
                "high": f"{run.high:.1%}",
            }
            results = [task.say("run_measured", n=run.held_out, **values)]
        asked = {
            "type": "number",
            "label": task.say("do_train"),
            "first": round(run.guessing, 2),
            "send": task.say("send"),
        }
        lines = [_name(task, run), task.say("guessing", share=f"{run.guessing:.0%}")]
        return {"lines": lines, "results": results, "ask": None if given else asked}

    def take(self, task: Task[tuple[SmallRun, ...]], phone: Phone, place: int, said: Any) -> float:
        """Return the foretold accuracy."""
        return share_of(said)

    def other(self, task: Task[tuple[SmallRun, ...]], phone: Phone) -> list[float]:
        """Return what a run drawn at random reached."""
        return [float(random_of(phone).choice([run.accuracy for run in task.exact]))]

    def picture(self, task: Task[tuple[SmallRun, ...]], given: Sequence[Given]) -> Picture:
        """Return what the class foretold of each run, and once it is measured all curves and what they reached."""
        runs = task.exact
        rows, table = [], []
        for place, run in enumerate(runs):
            said = [one.said for one in given if one.phone.seat % len(runs) == place]
            mean = float(np.mean(said)) if said else float("nan")
            exact = known(run.accuracy) if task.measured else None
            rows.append({"label": _name(task, run), "values": [known(mean), exact], "n": len(said)})
            table.append(Row(_name(task, run), len(said), known(mean), known(run.accuracy), "share"))
        names = [task.say("foretold"), task.say("measured")]
        figures = [bars(task.say("title_train"), "share", names, rows, most=1.0)]
        if task.measured:
            steps = [WINDOW * (point + 0.5) for point in range(len(runs[0].losses))]
            lines = [{"label": _name(task, run), "values": [known(value) for value in run.losses]} for run in runs]
            titles = {"title": task.say("title_curves"), "x": task.say("step"), "y": task.say("loss")}
            figures.insert(0, {"form": "curves", "steps": steps, "lines": lines, **titles})
        return task.picture(figures, _said(task, given), table, given)


def _name(task: Task[tuple[SmallRun, ...]], run: SmallRun) -> str:
    return task.say(f"run_{task.each['vary']}", setting=f"{run.setting:g}")


def _said(task: Task[tuple[SmallRun, ...]], given: Sequence[Given]) -> list[str]:
    runs = task.exact
    said = [task.say("runs_in", n=len(given), runs=len(runs))]
    if not task.measured:
        return said
    reached = np.array([run.accuracy for run in runs])
    values = {
        "least": f"{reached.min():.1%}",
        "most": f"{reached.max():.1%}",
        "mean": f"{reached.mean():.1%}",
        "spread": f"{100 * reached.std(ddof=1):.1f}",
    }
    said.append(task.say("spread", runs=len(runs), held_out=runs[0].held_out, **values))
    sampled = 100 * float(np.sqrt((reached * (1 - reached)).mean() / runs[0].held_out))
    said.append(task.say("sampled", sampled=f"{sampled:.1f}", held_out=runs[0].held_out))
    if given:
        error = 100 * np.mean([abs(one.said - runs[one.phone.seat % len(runs)].accuracy) for one in given])
        said.append(task.say("run_error", error=f"{error:.1f}", n=len(given)))
    return said
