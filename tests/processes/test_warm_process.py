"""A warm process: it answers, dies with words, has a session of its own, and is killed with all that it has started."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from tests.helpers.tiny_runs import wait_for
from transformer_core.warm_process import ProcessDiedError, WarmProcess


def line_in(pipe: IO[bytes]) -> str:
    """Return the next line, as the messages of a shell's process are."""
    line = pipe.readline().decode()
    if not line:
        raise EOFError
    return line.strip()


@pytest.fixture
def shell() -> Callable[..., WarmProcess[str]]:
    """Start a shell's script as a warm process."""

    def started(script: str, *, keeps_errors: bool = False) -> WarmProcess[str]:
        return WarmProcess(("/bin/sh", "-c", script), line_in, environment={"SAID": "x"}, keeps_errors=keeps_errors)

    return started


def is_there(process: int) -> bool:
    """Tell whether a process runs; one that nobody has waited for has ended."""
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_its_first_message_makes_it_ready_and_the_others_are_answers(shell) -> None:
    process = shell("echo ready; read line; echo $SAID $line; read line")
    assert process.ready.wait(60)
    with pytest.raises(TimeoutError):
        process.answer(0.0)
    process.send(b"one\n")
    assert process.answer(60) == "x one"
    assert process.is_alive
    process.let_go()
    wait_for(lambda: not process.is_alive)


def test_all_that_it_has_started_is_killed_with_it(shell) -> None:
    process = shell("echo ready; sleep 1000 & echo $!; wait")
    child = int(process.answer(60))
    assert is_there(child)
    process.end()
    assert not process.is_alive
    wait_for(lambda: not is_there(child))
    with pytest.raises(ProcessDiedError):
        process.answer()


def test_one_that_dies_leaves_its_last_words_where_they_are_kept(shell) -> None:
    process = shell("for line in 1 2 3 4; do echo line $line >&2; done", keeps_errors=True)
    with pytest.raises(ProcessDiedError):
        process.answer(60)
    assert process.last_words() == "line 2 / line 3 / line 4"
    process.end()
    assert process.last_words() == ""
    with pytest.raises(ProcessDiedError):
        process.send(b"one\n")


def test_it_has_a_session_of_its_own(shell) -> None:
    process = shell("echo ready; echo $$; read line")
    own = int(process.answer(60))
    assert os.getsid(own) == own, "no signal to the session of who started it reaches it"
    process.end()
