"""What the server answers the film with: bytes of runs and of a text in them, words where there are none."""

import asyncio
import json
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from streamlit.testing.v1 import AppTest

from pages.film import reading as film_reading
from pages.film.mount import FilmAsk, _asked, film_routes
from pages.language import words
from tests.helpers import PATIENCE
from tests.helpers.made_runs import FRAMES, POINTS, STEPS, held, made_run
from tests.helpers.pages import finished
from tests.pages.film.test_figures import read
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.run_store import RunStore


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    monkeypatch.setattr(film_reading, "SECONDS_FRESH", 0.0)
    return tmp_path


def get(path: str, **query: object) -> tuple[int, dict[str, str], bytes]:
    """Ask the routes as a browser would; return status, headers and body."""
    sent: list[dict] = []

    async def receive() -> dict:
        await asyncio.sleep(0 if not sent else 60)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": urlencode(query).encode()}
    answering = Starlette(routes=film_routes())(scope | {"app": None}, receive, send)
    finished(answering)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])


def film_of(store: RunStore, **query: object) -> dict:
    status, headers, body = get(f"/film/{store.id}", **query)
    assert (status, headers["cache-control"]) == (200, "no-store")
    return read(body)


def test_a_whole_run_is_answered(root: Path):
    store = made_run(root)
    film = film_of(store)
    assert (film["run"]["state"], film["run"]["name"]) == ("finished", store.spec.name)
    assert film["steps"]["step"].tolist() == list(range(1, STEPS + 1))
    assert [frame["number"] for frame in film["frames"]] == list(range(FRAMES))
    assert film["baselines"] == {"majority": 0.5, "bag_of_words": 0.8}
    assert len(film["points"]["texts"]) == POINTS
    assert film["run"]["apart"]["count"] == sum(film["points"]["held_out"])
    assert film["frames"][1]["layouts"]["pca"]["xy"].shape == (POINTS, 2)
    assert film["frames"][1]["predicted"].shape == film["frames"][1]["certainty"].shape == (POINTS,)


def test_a_run_that_grows_is_read_on_and_only_what_is_new_is_answered(root: Path):
    store = made_run(root, state="running")
    lock = held(store)
    assert film_of(store)["run"]["state"] == "running"
    writer = RunWriter(store.folder)
    writer.add_steps([(STEPS + 1, 0.01, 1e-3, 0.5, 2.0)], 1.1, 3.0)
    film = film_of(store, after=FRAMES - 2, after_step=STEPS)
    assert film["steps"]["step"].tolist() == [STEPS + 1]
    assert [frame["number"] for frame in film["frames"]] == [FRAMES - 1]
    assert film["run"]["seconds_left"] == 3
    writer.forget_progress()  # the run begins anew
    assert film_of(store)["frames"] == []
    writer.close()
    lock.release()
    assert film_of(store)["run"]["state"] == "interrupted"


def test_many_viewers_cost_one_reading(root: Path, monkeypatch: pytest.MonkeyPatch):
    store = made_run(root)
    monkeypatch.setattr(film_reading, "SECONDS_FRESH", 60.0)
    asked = []
    before = RunStore.status
    monkeypatch.setattr(RunStore, "status", lambda self: asked.append(1) or before(self))
    bodies = {get(f"/film/{store.id}")[2] for _ in range(20)}
    assert len(bodies) == len(asked) == 1


def test_a_text_is_followed_through_a_run(root: Path):
    store = made_run(root)
    status, _, body = get(f"/film/{store.id}/followed_text", text="a dull film", after=-1)
    assert status == 200
    followed_text = read(body)
    assert [frame["number"] for frame in followed_text["frames"]] == list(range(FRAMES))
    weights = followed_text["frames"][0]["attention"].astype(float) / 255
    assert weights.shape[2:] == (len(followed_text["tokens"]), len(followed_text["key_tokens"]))
    assert abs(weights.sum(-1) - 1).max() < 0.02
    assert sum(followed_text["frames"][0]["probabilities"]) == pytest.approx(1)
    rest = read(get(f"/film/{store.id}/followed_text", text="a dull film", after=1)[2])
    assert [frame["number"] for frame in rest["frames"]] == [2, 3]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_cannot_be_answered_is_said_in_the_readers_language(root: Path, language: str):
    store = made_run(root)
    said = words(language)
    for run in ("nosuchrun", "..%2f..", "UPPER123", "a"):
        status, _, body = get(f"/film/{run}", lang=language)
        assert status == 404
        assert json.loads(body)["error"] == said["film_error.unknown"].format(id=run)
    status, _, body = get(f"/film/{store.id}/followed_text", text="  ", lang=language)
    assert status == 422
    assert "text is empty" in json.loads(body)["error"]
    (store.folder / "run.sqlite").write_bytes(b"damaged" * 1000)
    status, _, body = get(f"/film/{store.id}", lang=language)
    assert status == 500
    assert json.loads(body)["error"] == said["film_error.failed"].format(
        error=f"run {store.id} cannot be read: the run's database is damaged"
    )


def test_a_deleted_run_is_gone(root: Path):
    store = made_run(root)
    film_of(store)
    RunList(root).delete(store.id)
    assert get(f"/film/{store.id}")[0] == 404


def test_a_failure_that_nobody_foresaw_is_words_and_no_trace(root: Path, monkeypatch: pytest.MonkeyPatch):
    store = made_run(root)
    monkeypatch.setattr(RunStore, "status", lambda self: 1 / 0)
    status, _, body = get(f"/film/{store.id}")
    assert status == 500
    assert json.loads(body)["error"].endswith("ZeroDivisionError")


@pytest.mark.parametrize("query", [{"after": "x"}, {"after": "1e9", "after_step": "-"}, {"after": "9" * 40}])
def test_odd_numbers_are_taken_for_none(root: Path, query: dict):
    assert len(film_of(made_run(root), **query)["frames"]) == FRAMES


def test_only_what_a_page_knows_can_be_asked_for():
    ask = {"run": "abcdefgh", "frame": 3, "action": "open"}
    assert _asked(ask, ["abcdefgh"]) == FilmAsk("abcdefgh", 3, "open")
    for change in ({"run": "other"}, {"frame": "3"}, {"action": "delete"}, {"frame": None}):
        assert _asked(ask | change, ["abcdefgh"]) is None
    assert _asked(None, ["abcdefgh"]) is None


def test_a_page_mounts_it():
    def script():
        from pages.film.mount import show_film

        assert (
            show_film([("abcdefgh", "a run")], key="film", followed_text="a dull film", frame=2, on_view=print) is None
        )

    for _ in range(2):  # a second server in one process registers it anew
        ran = AppTest.from_function(script, default_timeout=PATIENCE).run()
        assert not ran.exception
        data = json.loads(ran.main.children[0].proto.json)
        assert (data["runs"][0]["name"], data["followed_text"], data["frame"]) == ("a run", "a dull film", 2)
