"""Start, pressed often and by many at once: what is refused leaves nothing, and what waits outlives the server."""

import threading
from pathlib import Path

import pytest

from pages.ui import runs
from tests.helpers.tiny_runs import SPEC
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.queue import slots
from transformer_core.training.runs.queue.launcher import Launcher
from transformer_core.training.runs.run_list import Bounds, RunList


class _Queueing(Launcher):
    """A launcher that puts runs into the queue and starts no worker, as where every slot is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_at: list[Path] = []

    def look(self, root: Path) -> dict[str, RunError]:
        self.looked_at.append(root)
        return {}


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _Queueing:
    made = _Queueing()
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    monkeypatch.setattr(runs, "_launcher", lambda: made)
    return made


def _pressed(times: int, *, at_once: bool) -> list[str]:
    """Press Start so many times, and return the words of the refusals."""
    refused: list[str] = []

    def press() -> None:
        try:
            runs.begin_run(SPEC)
        except RunError as error:
            refused.append(str(error))

    presses = [threading.Thread(target=press) for _ in range(times)]
    for one in presses:
        one.start()
        if not at_once:
            one.join()
    for one in presses:
        one.join()
    return refused


@pytest.mark.parametrize("at_once", [False, True])
def test_of_forty_presses_as_many_count_as_a_person_may_have_and_the_others_leave_nothing(
    at_once: bool, launcher: _Queueing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runs, "bounds", lambda: Bounds(live=3))
    refused = _pressed(40, at_once=at_once)
    assert refused == ["3 of your runs compute or wait, and no more may; stop one, or come back later"] * 37
    assert len(RunList(tmp_path).all()) == len(slots.Queue(tmp_path).runs()) == 3


def test_a_full_queue_refuses_and_leaves_nothing_and_nothing_older_goes(
    launcher: _Queueing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(slots, "MOST_QUEUED", 2)
    monkeypatch.setenv(slots.MOST_RUNS, "1")
    monkeypatch.setattr(runs, "bounds", lambda: Bounds(runs=4, live=100))
    older = RunList(tmp_path).create(SPEC)
    refused = _pressed(40, at_once=False)
    assert refused == ["3 runs wait already, and no more may; stop one, or come back later"] * 37
    found = {store.id for store in RunList(tmp_path).all()}
    assert found == {older.id, *slots.Queue(tmp_path).runs()}


def test_a_server_that_begins_looks_for_what_waits_and_one_for_looking_does_not(
    launcher: _Queueing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs.start_waiting()
    assert launcher.looked_at == [tmp_path]
    monkeypatch.setenv("VITRINE_READ_ONLY", "1")
    runs.start_waiting()
    assert launcher.looked_at == [tmp_path]
