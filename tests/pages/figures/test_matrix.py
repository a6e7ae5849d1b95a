"""The matrix figure: what is packed comes back, and what is wrong is said with its values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pages.figures.matrix_bytes import quantise, unpack
from pages.figures.matrix_parts import Axis, Panel, Scale
from tests.pages.figures.matrices import ENGLISH_WORDS, TOKENS, attention, figure, panel_of


@pytest.mark.parametrize("kind", ["probability", "signed", "count"])
def test_quantised_values_come_back_within_half_a_step(kind):
    values = np.random.default_rng(1).uniform(0 if kind != "signed" else -7, 1 if kind == "probability" else 7, (5, 5))
    values[1, 2], values[3, 3] = np.nan, -np.inf
    scale = Scale.of(kind, values)
    _, arrays = unpack(figure(Panel("a", "", values, scale)).to_bytes())
    masked = ~np.isfinite(values)
    assert np.isnan(arrays["a"][masked]).all()
    half_step = (scale.high - scale.low) / 254 / 2
    assert np.abs(arrays["a"] - values)[~masked].max() <= half_step * (1 + 1e-9)


def test_codes_are_as_documented():
    codes = quantise(np.array([[0.0, 0.5, 1.0, np.nan, np.inf]]), Scale("probability", 0, 1))
    assert codes.tolist() == [[0, 127, 254, 255, 255]]
    assert quantise(np.zeros((1, 1)), Scale("signed", -3, 3)).item() == 127  # zero is exact


def test_exact_values_come_back_bit_for_bit():
    explain = attention(causal=True)
    masked = Panel("masked", "", explain.masked_scores, Scale.of("signed", explain.masked_scores))
    header, arrays = unpack(figure(masked, detail="exact", explain=explain).to_bytes())
    np.testing.assert_array_equal(arrays["masked"], explain.masked_scores)
    for name, array in explain.arrays().items():
        np.testing.assert_array_equal(arrays[f"explain.{name}"], array)
    assert header["explain"]["panels"] == ["masked"]
    assert header["explain"]["divisor"] == pytest.approx(np.sqrt(8))
    # The panel's values and explain's are one buffer.
    assert header["panels"][0]["values"]["at"] == header["explain"]["arrays"]["masked_scores"]["at"]


def test_header_holds_labels_whole_and_buffers_are_aligned():
    payload = figure(columns=1, version="v7", cell=(1, 2)).to_bytes()
    header, _ = unpack(payload)
    assert header["axes"] == [
        {"name": "query position", "labels": list(TOKENS), "key": "query position"},
        {"name": "key position", "labels": list(TOKENS), "key": "key position"},
    ]
    assert (header["version"], header["cell"], header["layout"], header["columns"]) == ("v7", [1, 2], "single", 1)
    assert header["strings"] == ENGLISH_WORDS
    assert len(payload) % 8 == 0
    assert all(panel["values"]["at"] % 8 == 0 for panel in header["panels"])


def test_panels_may_have_axes_of_their_own():
    explain = attention(d_head=8)
    dimensions = Axis("dimension", tuple(map(str, range(8))))
    panels = (
        Panel("query", "q", explain.query, Scale.of("signed", explain.query), cols=dimensions, role="query"),
        Panel("weights", "w", explain.weights, Scale.of("probability")),
    )
    header, arrays = unpack(figure(*panels, detail="exact", explain=explain).to_bytes())
    assert [panel["role"] for panel in header["panels"]] == ["query", "weights"]
    assert [(panel["rows"], panel["cols"]) for panel in header["panels"]] == [(0, 1), (0, 2)]
    assert header["explain"]["panels"] == ["weights"]
    assert arrays["query"].shape == (5, 8)


def test_scales_hold_their_arrays():
    values = np.array([[-3.0, 2.0], [np.nan, -np.inf]])
    assert Scale.of("signed", values) == Scale("signed", -3, 3)
    assert Scale.of("count", np.array([[0, 4]]), np.array([[9, 1]])) == Scale("count", 0, 9)
    assert Scale.of("probability", values) == Scale("probability", 0, 1)
    assert Scale.of("signed", np.zeros((2, 2))) == Scale("signed", -1, 1)
    assert Scale.of("count", np.full((2, 2), np.nan)) == Scale("count", 0, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scale("probability", 1, 1), r"low=1 must be below high=1"),
        (lambda: Scale("count", 0, np.inf), r"high=inf, both finite"),
        (lambda: Scale("signed", -1, 2), r"signed scale low=-1 must be minus high=2"),
        (lambda: Scale("odd", 0, 1), r"kind='odd' must be one of probability, signed, count, mask, added"),
        (
            lambda: figure(panel_of(np.zeros((5, 4)))),
            r"'a' has values of shape \(5, 4\), its axes have \(5, 5\)",
        ),
        (lambda: figure(panel_of(np.zeros(5))), r"shape \(5,\)"),
        (lambda: figure(panel_of(np.full((5, 5), 1.5))), r"values in \[1.5, 1.5\], outside its scale \[0, 1\]"),
        (lambda: replace(figure(), panels=()), r"panels=\(\) must hold at least one"),
        (lambda: figure(panel_of(np.zeros((5, 5))), panel_of(np.zeros((5, 5)))), r"ids must differ, got \['a', 'a'\]"),
        (lambda: figure(selected="b"), r"selected='b' must be one of the panel ids \['head'\]"),
        (lambda: figure(columns=-1), r"columns=-1 must be 0 or more"),
        (lambda: figure(cell=(0, 5)), r"cell=\(0, 5\) lies outside its panel of shape \(5, 5\)"),
        (lambda: figure(explain=attention(size=4)), r"weights of shape \(4, 4\), panel 'head' has \(5, 5\)"),
        (lambda: figure(explain=replace(attention(), panels=("x",))), r"names panel 'x', needed one of \['head'\]"),
        (lambda: replace(attention(), key=np.zeros((5, 3))), r"one d_head, got \(5, 8\) and \(5, 3\)"),
        (lambda: replace(attention(), scores=np.zeros((5, 3))), r"scores has shape \(5, 3\), needed .*\(5, 5\)"),
        (lambda: replace(attention(), divisor=0), r"divisor=0 must be above 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_values(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_rounding_of_float32_is_no_error():
    figure(panel_of(np.full((5, 5), 1.0000002, dtype=np.float32)))
