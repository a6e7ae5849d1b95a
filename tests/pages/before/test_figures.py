"""Figures of recurrent models hold the numbers that they are given, in the order shown."""

import numpy as np
import pytest

from pages.before.figures import (
    Looks,
    foreseen_bars,
    gates_figure,
    kept_bars,
    length_chart,
    looks_figure,
    numbered,
    states_figure,
    word_bars,
)
from pages.figures.charts import rows_of, to_svg

SAID = {name: name for name in ("word", "unit", "gate", "update_gate", "reset_gate", "kept", "up", "target", "source")}
SAID |= {name: name for name in ("row_top", "col_top")}
TOKENS = ("[BOS]", "␣a", "␣a")


def gates() -> np.ndarray:
    """Return gates (gate, pos, unit) in [0, 1]."""
    return np.random.default_rng(0).random((2, 3, 4))


@pytest.mark.parametrize("sort", [True, False])
def test_units_are_ordered_by_what_they_keep(sort: bool) -> None:
    values = gates()
    names = ("reset_gate", "update_gate")
    figure = gates_figure(values, names, TOKENS, SAID, kept=values[1], sort=sort)
    order = [int(label) for label in figure.cols.labels]
    means = values[1].mean(0)[order]
    assert (np.diff(means) >= 0).all() if sort else order == [0, 1, 2, 3]
    assert [panel.id for panel in figure.panels] == ["update_gate", "reset_gate"]
    for panel, gate in zip(figure.panels, values[::-1], strict=True):
        np.testing.assert_array_equal(panel.values, gate[:, order])
    assert figure.rows.labels == TOKENS
    figure.to_bytes()


def test_two_models_share_the_source_and_the_words_where_they_are_the_same() -> None:
    weights = np.full((2, 3), 1 / 3)
    first = Looks("old", "Old", weights, ("x", "y"), TOKENS)
    same = Looks("new", "New", weights, ("x", "y"), TOKENS)
    other = Looks("new", "New", weights, ("z", "y"), TOKENS)
    said = SAID | {"weight": "weight"}
    figure = looks_figure([first, same], said)
    rows, cols = figure.axes(figure.panels[1])
    assert (rows.key, cols.key) == ("target", "source")
    figure = looks_figure([first, other], said)
    assert figure.axes(figure.panels[1])[0].key == "new"
    figure.to_bytes()


def test_bars_hold_each_word_once_however_often_it_occurs() -> None:
    assert numbered(TOKENS) == ("0 [BOS]", "1 a", "2 a")
    kept = np.array([0.0, 0.25, 1.0])
    rows = rows_of(kept_bars(TOKENS, kept, SAID))
    assert [row["kept"] for row in rows] == kept.tolist()
    rows = rows_of(word_bars(TOKENS, {"forward": kept, "backward": kept[::-1]}, SAID))
    assert [row["value"] for row in rows] == [*kept.tolist(), *kept[::-1].tolist()]
    assert len({row["word"] for row in rows}) == 3


def test_states_stand_in_the_order_given() -> None:
    values = np.random.default_rng(0).standard_normal((3, 4))
    order = np.array([2, 0, 3, 1])
    said = SAID | {"hidden": "hidden", "cell": "cell", "state": "state"}
    figure = states_figure({"cell": values, "hidden": values}, TOKENS, said, order=order)
    assert [panel.id for panel in figure.panels] == ["cell", "hidden"]
    np.testing.assert_array_equal(figure.panels[0].values, values[:, order])
    assert figure.cols.labels == ("2", "0", "3", "1")
    figure.to_bytes()


def test_models_beside_each_other_have_their_numbers_and_gaps() -> None:
    said = {name: name for name in ("nats", "text", "aside", "aside_high")}
    chart = foreseen_bars(["a", "b"], np.array([1.0, 2.0]), np.array([1.5, np.nan]), np.array([2.5, np.nan]), said)
    rows = rows_of(chart)
    assert [row["text"] for row in rows] == [1.0, 2.0]
    assert rows[1]["aside"] is None
    assert "2.00" in to_svg(chart, ("title",))


def test_bleu_stands_at_its_length() -> None:
    bleu = np.array([[40.0, 30.0], [60.0, 50.0]])
    said = {name: name for name in ("words", "bleu", "low", "high", "model")}
    chart = length_chart(["4 to 8\n3", "9 to 11\n2"], ["a", "b"], bleu, bleu - 5, bleu + 5, said)
    rows = rows_of(chart)
    assert [(row["model"], row["bleu"]) for row in rows] == [("a", 40), ("a", 30), ("b", 60), ("b", 50)]
    assert all(text in to_svg(chart, ("title",)) for text in ("4 to 8", "9 to 11", ">60<"))


def test_letters_of_a_long_text_are_named_without_their_places() -> None:
    chart = word_bars(tuple("abcdefghijklmnopqrstuvwxyz"), {"x": np.arange(26.0)}, SAID)
    assert ">z<" in to_svg(chart, ("title",))
