"""The fresh maps beside the film's: what the page says is what the engine measures, and only where there are maps."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from pages.figures.charts import rows_of
from pages.kit import asking
from pages.kit.asking import ask
from pages.language import words
from pages.train.figures import map_chart, moves_chart, reach_of
from pages.train.refitted import cost_of_aligning, times_as_far, what_is_left
from tests.helpers.made_runs import SPECS, made_run
from tests.helpers.pages import answered, repeats, run, told
from transformer_core.analysis.refitted_maps import refitted_maps

SAID = {key.partition(".")[2]: word for key, word in words("en").items() if key.startswith("refit.")}


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the runs of a test in a folder of its own, which the processes of the pool do not know."""
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    monkeypatch.setattr(asking, "_here", True)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_both_maps_and_their_displacement_are_shown(language: str, tmp_path: Path) -> None:
    store = made_run(tmp_path)
    app = run("train", lang=language, run=store.id, refit_open="on", refit_start="pca", refit_frame="2")
    assert not app.exception
    found = refitted_maps(run=store.id, frames=4, start="pca")
    app = answered(app, times_as_far(*found.mean_moved[1::-1]))
    assert words(language)["refit.aligned"] in told(app)
    aligned, refitted, turned = found.mean_moved
    for number in (aligned, refitted, turned, found.aligned_moved[2], found.refitted_moved[2]):
        assert f"{number:.2f}" in told(app)
    assert f"{found.refitted_trust[2]:.3f}" in told(app)


@pytest.mark.parametrize(
    ("refitted", "turned", "trust", "said"),
    [
        (2.0, 1.0, 0.910, ("left", "trust_cost")),
        (2.0, 0.4, 0.909, ("nothing_left", "trust_little")),
        (2.0, 0.5, 0.891, ("nothing_left", "trust_little")),
        (2.0, 0.6, 0.890, ("left", "trust_gain")),
    ],
)
def test_what_turning_and_aligning_do_is_said_by_their_numbers(
    refitted: float, turned: float, trust: float, said: tuple[str, str]
) -> None:
    found = Mock(mean_moved=(0.5, refitted, turned), refitted_trust=np.array([trust]), aligned_trust=np.array([0.9]))
    for name, sentence in zip(said, (what_is_left(found), cost_of_aligning(found)), strict=True):
        assert sentence.startswith(SAID[name].partition("{")[0])
        assert sentence.endswith(SAID[name].rpartition("}")[2])


def test_the_first_frame_has_moved_from_nowhere(tmp_path: Path) -> None:
    app = run("train", run=made_run(tmp_path).id, refit_open="on", refit_frame="0")
    assert not app.exception
    assert words("en")["refit.first"] in told(app)
    assert "nan" not in told(app).lower().split()


def test_there_is_no_such_box_where_there_are_no_maps(tmp_path: Path) -> None:
    heading = words("en")["refit.heading"]
    for store in (made_run(tmp_path, SPECS["translation"]), made_run(tmp_path, state="running")):
        app = run("train", run=store.id)
        assert not app.exception
        assert (heading in [box.label for box in app.expander]) == (store.spec.data.kind == "classifier")


@pytest.mark.parametrize("query", [{"refit_frame": "99"}, {"refit_frame": "-1", "refit_start": "x"}], ids=str)
def test_a_link_with_impossible_values_still_opens_the_page(query: dict[str, str], tmp_path: Path) -> None:
    assert not run("train", run=made_run(tmp_path).id, refit_open="on", **query).exception


def test_the_script_computes_the_same(tmp_path: Path) -> None:
    answer = ask(refitted_maps, run=made_run(tmp_path).id, frames=3, start="random")
    repeats(answer.script, answer.arrays)


@pytest.mark.parametrize(("numbers", "came"), [((0.3, 0.3), "alike"), ((0.5, 0.3), "twice"), ((0.9, 0.3), "far")])
def test_how_many_times_as_far(numbers: tuple[float, float], came: str) -> None:
    assert times_as_far(*numbers) == came


def test_a_map_keeps_its_points_classes_and_axes() -> None:
    xy = np.array([[0.5, -1.0], [2.0, 0.0]])
    chart = map_chart(xy, np.array([0, 1]), np.array([False, True]), ("bad", "good"), SAID, reach=reach_of(xy, -2 * xy))
    rows = rows_of(chart)
    assert [(row["x"], row["y"], row["label"], row["part"]) for row in rows] == [
        (0.5, -1.0, "bad", SAID["train"]),
        (2.0, 0.0, "good", SAID["held_out"]),
    ]
    low, high = chart.to_dict()["encoding"]["x"]["scale"]["domain"]
    assert -low == high >= 4.0


def test_the_curves_are_the_displacements() -> None:
    moved = np.array([np.nan, 0.2, 0.1])
    rows = rows_of(moves_chart(np.array([0.0, 5.0, 9.0]), moved, 3 * moved, 2 * moved, SAID, at=5.0))
    values = {(row["series"], row["x"]): row["y"] for row in rows if "series" in row}
    assert values[SAID["aligned"], 5.0] == pytest.approx(0.2)
    assert values[SAID["refitted"], 9.0] == pytest.approx(0.3)
    assert (SAID["turned"], 0.0) not in values
