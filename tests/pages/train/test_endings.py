"""What the page says of a run that early stopping ended, and of a range test, follows from its numbers."""

from pathlib import Path

import numpy as np
import pytest

from pages.language import words
from pages.train.endings import early_words, range_words
from tests.helpers.made_runs import SPECS, made_run
from tests.helpers.pages import run, told
from transformer_core.training.config import TrainConfig
from transformer_core.training.early_stopping import Watched
from transformer_core.training.range_test import read_range_test
from transformer_core.training.runs.settings import change
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.records import Frame, Status

PATIENT = TrainConfig(patience=2, min_improvement=0.01)
RATES = np.logspace(-6, 1, 700)
POWER = np.log10(RATES)
NOISE = np.random.default_rng(0).normal(0, 0.03, 700)
FALLING = 0.7 - 0.6 / (1 + np.exp(-4 * (POWER + 3))) + NOISE


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Watched(True, 8, 2, 0.4, 0.5, 2), ["ended this run after step 8 of 12", "2 evaluations in a row"]),
        (Watched(True, 8, 2, 0.4, 0.5, 2), ["**step 2**: 0.400 nats on 90 held-out examples; at the end it is 0.500"]),
        (
            Watched(False, 12, 2, 0.4, 0.5, 1),
            ["did not end this run", "all of its 12 steps", "lowest after **step 2**"],
        ),
        (Watched(False, 12, 12, 0.4, 0.4, 0), ["did not end this run", "lowest at the end, after **step 12**"]),
        (Watched(True, 8, 2, 0.4, np.nan, 2), ["at the end it is no number"]),
        (Watched(True, 8, 0, np.nan, np.nan, 2), ["was never a number"]),
    ],
)
def test_early_stopping_is_told_by_its_numbers(found: Watched, said: list[str]) -> None:
    for words_said in said:
        assert words_said in early_words(found, PATIENT, 12, 90)


@pytest.mark.parametrize(
    ("losses", "over", "said"),
    [
        (FALLING, False, ["falls steepest at a learning rate of **", "Up to 10 it does not rise again", "a tenth"]),
        (FALLING + np.where(POWER > 0, 0.3, 0), False, ["rises again, but not above where it began: up to 10"]),
        (FALLING + np.where(POWER > 0, 3.0, 0), False, ["it is above where it began: **the run diverges.**"]),
        (FALLING, True, ["the loss was no number any more", "after step 700 of 900"]),
        (0.7 + NOISE, False, ["falls nowhere by more than chance"]),
        (0.7 - 0.02 * (POWER + 6) + NOISE, False, ["falls so slowly that no rate stands out", "is lowest at **"]),
        (FALLING[:44], False, ["44 steps are too few"]),
    ],
)
def test_a_range_test_is_told_by_its_cases(losses: np.ndarray, over: bool, said: list[str]) -> None:
    found = read_range_test(RATES[: losses.size], losses, ended_early=over)
    status = Status("finished", step=losses.size, total_steps=900 if over else losses.size)
    for words_said in said:
        assert words_said in range_words(found, TrainConfig(range_test=True), status)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_of_a_range_test_shows_its_chart_and_nothing_of_what_it_learned(tmp_path: Path, language: str) -> None:
    store = made_run(tmp_path, change(SPECS["classifier"], range_test=True))
    writer = RunWriter(store.folder)
    rows = zip(range(1, 701), FALLING.tolist(), RATES.tolist(), [0.5] * 700, [0.1] * 700, strict=True)
    writer.add_steps(list(rows), 1.0, None)
    writer.set_progress(700, 700, 1.0, 70.0)
    writer.close()
    app = run("train", run=store.id, lang=language)
    assert not app.exception
    said, word = told(app), words(language)
    assert word["range.falls"].split("**")[0] in said
    assert word["result.held_out"] not in said
    assert len(app.get("vega_lite_chart")) == 1
    found = read_range_test(RATES, FALLING, ended_early=False)
    app.button(key="range_train").click().run()
    assert not app.exception
    asked = app.query_params
    assert (asked["branch"], asked["range_test"]) == (store.id, "off")
    assert float(asked["learning_rate"]) == float(f"{found.steepest:.1g}")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_of_a_run_that_stopped_early_names_the_best_step_and_leads_to_it(
    tmp_path: Path, language: str
) -> None:
    store = made_run(tmp_path, change(SPECS["classifier"], patience=2, warm_up=0.0))
    writer = RunWriter(store.folder)
    for number, loss in enumerate((0.6, 0.4, 0.5, 0.5)):
        frame = Frame(
            number, 2 * number, 0.0, 0.0, {"held_out_loss": loss, "train_accuracy": 1, "held_out_accuracy": 1}
        )
        writer.add_frame(frame, None, None, published=True)
    writer.set_progress(6, 12, 0.5, 1.0)
    writer.close()
    app = run("train", run=store.id, lang=language)
    assert not app.exception
    word = words(language)
    assert word["early.note"] in told(app)
    app.button(key="early_best").click().run()
    assert app.query_params["frame"] == "1"
