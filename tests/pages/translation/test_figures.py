"""Figures of a translation hold the numbers that they are given, and fates differ in more than colour."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from pages.figures.charts import rows_of
from pages.language import words
from pages.translation.figures.charts import forced_bars, hiding_chart, likeliest_bars, lines_chart, shown_chance
from pages.translation.figures.matrices import step_rows, toy_attentions, toy_logits
from pages.translation.figures.search import LEAST_SPAN, MARKS, by_width_chart, ranked_chart, tree_chart
from tests.helpers.pages import strings

STRINGS = strings("matrix")
SAID = {key.partition(".")[2]: word for key, word in words("en").items() if key.startswith("translation_")}


@dataclass(frozen=True)
class Tree:
    """A tree of two first words: one goes on to the end token, the other was dropped."""

    depths = np.array([1, 1, 2])
    parents = np.array([-1, -1, 0])
    ranks = np.array([0, 1, 0])
    words = ("␣un", "le", "[EOS]")
    texts = ("un", "le", "un")
    log_probs = np.array([-0.5, -2.0, -0.7])
    steps = np.array([-0.5, -2.0, -0.2])
    scores = np.array([-0.5, -2.0, -0.6])
    fates = ("kept", "dropped", "finished")
    on_best = np.array([True, False, True])


def texts(rows: list[dict], field: str) -> list[str]:
    """Return a column of those rows that have it."""
    return [row[field] for row in rows if field in row]


def test_fates_are_told_apart_by_signs_and_dashes() -> None:
    chart = tree_chart(Tree(), SAID, depth=2, start="[BOS]", whole=True)
    shown = texts(rows_of(chart), "word")
    assert {"un", f"{MARKS['dropped']}le", f"{MARKS['finished']}[EOS]"} <= set(shown)
    assert len(set(MARKS.values())) == 3
    assert '"strokeDash": [3, 4]' in json.dumps(chart.to_dict())


def test_a_tree_is_drawn_to_its_depth_and_marks_the_best_only_at_the_end() -> None:
    rows = rows_of(tree_chart(Tree(), SAID, depth=1, start="[BOS]", whole=False))
    assert not any("[EOS]" in word for word in texts(rows, "word"))
    assert SAID["best"] not in texts(rows, "fate")


def test_probabilities_are_never_rounded_to_0_or_100_percent() -> None:
    assert [shown_chance(chance, digits=1) for chance in (0.0, 1e-9, 0.0004, 0.25, 0.9996, 1.0)] == [
        "0.0%",
        "<0.1%",
        "<0.1%",
        "25.0%",
        ">99.9%",
        "100.0%",
    ]
    assert shown_chance(0.997, digits=0) == ">99%"
    unders = texts(rows_of(tree_chart(Tree(), SAID, depth=2, start="[BOS]", whole=True)), "under")
    assert sorted(unders) == sorted(shown_chance(np.exp(step), digits=1) for step in Tree.steps)


@pytest.mark.parametrize("scores", [[-0.65, -0.65 + 1e-9, -0.65], [0.0, -1e-12], [-3.0, -1.0]])
def test_rounding_noise_is_drawn_as_a_level_line(scores: list[float]) -> None:
    said = SAID | {"value": "score", "score": "score"}
    chart = by_width_chart(range(1, len(scores) + 1), {"score": np.array(scores)}, said, percent=False)
    low, high = chart.to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert high - low >= LEAST_SPAN
    assert low < min(scores)
    assert max(scores) <= high <= 0


def test_lines_are_drawn_for_words_written_so_far() -> None:
    weights = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    rows = rows_of(lines_chart(weights, ("a", "b"), ("x", "y", "z"), SAID, step=1))
    steps = {row["step"] for row in rows if "step" in row}
    assert steps == {0, 1}
    line = next(row for row in rows if row.get("step") == 1 and row.get("source") == "b")
    assert line["weight"] == pytest.approx(0.8)


def test_bars_mark_the_written_word() -> None:
    rows = rows_of(likeliest_bars(("␣chat", "chien"), np.array([0.7, 0.2]), SAID))
    assert [row["word"] for row in rows] == ["1 · chat", "2 · chien"]
    assert [row["kind"] for row in rows] == [SAID["written"], SAID["passed"]]


def test_rows_of_a_step_have_a_line_a_head_and_their_mean() -> None:
    own, cross = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    figure = step_rows(own, cross, ("[BOS]", "x"), ("a", "b", "c"), SAID)
    assert figure.panels[0].values[-1].tolist() == [0.75, 0.25]
    assert figure.axes(figure.panels[1])[1].labels == ("a", "b", "c")


def test_hiding_and_forcing_keep_their_numbers() -> None:
    rows = rows_of(hiding_chart(np.array([0.4, 0.6]), np.array([-0.1, 0.02]), ("a", "b"), SAID))
    assert [row["points"] for row in rows] == pytest.approx([-10.0, 2.0])
    probabilities, tops = np.array([0.9, 0.01]), np.array([0.9, 0.5])
    rows = rows_of(forced_bars(("x", "y"), probabilities, np.array([1, 7]), ("x", "z"), tops, SAID))
    assert [row["word"] for row in rows] == ["0 x", "1 y"]
    assert [row["over"] for row in rows] == ["", "z"]
    assert [row["rank"] for row in rows] == [1, 7]
    assert [row["number"] for row in rows] == ["90%", "1%"]
    assert [row["line"] for row in rows] == [None, 0.5]


def test_searches_are_named_at_what_they_found() -> None:
    rows = rows_of(ranked_chart(("a b", ""), np.array([-1.0, -2.0]), ("width 2", ""), (True, False), SAID))
    assert rows[0]["mark"] == f"width 2 {SAID['right']}"
    assert rows[1]["text"] == "2 · ∅"
    said = SAID | {"value": "share", "found": "found", "right": "right"}
    curves = {"found": np.array([0.5, 1.0]), "right": np.array([0.0, 0.5])}
    assert len(rows_of(by_width_chart((1, 2), curves, said, percent=True))) == 4


def test_the_logits_of_all_sentences_share_one_scale_and_name_what_was_read() -> None:
    logits = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 20
    figure = toy_logits(logits, np.array([[1, 0, 0], [1, 3, 0]]), SAID)
    assert [figure.axes(panel)[0].labels for panel in figure.panels] == [
        ("0: 1", "1: 0", "2: 0"),
        ("0: 1", "1: 3", "2: 0"),
    ]
    assert {(panel.scale.low, panel.scale.high) for panel in figure.panels} == {(-20.0, 20.0)}
    np.testing.assert_array_equal([panel.values for panel in figure.panels], logits)


def test_the_toy_batch_shows_a_mask_beside_its_weights() -> None:
    arrays = {
        f"{name}.{part}": np.eye(3)
        for name in ("encoder_self", "decoder_self", "cross")
        for part in ("mask", "weights")
    }
    ids = np.array([1, 2, 0])
    figure = toy_attentions(arrays, ids, ids, SAID, filled=False, note="")
    assert [panel.scale.kind for panel in figure.panels[:2]] == ["mask", "probability"]
    assert figure.axes(figure.panels[0])[0].labels == ("0: 1", "1: 2", "2: 0")
