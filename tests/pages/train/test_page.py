"""The Train page with runs: their state, buttons, results, list and files, in both languages."""

import io
import zipfile
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.film.reading import listening
from pages.kit import runs
from pages.kit.header import DEFAULT_TEXT
from pages.language import prose, words
from pages.train import form as train_form
from pages.train.exports import bundle_zip, files_of, run_zip
from pages.train.panel import attempt, progress_words
from pages.train.variant import one_changes
from tests.helpers.made_runs import SPECS, STEPS, held, made_run, spoil_measures
from tests.helpers.pages import Starts, asks, nothing_starts, run, told
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.run_list import BOUNDS, RunList
from transformer_core.training.runs.runner import runner
from transformer_core.training.runs.settings import change
from transformer_core.training.runs.store.records import Shortage, Status
from transformer_core.training.spec import Origin

RESTING = ("stopped", "finished", "failed")
LIVE = ("queued", "starting", "running", "paused")


class _AtOnce:
    """An executor that measures an estimate before it hands it out."""

    def submit(self, function: Callable[..., object], *arguments: object) -> Future:
        future = Future()
        try:
            future.set_result(function(*arguments))
        except ValueError as error:
            future.set_exception(error)
        return future


@pytest.fixture(autouse=True)
def launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Starts:
    """Keep the runs of a test in a folder of its own, and start nothing."""
    monkeypatch.setattr(train_form, "_measuring", _AtOnce())
    train_form._known.clear()
    return nothing_starts(monkeypatch, tmp_path)


EN = words("en")


def button(app: AppTest, key: str, language: str = "en"):
    """Return the button with a word."""
    return next(one for one in app.button if one.label == words(language)[key])


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("kind", "network"), [("classifier", "gru"), ("translation", "lstm"), ("gpt", "rnn")])
def test_a_recurrent_run_is_shown_whole(kind: str, network: str, language: str, tmp_path: Path) -> None:
    store = made_run(tmp_path, change(SPECS[kind], network=network))
    app = run("train", lang=language, run=store.id, try_open="true")
    assert not app.exception
    said = told(app)
    assert prose(language, "train")[f"film_{store.spec.kind}"][:60] in said
    assert words(language)[f"result.of_{kind}"].format(step=STEPS, held_out="97.0%") in said
    assert (words(language)["train_try.no_residual"] in {one.label for one in app.button}) is False
    offered = one_changes(store.spec)
    assert f"network={'gru' if network != 'gru' else 'rnn'}" in offered
    assert not {name for name, _ in offered.values()} & {"residual", "positions", "norm_order", "causal"}
    followed = listening(store.id, "a dull film").answer(-1)
    assert b'"attention"' in followed


@pytest.mark.parametrize(("state", "language"), [*zip(RESTING, ("en", "zh", "en"), strict=True)])
def test_a_run_that_rests_is_shown_with_its_state(state: str, language: str, tmp_path: Path) -> None:
    store = made_run(tmp_path, state=state, message="the disk is full" if state == "failed" else "")
    app = run("train", lang=language, run=store.id)
    assert not app.exception
    bars = [bar.proto.text for bar in app.get("progress")]
    assert bool(bars) == (state != "finished")
    for bar in bars:
        assert words(language)[f"state.{state}"] in bar
        assert words(language)["run.step"].format(step=STEPS, total=STEPS) in bar
    assert (state == "failed") == any("the disk is full" in error.value for error in app.error)
    labels = {one.label for one in app.button}
    assert (words(language)["run.take_up"] in labels) == (state != "finished")
    assert words(language)["run.stop"] not in labels


@pytest.mark.parametrize("state", LIVE)
def test_a_live_run_can_be_paused_resumed_and_stopped(state: str, tmp_path: Path, launcher: Starts) -> None:
    store = made_run(tmp_path, state=state)
    lock = held(store)
    try:
        app = run("train", run=store.id)
        assert not app.exception
        if state == "paused":
            button(app, "run.resume").click().run()
            assert launcher.resumed == [store.id]
        elif state != "queued":
            button(app, "run.pause").click().run()
            assert Queue(tmp_path).heard(store.id) == "pause"
        button(app, "run.stop").click().run()
        assert not app.exception
        assert Queue(tmp_path).heard(store.id) == "stop"
    finally:
        lock.release()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_damaged_queue_is_put_aside_and_that_is_said(language: str, tmp_path: Path, launcher: Starts) -> None:
    store = made_run(tmp_path, state="paused")
    (tmp_path / "queue.sqlite").write_bytes(b"no table at all")
    assert store.status().state == "paused"
    app = run("train", lang=language)
    assert not app.exception
    assert any("queue.damaged-1.sqlite" in warning.value for warning in app.warning)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_run_whose_worker_died_is_interrupted_and_can_be_taken_up(
    language: str, tmp_path: Path, launcher: Starts
) -> None:
    store = made_run(tmp_path, state="running")
    app = run("train", lang=language, run=store.id)
    assert words(language)["state.interrupted"] in app.get("progress")[0].proto.text
    assert any("killed" in warning.value for warning in app.warning)
    button(app, "run.take_up", language).click().run()
    assert launcher.resumed == [store.id]


@pytest.mark.parametrize("asked", ["nothere123", "../../etc", "", "<b>", "a" * 500])
def test_a_run_that_is_not_there_is_said_and_the_form_shown(asked: str) -> None:
    app = run("train", run=asked)
    assert not app.exception
    assert button(app, "train.start") is not None
    assert bool(app.warning) == bool(asked) or any("data are missing" in one.value for one in app.warning)
    assert "run" not in app.query_params


def test_start_makes_a_run_and_puts_it_in_the_link(tmp_path: Path, launcher: Starts) -> None:
    app = run("train", d_model="32", n_heads="2")
    button(app, "train.start").click().run()
    assert not app.exception
    (store,) = RunList(tmp_path).all()
    assert launcher.started == [store.id]
    assert app.query_params["run"] == store.id
    assert store.spec.model.d_model == 32
    assert store.spec.name == "quick · d_model 32 · 2 heads"


def test_a_click_on_start_counts_while_the_estimate_ends(monkeypatch: pytest.MonkeyPatch, launcher: Starts) -> None:
    looks = iter([False, False])

    class Ending(Future):
        def done(self) -> bool:
            return next(looks, True)

    ending = Ending()
    ending.set_exception(ValueError("the data are missing"))
    monkeypatch.setattr(train_form, "estimate", lambda *_: ending)
    app = run("train")
    looks = iter([False])
    button(app, "train.start").click().run()
    assert not app.exception
    assert len(launcher.started) == 1


def test_a_failed_estimate_is_told_in_words_and_start_still_works() -> None:
    app = run("train")
    assert any("the data are missing" in one.value for one in app.warning)
    assert not button(app, "train.start").disabled


@pytest.mark.parametrize(("kind", "language"), [*zip(SPECS, ("en", "zh", "en", "zh"), strict=True)])
def test_results_are_said_in_a_sentence_of_measured_numbers(kind: str, language: str, tmp_path: Path) -> None:
    store = made_run(tmp_path, SPECS[kind])
    app = run("train", lang=language, run=store.id)
    assert not app.exception
    assert words(language)[f"result.of_{kind}"].format(step=STEPS, held_out="97.0%") in told(app)
    assert app.metric[0].value == "97.0%"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_prediction_is_answered_by_measured_numbers(language: str, tmp_path: Path) -> None:
    store = made_run(tmp_path, train=1.0, held_out=0.6)
    app = run("train", lang=language, run=store.id, try_open="true")
    asks(app)[0].set_value("as_well").run()
    assert words(language)["train_try.neither"] in told(app)  # of four points, all right is no proof
    assert "60.0%" in told(app)


def test_the_form_can_begin_with_a_runs_settings_and_with_its_weights(tmp_path: Path, launcher: Starts) -> None:
    store = made_run(tmp_path, replace(SPECS["classifier"], name="mine"))
    app = run("train", run=store.id)
    button(app, "train.again").click().run()
    assert not app.exception
    assert "**mine**" in told(app)
    assert app.query_params["branch"] == store.id
    app = run("train", branch=f"{store.id}.2", settings_open="true", activation="relu")
    assert not app.exception
    assert app.number_input(key="vocab_size@train").disabled
    button(app, "train.start").click().run()
    assert not app.exception
    (made,) = (one for one in RunList(tmp_path).all() if one.id != store.id)
    assert made.spec.origin == Origin(run=store.id, frame=2)
    assert made.spec.name == "mine · from frame 2 · relu"
    assert launcher.started == [made.id]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_list_names_every_run_and_the_rule(language: str, tmp_path: Path) -> None:
    stores = [
        made_run(tmp_path, replace(SPECS["classifier"], name=f"run {i}"), state=state)
        for i, state in enumerate(RESTING)
    ]
    app = run("train", lang=language, runs_open="true")
    assert not app.exception
    assert {f"open {store.id}" for store in stores} <= {one.key for one in app.button}
    assert all(words(language)[f"state.{state}"] in told(app) for state in RESTING)
    assert "97.0%" in told(app)
    assert str(BOUNDS.runs) in told(app)
    app.button(key=f"open {stores[0].id}").click().run()
    assert app.query_params["run"] == stores[0].id


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_run_with_one_character_changed_is_listed_as_broken_and_the_others_as_ever(
    language: str, tmp_path: Path
) -> None:
    sound, spoilt = made_run(tmp_path), made_run(tmp_path)
    spoil_measures(spoilt)
    for query in ({}, {"run": spoilt.id}):
        app = run("train", lang=language, runs_open="true", **query)
        assert not app.exception
        keys = {one.key: one.label for one in app.button}
        assert f"open {sound.id}" in keys
        assert f"open {spoilt.id}" not in keys
        assert spoilt.id in keys[f"broken {spoilt.id}"]
        assert "97.0%" in told(app)
    assert any(spoilt.id in warning.value for warning in app.warning)
    app.button(key=f"broken {spoilt.id}").click().run()
    assert not app.exception
    assert [store.id for store in RunList(tmp_path).all()] == [sound.id]
    assert RunList(tmp_path).broken() == {}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_run_is_offered_as_files(language: str, tmp_path: Path) -> None:
    store = made_run(tmp_path)
    zipped = run_zip(store.id)
    (store.folder / "bundle").mkdir()
    (store.folder / "bundle" / "card.md").write_text("# card")
    app = run("train", lang=language, run=store.id)
    app.session_state["train_export_open"] = True
    app.run()
    assert not app.exception
    labels = {one.proto.label for one in app.get("download_button")}
    wanted = ("gif", "html", "csv", "script", "run", "bundle", "card")
    assert {words(language)[f"train_export.{name}"] for name in wanted} <= labels
    assert zipfile.ZipFile(io.BytesIO(bundle_zip(store))).namelist() == [f"run_{store.id}/card.md"]
    again = runs.run_list().import_zip(io.BytesIO(zipped))
    assert again.id != store.id
    assert again.spec == store.spec


@pytest.mark.parametrize("kind", SPECS)
def test_every_file_can_be_made(kind: str, tmp_path: Path) -> None:
    store = made_run(tmp_path, SPECS[kind])
    made = {ending: make() for _, ending, _, make in files_of(store)}
    assert ("gif" in made) == (kind == "classifier")
    assert all(made.values())
    assert len(made["csv"].decode("utf-8-sig").splitlines()) == 1 + 1 + STEPS
    compile(made["py"], "repeat.py", "exec")
    assert store.spec.name in made["html"]


@pytest.mark.usefixtures("on_a_network")
def test_on_a_network_a_run_is_watched_by_link_and_changed_by_its_maker_alone(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("pages.kit.runs.is_person", lambda: True)
    maker = run("train", d_model="32", n_heads="2")
    button(maker, "train.start").click().run()
    own = maker.query_params["run"]
    other = made_run(tmp_path, state="paused", owner="somebody else")
    lock = held(other)
    try:
        app = run("train", run=other.id, runs_open="on")
        assert not app.exception
        assert EN["run.of_another"] in told(app)
        assert not {EN["run.stop"], EN["run.resume"], EN["run.pause"]} & {one.label for one in app.button}
        assert EN["runs.none"] in told(app)
        compared = run("compare", run=own, other=other.id)
        assert not compared.exception
        assert EN["run.of_another"] in told(compared)
        attempt(lambda: runner().ask(other, "stop"), other.owner)  # as a page that is not ours would
        assert Queue(other.folder.parent).heard(other.id) is None
    finally:
        lock.release()
    watcher = run("train", run=own)
    assert EN["run.of_another"] in told(watcher)
    maker.run()
    assert EN["run.of_another"] not in told(maker)


@pytest.mark.parametrize(
    ("data", "own"),
    [
        ({"source": "reviews", "language": "en"}, False),
        ({"source": "reviews", "language": "zh"}, True),
        ({"source": "table", "language": "en", "file": "rows.jsonl", "labels": ("schlecht", "gut")}, True),
    ],
)
def test_a_run_on_own_data_is_followed_with_a_text_that_it_held_out(
    data: dict[str, Any], own: bool, tmp_path: Path
) -> None:
    spec = SPECS["classifier"]
    rows = b'{"text": "ein Film", "label": 0}\n' if data["source"] == "table" else None
    store = made_run(tmp_path, replace(spec, data=replace(spec.data, **data)), data=rows)
    box = next(one for one in run("train", run=store.id).text_input if str(one.key).startswith("text@"))
    assert box.value == (store.facts()["prompt"] if own else DEFAULT_TEXT)


def test_a_run_that_waits_for_a_cluster_says_for_what() -> None:
    waits = progress_words(Status("queued", queue_place=2, shortage=Shortage("0.5 GPU", "0 GPU", "4 GPU")))
    assert waits.endswith("place 2 in the queue · it needs 0.5 GPU; of the cluster's 4 GPU, 0 GPU are free")
    assert progress_words(Status("queued", queue_place=2)).endswith("place 2 in the queue")
