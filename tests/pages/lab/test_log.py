"""The Lab's log is kept for its writer: found again, by another tab, too, by nobody else, and within bounds."""

import os
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.lab import log
from pages.lab.log import MOST_KEPT_MB
from pages.language import words
from pages.serving import owners
from tests.helpers.pages import first_screen


def lab(part: str, **query: str) -> AppTest:
    return first_screen("lab", lab_part=part, model="sentiment", text="The film was not good.", **query)


def logged(app: AppTest) -> AppTest:
    """Write what is on the screen into the log."""
    return app.button(key="log_heads").click().run()


def test_the_log_is_found_again_at_the_next_visit_and_by_another_tab(monkeypatch: pytest.MonkeyPatch) -> None:
    first = logged(lab("heads", lab_off="encoder.0.1"))
    second = lab("log")
    kept = second.session_state["lab_log"]
    assert kept == first.session_state["lab_log"]
    assert len(kept) == 1
    logged(first)
    assert len(second.run().session_state["lab_log"]) == 2
    next(button for button in second.button if button.label == words("en")["lab.log_clear"]).click().run()
    assert lab("log").session_state["lab_log"] == []
    assert len(logged(first).session_state["lab_log"]) == 1
    monkeypatch.setenv("VITRINE_READ_ONLY", "1")
    logged(lab("heads", lab_off="encoder.0.1"))
    assert "lab_log" not in lab("log").session_state or not lab("log").session_state["lab_log"]


@pytest.mark.usefixtures("on_a_network")
def test_a_log_is_its_writers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    who = {"key": "one"}
    monkeypatch.setattr(owners, "_key", lambda: who["key"])
    logged(lab("heads", lab_off="encoder.0.1"))
    seen = {}
    for who["key"] in ("one", "another", ""):  # the last keeps no cookies
        seen[who["key"]] = len(lab("log").session_state["lab_log"])
    assert seen == {"one": 1, "another": 0, "": 0}


def test_a_broken_or_too_large_file_of_rows_is_left_alone_and_what_cannot_be_kept_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VITRINE_LOGS", str(tmp_path))
    for content in (b"[", b"[[1]]", b"[" + b" " * (MOST_KEPT_MB << 20) + b"]"):
        (tmp_path / "home.json").write_bytes(content)
        app = lab("log")
        assert not app.exception
        assert app.session_state["lab_log"] == []
    monkeypatch.setattr(log, "MOST_LOGS", 1)
    (tmp_path / "older.json").write_bytes(b"[]")
    os.utime(tmp_path / "older.json", (1, 1))
    app = logged(lab("heads", lab_off="encoder.0.1"))
    assert [one.name for one in tmp_path.iterdir()] == ["home.json"]
    monkeypatch.setattr(log, "MOST_KEPT_MB", 0)
    app = logged(lab("heads", lab_off="encoder.0.1"))
    assert any("for this visit alone: more than 0 MB" in toast.value for toast in app.toast)
