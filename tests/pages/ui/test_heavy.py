"""Heavy work: a bounded number of processes, a queue, and an end where nobody waits."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, wait
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import asking, boxes, heavy
from pages.ui.asking import ask, ask_away, ask_once, forget_answers
from pages.ui.heavy import Pool, ProcessDiedError
from pages.ui.language import words
from pages.ui.models import open_bundle
from tests.helpers.heavy_work import drawn, dying, of_model, slow, wrong
from tests.helpers.pages import same
from transformer_core.analysis.translation.toy_batch import toy_batch

LONG = {"steps": 1_000, "seconds": 0.1}


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """A pool of one process; a page does not wait longer for it than on a server."""
    own = Pool(1)
    monkeypatch.setattr(asking, "pool", lambda: own)
    monkeypatch.setattr(boxes, "pool", lambda: own)
    monkeypatch.setattr(boxes, "wait", wait)
    monkeypatch.setattr(heavy, "SECONDS_BETWEEN_SWEEPS", 0.05)
    forget_answers()
    yield own
    own.close()
    forget_answers()


def until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_comes_is_what_the_call_makes(pool: Pool) -> None:
    toy = {"source": "ones", "seed": 0, "sentence": 0, "layer": 0, "head": 0}
    found = ask_away(toy_batch, "me here", **toy).result(60)
    same(ask(toy_batch, **toy).arrays, asking.Answer(found, toy_batch, toy).arrays)
    assert ask_once(toy_batch, **toy).value is found
    bundle, other = open_bundle("sentiment"), open_bundle("gpt-char")
    counts = ask_away(of_model, "me here", bundle=bundle, others=(other,)).result(60).values
    assert counts.tolist() == [bundle.n_parameters, other.n_parameters]


def test_random_numbers_are_those_of_a_script_in_a_process_that_has_drawn_before(pool: Pool) -> None:
    first = ask_away(drawn, "me here", count=5).result(60)
    forget_answers()
    again = ask_away(drawn, "me here", count=5).result(60)
    assert again.process == first.process
    np.testing.assert_array_equal(again.values, first.values)


def test_so_many_at_once_and_the_others_have_a_place_everybody_first_once(pool: Pool) -> None:
    running = ask_away(slow, "ann a", name="running", **LONG)
    until(lambda: pool.counts() == (1, 0))
    second_of_ann = ask_away(slow, "ann b", name="second", **LONG)
    of_bob = ask_away(slow, "bob a", name="bob", **LONG)
    third_of_ann = ask_away(slow, "ann c", name="third", **LONG)
    assert [pool.place(job) for job in (running, of_bob, second_of_ann, third_of_ann)] == [0, 1, 2, 3]
    assert pool.counts() == (1, 3)


def test_how_far_it_is_is_told(pool: Pool) -> None:
    job = ask_away(slow, "me here", name="counted", steps=40, seconds=0.05)
    until(lambda: job.steps)
    assert job.steps[1] == 40
    assert job.result(60).values.size == 40


def test_one_who_cancels_ends_it_and_another_who_waits_keeps_it(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heavy, "SECONDS_LEFT", 0.2)
    job = ask_away(slow, "ann a", name="shared", **LONG)
    assert ask_away(slow, "bob a", name="shared", **LONG) is job
    until(lambda: pool.counts() == (1, 0))
    process = job.process
    pool.leave(job, "ann a")
    time.sleep(0.5)
    assert process.poll() is None
    assert not job.done()
    pool.leave(job, "bob a")
    with pytest.raises(CancelledError):
        job.result(60)
    until(lambda: process.poll() is not None)
    assert ask_away(drawn, "ann a", count=2).result(60).values.size == 2


def test_what_nobody_looks_for_is_ended(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heavy, "SECONDS_WAITED_FOR", 0.3)
    monkeypatch.setattr(heavy, "SECONDS_LEFT", 0.1)
    running, waiting = (ask_away(slow, f"{who} a", name=who, **LONG) for who in ("ann", "bob"))
    until(lambda: waiting.done() and running.done())
    assert running.cancelled()
    assert waiting.cancelled()
    until(lambda: pool.counts() == (0, 0))


def test_who_asks_for_something_else_in_the_same_place_waits_for_that_alone(pool: Pool) -> None:
    first = ask_away(slow, "bob a", name="first", **LONG)
    until(lambda: pool.counts() == (1, 0))
    old = ask_away(slow, "ann a", name="old", **LONG)
    new = ask_away(slow, "ann a", name="new", **LONG)
    assert old.cancelled()
    assert pool.place(new) == 1
    assert not first.done()


def test_what_goes_wrong_is_said_as_the_function_says_it(pool: Pool) -> None:
    with pytest.raises(ValueError, match=r"value=2.0 must be something else"):
        ask_away(wrong, "me here", value=2.0).result(60)
    with pytest.raises(ValueError, match="values is of type ndarray; it must be a bundle"):
        ask_away(wrong, "me here", values=np.ones(2))


def test_a_process_that_dies_is_an_error_and_the_next_call_has_another(pool: Pool) -> None:
    with pytest.raises(ProcessDiedError):
        ask_away(dying, "me here").result(60)
    found = ask_away(drawn, "me here", count=3).result(60)
    assert found.values.size == 3
    os.kill(found.process, signal.SIGKILL)  # while it waits
    time.sleep(0.2)
    assert ask_away(drawn, "me here", count=4).result(60).values.size == 4


def page_of(name: str, *, stays: bool = False) -> AppTest:
    """Run a page that shows one answer of heavy_work."""
    source = f"""
        import streamlit as st
        from pages.ui.boxes import awaited
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
    return AppTest.from_string("\n".join(lines), default_timeout=60)


def bars(app: AppTest) -> list[str]:
    return [element.proto.body for element in app.get("html") if "<progress" in element.proto.body]


def said(app: AppTest) -> list[str]:
    return [element.value for element in app.markdown]


def test_a_page_shows_how_far_it_is_and_a_person_cancels_and_asks_again(pool: Pool) -> None:
    app = page_of("slow")
    app.session_state["asked"] = {"name": "page", **LONG}
    app.run()
    assert said(app) == ["nothing"]
    assert "Working" in bars(app)[0]
    app.button(key="stop_here").click().run()
    app.run()  # a browser does so by itself
    assert not bars(app)
    assert words("en")["await.cancelled"] in said(app)
    until(lambda: pool.counts() == (0, 0))
    app.button(key="again_here").click().run()
    assert bars(app)
    ask_away(slow, "other a", name="other", **LONG)
    app.session_state["asked"] = {"name": "after it", **LONG}
    app.run()
    assert words("en")["await.queue"].format(place=2) in bars(app)[0]  # the other was first


def test_a_page_shows_what_comes_at_once_without_a_box(pool: Pool) -> None:
    ask_away(drawn, "me here", count=1).result(60)  # the process is there
    app = page_of("drawn")
    app.session_state["asked"] = {"count": 4}
    app.run()
    assert said(app) == ["came 4"]
    assert not bars(app)


def test_the_last_answer_stays_below_the_box_until_the_next_one_comes(pool: Pool) -> None:
    app = page_of("slow", stays=True)
    app.session_state["asked"] = {"name": "first", **LONG}
    app.run()
    assert said(app) == ["nothing"]
    app.session_state["asked"] = {"name": "quick", "steps": 2, "seconds": 0.01}
    app.run()
    until(lambda: pool.counts() == (0, 0))
    app.run()
    assert said(app) == ["came 2"]
    app.session_state["asked"] = {"name": "second", **LONG}
    app.run()
    assert said(app) == ["the old one came 2"]
    assert "Working" in bars(app)[0]
    assert any("old" in element.proto.body for element in app.get("html"))
    app.button(key="stop_here").click().run()
    app.run()
    assert "the old one came 2" in said(app)
    assert words("en")["await.cancelled"] in said(app)


def test_a_page_says_why_there_is_no_answer(pool: Pool) -> None:
    app = page_of("wrong")
    app.session_state["asked"] = {"value": 1.0}
    app.run()
    until(lambda: pool.counts() == (0, 0))
    app.run()
    assert said(app) == ["value=1.0 must be something else"]
    app = page_of("dying").run()
    until(lambda: pool.counts() == (0, 0))
    app.run()
    assert words("en")["await.died"] in said(app)
    app.button(key="again_here").click().run()
    assert bars(app)
