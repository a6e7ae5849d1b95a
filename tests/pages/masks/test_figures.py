"""Figures of masks: which panel can be painted, the two values of a mask, and the losses in the chart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pages.figures.charts import rows_of
from pages.figures.matrix import Panel, Scale
from pages.language import strings
from pages.masks.figures import SERIES, batch_figure, losses, painter
from tests.helpers.figures import TOKENS, attention, figure, unpack

WORDS = strings("axis", "en") | strings("masks_figure", "en")
MASK = np.tril(np.ones((5, 5), bool))


def painted(divisor: float | None = 2.0):
    explain = attention(causal=True)
    return painter(MASK, vars(explain) | {"divisor": divisor}, TOKENS, WORDS, note="")


def test_the_painter_has_a_mask_to_paint_beside_scores_and_weights() -> None:
    header, arrays = unpack(painted().to_bytes(stamp=7))
    assert header["paint"] == {"panel": "mask", "stamp": 7}
    assert [panel["id"] for panel in header["panels"]] == ["mask", "masked_scores", "weights"]
    assert header["explain"]["panels"] == ["masked_scores", "weights"]
    np.testing.assert_array_equal(arrays["mask"], MASK)
    assert np.isneginf(arrays["masked_scores"][~MASK]).all()
    assert painted(None).explain is None


def test_other_figures_have_nothing_to_paint() -> None:
    header, _ = unpack(figure().to_bytes())
    assert header["paint"] is None


def test_masks_of_a_batch_stand_side_by_side_in_both_forms() -> None:
    boolean = {f"self_{name}": MASK for name in ("padding", "pairs", "causal", "both")} | {"cross": MASK[:3]}
    added = {f"added_{name.removeprefix('self_')}": np.where(mask, 0.0, -np.inf) for name, mask in boolean.items()}
    added["added_pairs"] = np.where(MASK, 0.0, -1e20)
    drawn = batch_figure(boolean | added, TOKENS, TOKENS[:3], WORDS, note="")
    header, arrays = unpack(drawn.to_bytes())
    assert header["columns"] == 5
    assert [panel["scale"]["kind"] for panel in header["panels"]] == ["mask"] * 5 + ["added", "large", *["added"] * 3]
    assert arrays["cross"].shape == (3, 5)
    np.testing.assert_array_equal(np.isneginf(arrays["added_cross"]), ~MASK[:3])


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("mask", np.full((5, 5), 0.5), r"is a mask; its values must be among \(0, 1\), got \[0.5\]"),
        ("mask", np.full((5, 5), np.nan), "is a mask"),
        ("added", np.ones((5, 5)), r"must be among \(0, -inf\), got \[1.\]"),
    ],
)
def test_a_mask_holds_its_two_values_alone(kind: str, values: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        figure(Panel("a", "", values, Scale.of(kind)))


@pytest.mark.parametrize("paint", ["b", "head"])
def test_only_a_mask_can_be_painted(paint: str) -> None:
    with pytest.raises(ValueError, match=rf"paint='{paint}' must be the id of a panel that is a mask, one of \[\]"):
        replace(figure(), paint=paint)


def test_the_curves_hold_the_runs_numbers() -> None:
    arrays = {
        "honest.loss": np.array([4.0, 3.0, 2.0]),
        "cheater.loss": np.array([4.0, 1.0, 0.5]),
        "honest.held_out_masked": np.array([3.5, 2.5]),
        "cheater.held_out_masked": np.array([4.5, 5.5]),
        "measured_at": np.array([2, 3]),
        "guessing": np.array(4.2),
    }
    words = {name: name for name in (*SERIES, "step", "loss", "guessing")}
    rows = [row for row in rows_of(losses(arrays, words)) if "series" in row]
    for name, values in (("cheater", arrays["cheater.loss"]), ("cheater_masked", [4.5, 5.5])):
        assert [row["loss"] for row in rows if row["series"] == name] == list(values)
    assert [row["step"] for row in rows if row["series"] == "cheater_masked"] == [2, 3]
