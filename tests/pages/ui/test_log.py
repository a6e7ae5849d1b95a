"""The log says what happened and where, on one line, without a word of a visitor's, and no line a thousand times."""

import json
import logging
import re

import pytest

from pages.ui.log import OneLine, Seldom

SECRET = "what a visitor wrote"


def record(
    name: str = "vitrine", text: str = "a page failed:", *values: object, error: Exception | None = None, line: int = 1
) -> logging.LogRecord:
    """Return a record of a logger."""
    info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord(name, logging.ERROR, "there.py", line, text, values, info)


def raised() -> ValueError:
    """Return an error that was raised in this file and quotes a visitor."""
    try:
        raise ValueError(f"cannot read\n{SECRET}")
    except ValueError as error:
        return error


def test_an_error_is_its_kind_and_its_place_on_one_line() -> None:
    line = OneLine().format(record(error=raised()))
    assert line.endswith(f"error a page failed: ValueError at tests/pages/ui/test_log.py:{_line_of_raise()}")
    assert SECRET not in line
    assert "\n" not in line


def _line_of_raise() -> int:
    traceback = raised().__traceback__
    assert traceback is not None
    return traceback.tb_lineno


def test_an_error_from_elsewhere_names_both_places() -> None:
    try:
        json.loads("{")
    except ValueError as error:
        line = OneLine().format(record(error=error))
    assert re.search(r"JSONDecodeError at tests/pages/ui/test_log.py:\d+ from decoder.py:\d+$", line)


@pytest.mark.parametrize(
    ("values", "shown"), [((SECRET,), "streamlit.x: refused %s"), ((12,), "streamlit.x: refused 12")]
)
def test_of_another_packages_line_only_numbers_are_filled_in(values: tuple, shown: str) -> None:
    assert OneLine().format(record("streamlit.x", "refused %s", *values)).endswith(shown)


def test_what_happens_a_thousand_times_is_logged_once_a_minute_with_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("pages.ui.log.time.monotonic", lambda: now)
    seldom = Seldom()
    assert [seldom.filter(record()) for _ in range(1000)] == [True] + [False] * 999
    assert seldom.filter(record(line=2)), "another place is another thing"
    now = 61.0
    again = record()
    assert seldom.filter(again)
    assert again.getMessage() == "a page failed: (999 more like it)"
