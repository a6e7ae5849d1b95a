"""On a read-only server nobody starts a run, brings a file or opens a model, and everything else works."""

from pathlib import Path

import pytest

from pages.ui.language import words
from pages.ui.limits import limits
from pages.ui.runs import launcher
from tests.helpers.made_runs import made_run
from tests.helpers.pages import run
from transformer_core.training.runs.errors import RunError


@pytest.fixture(autouse=True)
def _read_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VITRINE_READ_ONLY", "1")
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))


@pytest.mark.parametrize(
    ("page", "query"), [("train", {}), ("train", {"runs_open": "true"}), ("my_model", {}), ("my_model", {"lang": "zh"})]
)
def test_where_a_run_starts_or_a_model_opens_the_page_says_that_this_is_closed(page: str, query: dict) -> None:
    app = run(page, **query)
    said = words(query.get("lang", "en"))
    assert not app.exception
    assert said["read_only.said"] in [info.value for info in app.info]
    assert not app.file_uploader
    closed = {said[key] for key in ("train.start", "my_model.open", "run.stop", "runs.delete", "compare.start")}
    assert not closed & {button.label for button in app.button}


def test_a_run_that_is_there_can_be_looked_at_but_not_stopped(tmp_path: Path) -> None:
    store = made_run(tmp_path, state="stopped")
    app = run("train", run=store.id)
    assert not app.exception
    assert words("en")["run.take_up"] not in {button.label for button in app.button}


def test_a_direct_call_starts_no_run() -> None:
    with pytest.raises(RunError, match="read-only"):
        launcher()


def test_the_other_pages_work() -> None:
    app = run("attention", text="still alive")
    assert not app.exception
    assert not app.info


def test_a_switch_that_is_neither_0_nor_1_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_READ_ONLY", "yes")
    with pytest.raises(ValueError, match="VITRINE_READ_ONLY='yes' must be a whole number from 0 to 1"):
        limits()
