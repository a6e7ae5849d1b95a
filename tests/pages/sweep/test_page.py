"""The Sweep page: which runs it asks for, what it starts, and what it says of those that there are."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.kit.exports import rows_csv
from pages.language import words
from pages.sweep.board import QUESTIONS, rows_of
from pages.sweep.coordinates import axes_of
from pages.sweep.figures import coordinates
from pages.sweep.plan import SHORT, settings_of, values_near
from pages.train.data import in_language
from pages.train.settings import ALL
from tests.helpers.made_runs import SPECS, made_run
from tests.helpers.pages import asks, nothing_starts, run, told
from transformer_core.shares import mean_interval
from transformer_core.training.runs.presets import QUICK
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.settings import change, settings
from transformer_core.training.runs.sweep import Sweep, outcome

ACTIVATION = {"sweep_one": "activation", "sweep_one_values": "relu,gelu", "sweep_seeds": "5"}


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Keep the runs of a test in a folder of its own; start nothing, but remember what was to be started."""
    return nothing_starts(monkeypatch, tmp_path).started


def page(lang: str = "en", **query: str) -> AppTest:
    """Open the page."""
    app = run("sweep", lang=lang, **query)
    assert not app.exception, app.exception
    return app


def made_sweep(root: Path, ends: list[list[float]], language: str = "en", **values: tuple) -> Sweep:
    """Make the finished runs of a sweep of the preset, which end at these accuracies."""
    sweep = Sweep(
        replace(change(in_language(QUICK, language), epochs=1), name=SHORT), values, tuple(range(len(ends[0])))
    )
    for cell, row in zip(sweep.cells, ends, strict=True):
        for seed, end in zip(sweep.seeds, row, strict=True):
            made_run(root, sweep.spec(cell, seed), held_out=end)
    return sweep


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_prepared_question_sets_every_control_and_starts_its_runs(
    language: str, name: str, started: list[str], tmp_path: Path
) -> None:
    app = page(language)
    app.button(key=f"question {name}").click().run()
    app.button(key="sweep_go").click().run()
    assert not app.exception
    question = QUESTIONS[name]
    runs = [RunList(tmp_path).open(one) for one in started]
    wanted = Sweep(runs[0].spec, question.values, tuple(range(question.seeds)))
    assert len(started) == len(wanted)
    assert all(one is not None for row in wanted.find(runs) for one in row)
    again = page(**app.query_params)
    assert "sweep_go" in {button.key for button in again.button}  # what was never begun can be gone on with


def test_every_setting_offers_values_that_it_can_have() -> None:
    for spec in SPECS.values():
        now = settings(spec)
        for name, setting in settings_of(spec).items():
            near = values_near(setting, now[name])
            assert near
            assert all(setting.read(one) is not None for one in near), name
    assert {one.name for one in ALL} >= set(settings_of(QUICK))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("second", "option"),
    [([0.8, 0.81, 0.8, 0.82, 0.8], "better"), ([0.7, 0.6, 0.71, 0.69, 0.7], "within"), ([0.6] * 5, "worse")],
)
def test_a_question_is_judged_by_the_interval_of_its_seeds(
    language: str, second: list[float], option: str, tmp_path: Path
) -> None:
    first = [0.7, 0.71, 0.69, 0.7, 0.7]
    made_sweep(tmp_path, [first, second], language, activation=("relu", "gelu"))
    app, word = page(language, **ACTIVATION), words(language)
    moved, low, high = mean_interval(100 * (np.array(second) - np.array(first)))
    assert f"{moved:+.1f}".replace("-", "−") not in told(app)
    asks(app)[0].set_value(option).run()
    said = told(app)
    assert word["try.right"] in said
    for number in (moved, low, high):
        assert f"{number:+.1f}".replace("-", "−") in said
    assert f"{np.mean(first):.1%}"[:4] in str(app.dataframe[0].value)


def test_its_files_hold_every_run(tmp_path: Path) -> None:
    sweep = made_sweep(tmp_path, [[0.7, 0.71], [0.8, 0.83]], learning_rate=(1e-3, 3e-3))
    found = outcome(sweep, sweep.find(RunList(tmp_path).all()))
    rows = rows_of(sweep, found)
    assert [row["final_held_out_accuracy"] for row in rows] == pytest.approx([0.7, 0.71, 0.8, 0.83])
    assert {row["run"] for row in rows} == {one.id for one in RunList(tmp_path).all()}
    json.dumps(rows, allow_nan=False)
    written = list(csv.DictReader(io.StringIO(rows_csv(rows))))
    assert [float(row["final_held_out_accuracy"]) for row in written] == pytest.approx([0.7, 0.71, 0.8, 0.83])


def test_two_settings_make_a_grid_and_two_cells_are_compared(tmp_path: Path) -> None:
    sweep = made_sweep(
        tmp_path, [[0.6, 0.62], [0.7, 0.71], [0.65, 0.66], [0.9, 0.91]], n_layers=(1, 2), norm_order=("pre", "post")
    )
    asked = {"sweep_one": "n_layers", "sweep_one_values": "1,2", "sweep_two": "norm_order", "sweep_seeds": "2"}
    app = page(**asked, sweep_two_values="pre,post", sweep_first="0", sweep_second="3")
    assert len(app.get("vega_lite_chart")) == 4
    assert "+29.5" in told(app)
    found = outcome(sweep, sweep.find(RunList(tmp_path).all()))
    axes = axes_of(sweep, found)
    assert [list(one.places) for one in axes[:3]] == [[0] * 4 + [1] * 4, [0, 0, 1, 1] * 2, [0, 1] * 4]
    assert axes[4].places == pytest.approx([0.6, 0.62, 0.7, 0.71, 0.65, 0.66, 0.9, 0.91])
    drawn = coordinates(axes, [str(number) for number in range(8)]).to_dict()
    assert [one["name"] for one in drawn["params"]] == [f"axis_{number}" for number in range(5)]
    rule = drawn["hconcat"][0]["layer"][0]["encoding"]["opacity"]["condition"]["test"]
    assert str(rule).count("axis_") == 5
    app.button(key="sweep_compare").click().run()
    assert app.session_state["page"] == "compare"


@pytest.mark.parametrize(
    "asked",
    [
        {"sweep_one_values": "x" * 10_000},
        {"sweep_one_values": "1,2,3,4,5,6,7,8"},
        {"sweep_one": "nothing", "sweep_two": "seed"},
        {"sweep_base": "nothere123", "sweep_seeds": "-1"},
        {"sweep_one": "n_heads", "sweep_one_values": "3"},
        {"sweep_one": "learning_rate", "sweep_two": "learning_rate"},
        {"sweep_seeds": "10", "sweep_one_values": "0.001,0.002,0.003,0.004"},
        {"sweep_first": "99", "sweep_one_values": "nan,inf"},
    ],
)
def test_a_link_that_asks_for_what_cannot_be_is_survived(asked: dict[str, str]) -> None:
    app = page(**asked)
    shown = [*app.toast, *app.warning, *app.selectbox]
    assert shown


def test_a_film_is_of_the_seed_on_its_button_and_two_runs_compared_have_the_same_seed(tmp_path: Path) -> None:
    made_sweep(tmp_path, [[0.6, 0.62], [0.7, 0.71]], activation=("relu", "gelu"))
    runs = RunList(tmp_path)
    first = next(one for one in runs.all() if one.spec.training.seed == 0 and one.spec.model.activation == "relu")
    runs.delete(first.id)
    app = page(sweep_one="activation", sweep_one_values="relu,gelu", sweep_seeds="2")
    films = [button.label for button in app.button if "Film" in button.label]
    assert films == [words("en")["sweep.open_run"].format(seed=1)]
    app.button(key="sweep_compare").click().run()
    pair = [
        runs.open(app.query_params[name][0] if isinstance(app.query_params[name], list) else app.query_params[name])
        for name in ("run", "other")
    ]
    assert [one.spec.training.seed for one in pair] == [1, 1]
    assert [one.spec.model.activation for one in pair] == ["relu", "gelu"]


def test_of_other_peoples_runs_the_results_are_there_and_no_way_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_sweep(tmp_path, [[0.6, 0.62], [0.7, 0.71]], activation=("relu", "gelu"))
    monkeypatch.setattr("pages.sweep.board.may_change", lambda owner: False)
    app = page(sweep_one="activation", sweep_one_values="relu,gelu", sweep_seeds="2")
    assert "+9.5" in told(app)
    keys = {button.key for button in app.button if button.key}
    assert not any(key == "sweep_compare" or key.startswith("open ") for key in keys)


def test_fewer_seeds_than_a_question_needs_do_not_answer_it(tmp_path: Path) -> None:
    made_sweep(tmp_path, [[0.6, 0.62], [0.61, 0.6]], norm_order=("post", "pre"))
    app = page(sweep_one="norm_order", sweep_one_values="post,pre", sweep_seeds="2")
    assert not asks(app)
    assert words("en")["sweep.guess_never"] not in told(app)
