"""What a page asks is what its script asks: the same call, the same numbers."""

from dataclasses import dataclass

import numpy as np
import pytest

from pages.ui import asking
from pages.ui.asking import ask, ask_once, repeating
from pages.ui.models import open_bundle


@dataclass(frozen=True)
class Count:
    number: int


calls: list[int] = []


def count(*, step: int) -> Count:
    calls.append(step)
    return Count(len(calls))


def test_an_answer_is_remembered_by_its_question_and_at_most_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MOST_KEPT", 2)
    asking.forget_answers()
    calls.clear()
    first = ask_once(count, step=1)
    assert ask_once(count, step=1).value is first.value
    assert ask(count, step=1).value is not first.value
    ask_once(count, step=2)
    ask_once(count, step=3)
    assert ask_once(count, step=1).value is not first.value
    asking.forget_answers()


@pytest.mark.parametrize(
    "text", ['"""', "'''\n", "\\", "{layer}", "好 😀", "\ud800".encode("utf-8", "replace").decode()]
)
def test_any_text_leaves_the_script_valid_python(text: str) -> None:
    script = repeating(count, {"bundle": open_bundle("sentiment"), "text": text, "sizes": (1,), "rate": float("inf")})
    compile(script, "script", "exec")
    assert 'load("assets/checkpoints/sentiment")' in script
    assert repr(text) in script


def test_what_cannot_be_written_down_is_refused() -> None:
    with pytest.raises(ValueError, match="values is of type ndarray; it must be a bundle"):
        repeating(count, {"values": np.ones(2)})
