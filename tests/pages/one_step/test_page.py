"""The page on one step: what it says is what the engine finds, steps are undone, a link is the same screen."""

from pathlib import Path

import pytest

from pages.kit.models import open_bundle
from pages.kit.number_format import significant
from pages.language import LANGUAGES, words
from tests.helpers.pages import answered, asks, metrics, run, told
from transformer_core.analysis.learning.dying import dying_gradients
from transformer_core.analysis.learning.steps import after_step, rate_sweep
from transformer_core.prompt import Prompt
from transformer_core.training.runs.run_list import RunList

TEXT = "The film was not good, but I loved the ending."


def prompt_of(text: str = TEXT) -> Prompt:
    bundle = open_bundle("sentiment")
    return Prompt(bundle, text, len(bundle.tokenizer.encode(text)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_step_is_taken_undone_and_rebuilt_by_its_link(language: str) -> None:
    said = words(language)
    now, then = said["one_step.before"], said["one_step.after"]
    app = run("one_step", text=TEXT, lang=language, one_step_class="0", one_step_rate="-6")
    first = metrics(app)
    found = after_step(prompt=prompt_of(), answer=0, rule="adamw", taken=(), exponent=-6)
    assert (first[now], first[then]) == (f"{found.before:.4f}", f"{found.after:.4f}")
    assert found.outcome == "falls"
    app.button(key="one_step_take").click().run()
    second = metrics(app)
    assert second[now] == first[then]
    assert app.query_params["one_step_taken"] == "-6"
    linked = run("one_step", **{name: app.query_params[name] for name in app.query_params})
    assert metrics(linked) == second
    assert [one.value for one in linked.latex] == [one.value for one in app.latex]
    app.button(key="one_step_undo").click().run()
    assert metrics(app) == first
    assert "one_step_taken" not in app.query_params


def test_the_question_is_judged_by_what_was_measured() -> None:
    app = run("one_step", text=TEXT, one_step_class="0", one_step_rate="-6")
    (question,) = asks(app)
    assert "one_step_tenfold" in str(question.key)
    found = rate_sweep(prompt=prompt_of(), answer=0, rule="adamw", taken=())
    answered(app, found.tenfold(-6))
    assert words("en")["try.right"] in told(app)


@pytest.mark.parametrize("taken", ["99", "-6.x", "-6." * 11 + "-6", "é"])
def test_steps_that_cannot_be_are_none(taken: str) -> None:
    app = run("one_step", text=TEXT, one_step_taken=taken, one_step_cell="999999.1")
    assert not app.exception
    assert app.button(key="one_step_undo").disabled


def test_targets_are_asked_for_in_the_way_of_each_model() -> None:
    app = run("one_step", model="gpt", text="Once upon a time", one_step_target=" there was")
    assert "2 answers" in told(app)
    app = run("one_step", model="bert", text="Paris is nice")
    assert words("en")["lab.hide_one"] in told(app)
    app = run("one_step", model="gpt", text="Once upon a time", one_step_target="word " * 40)
    assert not app.exception


def test_dying_gradients_are_told_as_measured() -> None:
    app = run("one_step", one_step_part="dying", text=TEXT, one_step_cause="relu", one_step_class="0")
    found = dying_gradients(prompt=prompt_of(), answer=0, cause="relu", n_layers=2, seed=0)
    for one in found.profiles:
        assert f"{one.loss:.3f}" in told(app)
        assert significant(one.smallest("pre_activation")[1]) in told(app)


def test_a_run_on_train_begins_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    started = []
    monkeypatch.setattr(
        "transformer_core.training.runs.launcher.Launcher.start", lambda _, store: started.append(store.id)
    )
    app = run("one_step", text=TEXT, one_step_taken="-6", one_step_rate="-7")
    app.button(key="one_step_train").click().run()
    assert not app.exception
    assert [app.query_params["run"]] == started
    spec = RunList(tmp_path).open(started[0]).spec
    assert spec.training.optimizer == "adamw"
    assert spec.training.learning_rate == pytest.approx(10**-3.5)
    assert app.session_state["page"] == "train"
