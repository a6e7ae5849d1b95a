"""The sign of the run that is under way: what the server answers, how seldom it looks, and where a click leads."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pages.ui import underway
from pages.ui.underway import underway_routes
from tests.helpers.made_runs import held, made_run
from tests.helpers.pages import run
from transformer_core.training.runs.run_list import RunList

ADDRESS = "/runs/underway"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TestClient:
    """Return a client of the route alone, which looks anew at every question."""
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    monkeypatch.setattr(underway, "SECONDS_FRESH", 0.0)
    return TestClient(Starlette(routes=underway_routes()))


def test_nothing_under_way_is_an_empty_list(client: TestClient, tmp_path: Path) -> None:
    made_run(tmp_path)
    assert client.get(ADDRESS).json() == {"live": [], "ended": None}


def test_a_run_with_a_worker_is_told_and_its_end_to_whoever_followed_it(client: TestClient, tmp_path: Path) -> None:
    store = made_run(tmp_path, state="running")
    lock = held(store)
    answer = client.get(f"{ADDRESS}?was={store.id}")
    assert answer.headers["cache-control"] == "no-store"
    (told,) = answer.json()["live"]
    assert (told["id"], told["name"], told["state"], told["step"], told["total"]) == (
        *(store.id, store.spec.name, "running"),
        *(12, 12),
    )
    assert answer.json()["ended"] is None
    lock.release()
    answer = client.get(f"{ADDRESS}?was={store.id}").json()
    assert answer["live"] == []
    assert (answer["ended"]["id"], answer["ended"]["state"], answer["ended"]["ended"]) == (
        store.id,
        "interrupted",
        True,
    )


@pytest.mark.parametrize("was", ["", "nosuchrun1", "../../etc", "\u202e", "x" * 9_000])
def test_a_run_that_is_not_there_is_nothing(client: TestClient, was: str) -> None:
    assert client.get(ADDRESS, params={"was": was}).json() == {"live": [], "ended": None}


def test_the_disk_is_looked_at_once_a_second_however_many_ask(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(underway, "SECONDS_FRESH", 60.0)
    monkeypatch.setattr(RunList, "live", lambda _: looks.append(1) or [])
    for _ in range(50):
        client.get(ADDRESS)
    assert len(looks) == 1


@pytest.mark.parametrize("page", ["home", "tokens", "train", "compare"])
def test_every_page_has_the_sign(page: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    app = run(page, lang="zh")
    assert not app.exception
    assert app.get("bidi_component")
