"""Heavy work: a bounded number of processes, a queue, and an end where nobody waits."""

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.kit import asking, heavy, waiting
from pages.kit.asking import ask, ask_away, ask_once, forget_answers
from pages.kit.heavy import SECONDS_LEFT, SECONDS_WAITED_FOR, InParts, Part, Pool, Work
from pages.kit.models import open_bundle
from pages.language import words
from tests.helpers import PATIENCE
from tests.helpers.heavy_work import Forked, drawn, dying, of_model, stepped, wrong
from tests.helpers.pages import same
from tests.helpers.tiny_runs import Gate, wait_for
from transformer_core import warm_process
from transformer_core.analysis.translation.toy_batch import toy_batch
from transformer_core.heavy_process import Message
from transformer_core.heavy_relay import Relay
from transformer_core.training.runs.cluster.ray_cluster import ADDRESS
from transformer_core.warm_process import ProcessDiedError

SECONDS_OF_A_PART = 5.0


@InParts
def in_parts(*, parts: int, gate: str) -> Work[tuple[int, ...]]:
    """Take a step in each of so many parts, and return which of them came to their end in time."""
    came = []
    for part in range(parts):
        with suppress(ProcessDiedError):
            yield Part(stepped, {"name": "", "steps": 1, "gate": gate}, part, parts, SECONDS_OF_A_PART)
            came.append(part)
    return tuple(came)


class Clock:
    """The pool's clock: time passes when a test lets it, and is over when the pool has swept."""

    def __init__(self) -> None:
        self._now, self._slept, self._sweeps, self._free = 0.0, 0, 0, False
        self._changed = threading.Condition()
        self._of_others = set(threading.enumerate())  # pools of other tests may still sweep

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        if threading.current_thread() not in self._of_others:
            with self._changed:
                self._slept += 1
                self._changed.wait_for(lambda: self._sweeps == self._slept or self._free)
        if threading.current_thread() in self._of_others or self._free:
            time.sleep(seconds)

    def passes(self, seconds: float, pool: Pool) -> None:
        """Let time pass, and wait until the pool has swept."""
        wait_for(lambda: self._slept > self._sweeps)
        with self._changed:
            self._now += seconds
            self._sweeps = self._slept
            self._changed.notify_all()
        wait_for(lambda: self._slept > self._sweeps or not pool._sweeping)

    def close(self) -> None:
        """Let time go by itself."""
        with self._changed:
            self._free = True
            self._changed.notify_all()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """The clock of pools."""
    own = Clock()
    monkeypatch.setattr(heavy, "time", own)
    yield own
    own.close()


@contextmanager
def used(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """Have pages use a pool of one process, for which they wait no longer than on a server."""
    own = Pool(1)
    monkeypatch.setattr(asking, "pool", lambda: own)
    monkeypatch.setattr(waiting, "pool", lambda: own)
    monkeypatch.setattr(waiting, "wait", wait)
    forget_answers()
    yield own
    own.close()
    forget_answers()


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Pool]:
    """A pool whose process starts quickly."""
    monkeypatch.setattr(warm_process, "subprocess", SimpleNamespace(Popen=Forked, PIPE=None))
    with used(monkeypatch) as own:
        yield own


@pytest.fixture
def real_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """A pool as on a server."""
    with used(monkeypatch) as own:
        yield own


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """The gate that `held` work waits for: of a name of its own, since the next process may test here as well."""
    own = Gate(tmp_path / uuid4().hex)
    yield own
    own.open()


@pytest.fixture
def held(gate: Gate) -> dict[str, str]:
    """Arguments of work that does not end before the gate is open."""
    return {"gate": str(gate.folder)}


@pytest.mark.nightly
def test_what_comes_is_what_the_call_makes(real_pool: Pool) -> None:
    toy = {"source": "ones", "seed": 0, "sentence": 0, "layer": 0, "head": 0}
    found = ask_away(toy_batch, "me here", **toy).result(60)
    same(ask(toy_batch, **toy).arrays, asking.Answer(found, toy_batch, toy).arrays)
    assert ask_once(toy_batch, **toy).value is found
    bundle, other = open_bundle("sentiment"), open_bundle("gpt-char")
    counts = ask_away(of_model, "me here", bundle=bundle, others=(other,)).result(60).values
    assert counts.tolist() == [bundle.n_parameters, other.n_parameters]


@pytest.mark.nightly
def test_random_numbers_are_those_of_a_script_in_a_process_that_has_drawn_before(pool: Pool) -> None:
    first = ask_away(drawn, "me here", count=5).result(60)
    forget_answers()
    again = ask_away(drawn, "me here", count=5).result(60)
    assert again.process == first.process
    np.testing.assert_array_equal(again.values, first.values)


def test_so_many_at_once_and_the_others_have_a_place_everybody_first_once(pool: Pool, held: dict[str, str]) -> None:
    running = ask_away(stepped, "ann a", name="running", **held)
    wait_for(lambda: pool.counts() == (1, 0))
    second_of_ann = ask_away(stepped, "ann b", name="second", **held)
    of_bob = ask_away(stepped, "bob a", name="bob", **held)
    third_of_ann = ask_away(stepped, "ann c", name="third", **held)
    assert [pool.place(job) for job in (running, of_bob, second_of_ann, third_of_ann)] == [0, 1, 2, 3]
    assert pool.counts() == (1, 3)


def test_between_two_parts_of_ones_work_another_has_a_turn(pool: Pool, gate: Gate, held: dict[str, str]) -> None:
    whole = ask_away(in_parts, "ann a", parts=3, **held)
    wait_for(lambda: pool.counts() == (1, 0))
    of_bob = ask_away(stepped, "bob a", name="bob", steps=1, **held)
    gate.let()
    wait_for(lambda: pool.place(of_bob) == 0)
    wait_for(lambda: pool.place(whole) == 1)
    assert not of_bob.done()
    gate.let()
    assert of_bob.result(60).values.size == 1
    wait_for(lambda: whole.steps == (1, 3))
    gate.open()
    assert whole.result(60) == in_parts(parts=3, gate="none") == (0, 1, 2)


def test_a_part_that_takes_longer_than_it_may_is_ended_and_the_others_go_on(
    pool: Pool, clock: Clock, gate: Gate, held: dict[str, str]
) -> None:
    whole = ask_away(in_parts, "ann a", parts=3, **held)
    wait_for(lambda: pool.counts() == (1, 0))
    process = whole.process
    clock.passes(SECONDS_OF_A_PART - 0.1, pool)
    assert process.is_alive
    clock.passes(0.2, pool)
    wait_for(lambda: not process.is_alive)
    gate.open()
    assert whole.result(60) == (1, 2)


def test_how_far_it_is_is_told(pool: Pool, gate: Gate, held: dict[str, str]) -> None:
    job = ask_away(stepped, "me here", name="counted", steps=40, **held)
    gate.let()
    wait_for(lambda: job.steps)
    assert job.steps[1] == 40
    assert not job.done()
    gate.open()
    assert job.result(60).values.size == 40


def test_one_who_cancels_ends_it_and_another_who_waits_keeps_it(pool: Pool, clock: Clock, held: dict[str, str]) -> None:
    job = ask_away(stepped, "ann a", name="shared", **held)
    assert ask_away(stepped, "bob a", name="shared", **held) is job
    wait_for(lambda: pool.counts() == (1, 0))
    process = job.process
    pool.leave(job, "ann a")
    clock.passes(SECONDS_LEFT + 1, pool)
    assert process.is_alive
    assert not job.done()
    pool.leave(job, "bob a")
    clock.passes(SECONDS_LEFT - 0.1, pool)
    assert not job.done()
    clock.passes(0.2, pool)
    with pytest.raises(CancelledError):
        job.result(60)
    wait_for(lambda: not process.is_alive)
    assert ask_away(drawn, "ann a", count=2).result(60).values.size == 2


def test_what_nobody_looks_for_is_ended(
    pool: Pool, clock: Clock, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heavy, "SECONDS_WAITED_FOR", SECONDS_WAITED_FOR)  # as on a server
    running = ask_away(stepped, "ann a", name="ann", **held)
    wait_for(lambda: pool.counts() == (1, 0))
    waiting = ask_away(stepped, "bob a", name="bob", **held)
    clock.passes(SECONDS_WAITED_FOR - 0.1, pool)
    assert not running.done()
    assert not waiting.done()
    clock.passes(0.2, pool)
    assert waiting.cancelled()
    assert not running.done()
    clock.passes(SECONDS_LEFT + 0.1, pool)
    assert running.cancelled()
    wait_for(lambda: pool.counts() == (0, 0))


def test_who_asks_for_something_else_in_the_same_place_waits_for_that_alone(pool: Pool, held: dict[str, str]) -> None:
    first = ask_away(stepped, "bob a", name="first", **held)
    wait_for(lambda: pool.counts() == (1, 0))
    old = ask_away(stepped, "ann a", name="old", **held)
    new = ask_away(stepped, "ann a", name="new", **held)
    assert old.cancelled()
    assert pool.place(new) == 1
    assert not first.done()


def test_what_goes_wrong_is_said_as_the_function_says_it(pool: Pool) -> None:
    with pytest.raises(ValueError, match=r"value=2.0 must be something else"):
        ask_away(wrong, "me here", value=2.0).result(60)
    with pytest.raises(ValueError, match="values is of type ndarray; it must be a prompt"):
        ask_away(wrong, "me here", values=np.ones(2))


def test_a_process_that_dies_is_an_error_and_the_next_call_has_another(pool: Pool) -> None:
    with pytest.raises(ProcessDiedError):
        ask_away(dying, "me here").result(60)
    found = ask_away(drawn, "me here", count=3).result(60)
    assert found.values.size == 3
    (waiting,) = pool._processes
    os.kill(found.process, signal.SIGKILL)
    wait_for(lambda: not waiting.is_alive)
    assert ask_away(drawn, "me here", count=4).result(60).values.size == 4


def page_of(name: str, *, stays: bool = False) -> AppTest:
    """Run a page that shows one answer of heavy_work."""
    source = f"""
        import streamlit as st
        from pages.kit.waiting import awaited
        from tests.helpers import heavy_work

        asked = st.session_state.get("asked", {{}})
        try:
            answer = awaited(heavy_work.{name}, "Working", key="here", stays={stays}, **asked)
        except ValueError as error:
            st.write(str(error))
        else:
            old = "the old one " if answer is not None and answer.old else ""
            st.write("nothing" if answer is None else f"{{old}}came {{answer.value.values.size}}")
    """
    lines = [line.removeprefix("        ") for line in source.splitlines()]
    return AppTest.from_string("\n".join(lines), default_timeout=PATIENCE)


def bars(app: AppTest) -> list[str]:
    return [element.proto.body for element in app.get("html") if "<progress" in element.proto.body]


def said(app: AppTest) -> list[str]:
    return [element.value for element in app.markdown]


def asks(app: AppTest, **arguments: str | float) -> AppTest:
    """Run the page with other arguments."""
    app.session_state["asked"] = arguments
    return app.run()


def test_a_page_shows_how_far_it_is_and_a_person_cancels_and_asks_again(
    pool: Pool, clock: Clock, held: dict[str, str]
) -> None:
    app = asks(page_of("stepped"), name="page", **held)
    assert said(app) == ["nothing"]
    assert "Working" in bars(app)[0]
    app.button(key="stop_here").click().run()
    app.run()  # a browser does so by itself
    assert not bars(app)
    assert words("en")["await.cancelled"] in said(app)
    clock.passes(SECONDS_LEFT + 0.1, pool)
    wait_for(lambda: pool.counts() == (0, 0))
    app.button(key="again_here").click().run()
    assert bars(app)
    wait_for(lambda: pool.counts() == (1, 0))
    ask_away(stepped, "other a", name="other", **held)
    asks(app, name="after it", **held)
    assert words("en")["await.queue"].format(place=2) in bars(app)[0]  # the other was first


def test_a_page_shows_what_comes_at_once_without_a_box(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SECONDS_AT_ONCE", 60.0)
    app = asks(page_of("drawn"), count=4)
    assert said(app) == ["came 4"]
    assert not bars(app)


def test_the_last_answer_stays_below_the_box_until_the_next_one_comes(
    pool: Pool, clock: Clock, held: dict[str, str]
) -> None:
    app = asks(page_of("stepped", stays=True), name="first", **held)
    assert said(app) == ["nothing"]
    asks(app, name="quick", steps=2)
    clock.passes(SECONDS_LEFT + 0.1, pool)
    wait_for(lambda: pool.counts() == (0, 0))
    app.run()
    assert said(app) == ["came 2"]
    asks(app, name="second", **held)
    assert said(app) == ["the old one came 2"]
    assert "Working" in bars(app)[0]
    assert any("old" in element.proto.body for element in app.get("html"))
    app.button(key="stop_here").click().run()
    app.run()
    assert "the old one came 2" in said(app)
    assert words("en")["await.cancelled"] in said(app)


def test_a_page_says_why_there_is_no_answer(pool: Pool) -> None:
    app = asks(page_of("wrong"), value=1.0)
    wait_for(lambda: pool.counts() == (0, 0))
    app.run()
    assert said(app) == ["value=1.0 must be something else"]
    app = page_of("dying").run()
    wait_for(lambda: pool.counts() == (0, 0))
    app.run()
    assert words("en")["await.died"] in said(app)
    app.button(key="again_here").click().run()
    assert bars(app)


def test_a_relay_that_finds_no_cluster_computes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, "127.0.0.1:1")
    steps: list[Message] = []
    came = Relay().compute(pickle.dumps((stepped, {"name": ""})), steps.append)
    assert came.ended
    assert came.value.process == os.getpid()
