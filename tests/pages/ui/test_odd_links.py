"""Whatever a link says by any name that a page reads, the page stands: odd values are refused in words or let be."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.runtime.state import QueryParamsProxy
from streamlit.testing.v1 import AppTest

from tests.helpers.made_runs import SPECS, made_run
from tests.helpers.pages import ALL_SCREENS, named, run
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.folder import DATABASE, SPEC
from transformer_core.training.runs.store.records import State

ODD = ("9" * 400, "-1", "nan", "inf", "1e400", "", "true", "😀", ["1", "2"])


class Names(set[str]):
    """The names that pages look up in their links, and those of boxes among them."""

    @property
    def boxes(self) -> dict[str, str]:
        """All boxes open."""
        return dict.fromkeys((name for name in self if name.endswith("_open")), "true")


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Note the names that pages look up."""
    names, look = Names(), QueryParamsProxy.__getitem__

    def note(proxy: QueryParamsProxy, name: str) -> str:
        names.add(name)
        return look(proxy, name)

    monkeypatch.setattr(QueryParamsProxy, "__getitem__", note)
    return names


def odd_visits(looked_up: Names, page: str, fixed: dict[str, str]) -> Iterator[tuple[object, AppTest]]:
    """Open a page with each odd value for all that it looks up in its link, its boxes open."""
    run(page, **fixed)
    run(page, **looked_up.boxes, **fixed)
    for odd in ODD:
        names = looked_up - fixed.keys() - looked_up.boxes.keys()
        yield odd, run(page, **dict.fromkeys(names, odd), **looked_up.boxes, **fixed)
    yield "odd boxes", run(page, **dict.fromkeys(looked_up.boxes, ODD[0]), **fixed)


@pytest.mark.parametrize(("page", "part"), ALL_SCREENS)
def test_no_odd_value_in_a_link_makes_a_page_fail(looked_up: Names, page: str, part: str) -> None:
    for odd, app in odd_visits(looked_up, page, named(page, part)):
        assert not app.exception, odd
    assert "lang" in looked_up


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of runs of every state: finished ones of every kind, unfinished ones, one not yet begun."""
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    states: tuple[State, ...] = ("stopped", "failed", "queued", "running", "paused")
    made = [made_run(tmp_path, spec) for spec in SPECS.values()]
    made += [made_run(tmp_path, state=state, message="out of memory") for state in states]
    made.append(RunList(tmp_path).create(SPECS["classifier"]))
    return [run.id for run in made]


def broken(root: Path) -> None:
    """Leave runs of which nobody can read one file or the other."""
    for damage in (SPEC, DATABASE):
        (made_run(root).folder / damage).write_bytes(b"damaged" * 100)


@pytest.mark.parametrize("page", ["train", "compare"])
def test_no_odd_value_makes_a_page_of_runs_fail(looked_up: Names, page: str, runs: list[str], tmp_path: Path) -> None:
    broken(tmp_path)
    for odd, app in odd_visits(looked_up, page, {"run": runs[0], "other": runs[4]}):
        assert not app.exception, odd
    for odd in ODD:
        assert not run(page, run=odd, other=odd).exception, odd


@pytest.mark.parametrize("page", ["train", "compare"])
def test_a_run_of_any_state_is_shown_among_broken_ones(page: str, runs: list[str], tmp_path: Path) -> None:
    broken(tmp_path)
    for first, other in zip(runs, [*runs[1:], runs[0]], strict=True):
        app = run(page, run=first, other=other, runs_open="true", same_but_open="true", try_open="true")
        assert not app.exception, (first, other)


@pytest.mark.parametrize("page", ["train", "compare"])
def test_no_run_but_broken_ones_leaves_a_page_that_stands(page: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    for _ in range(2):  # without any run, then with broken ones alone
        app = run(page, runs_open="true")
        assert not app.exception
        broken(tmp_path)
