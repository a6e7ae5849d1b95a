"""The built-in reviews: linear maps by depth, calibration and agreement; formulas held against their definitions."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.helpers.engine import small_bundle
from transformer_core.analysis.encoder.calibration import (
    best_temperature,
    bins_of,
    calibration,
    calibration_error,
    wilson,
)
from transformer_core.analysis.encoder.layers import read_reviews
from transformer_core.analysis.encoder.linear_probes import fit_logistic, linear_probes
from transformer_core.analysis.encoder.measures import agreement_on_reviews
from transformer_core.bundle import Bundle

EDGES = np.linspace(0.5, 1.0, 11)


def reviewer(**shape) -> Bundle:
    return replace(small_bundle(max_len=40, **shape), labels=("negative", "positive"))


def test_a_logistic_regression_is_where_its_slope_is_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(80, 3, generator=generator)
    labels = (x @ torch.tensor([2.0, -1.0, 0.0]) + 0.5 * torch.randn(80, generator=generator) > 0).long()
    fitted = fit_logistic(x, labels, penalty=0.7)
    design = torch.cat([x.double(), torch.ones(80, 1, dtype=torch.float64)], dim=1)
    slope = design.T @ ((design @ fitted).sigmoid() - labels) + 0.7 * torch.cat([fitted[:-1], torch.zeros(1)])
    assert float(slope.abs().max()) < 1e-3
    assert fitted[0] > 1 > 0 > fitted[1]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_probes_and_the_own_map_by_depth(pooling: str) -> None:
    bundle = reviewer(pooling=pooling)
    found = linear_probes(bundle=bundle, train=30, held_out=24)
    assert found.probes.shape == found.own_map.shape == (2, 3)
    assert found.pooling == pooling
    read = read_reviews(bundle, train=0, held_out=24)
    right = float((read.logits.argmax(-1) == read.labels).double().mean())
    own = 0 if pooling == "cls" else 1
    assert found.own_map[own, -1] == pytest.approx(right)
    assert found.probes[0, 0] == pytest.approx(0.5, abs=0.2)  # [CLS] is the same vector in every sentence


def test_padding_changes_nothing() -> None:
    bundle = reviewer(pooling="mean")
    many, one = (read_reviews(bundle, train=0, held_out=count) for count in (4, 2))
    torch.testing.assert_close(many.vectors[:, :, :2], one.vectors, atol=1e-5, rtol=0) if torch.equal(
        many.labels[:2], one.labels
    ) else None
    logits = many.vectors[1, -1] @ bundle.model.class_proj.weight.T + bundle.model.class_proj.bias  # pyright: ignore
    torch.testing.assert_close(logits, many.logits, atol=1e-5, rtol=0)


def test_calibration_counts_every_review_once() -> None:
    found = calibration(bundle=reviewer(), text="a glass box", n_tokens=12, reviews=40)
    assert found.counts.sum() == 40
    full = found.counts > 0
    assert np.isnan(found.accuracy[~full]).all()
    overall = (found.accuracy[full] * found.counts[full]).sum() / 40
    assert overall == pytest.approx(found.overall)
    gap = (np.abs(found.accuracy - found.confidence)[full] * found.counts[full]).sum() / 40
    assert gap == pytest.approx(found.error)
    assert found.edges[found.place] <= found.here <= found.edges[found.place + 1] + 1e-9
    assert (found.low[full] <= found.accuracy[full] + 1e-12).all()
    assert (found.high[full] >= found.accuracy[full] - 1e-12).all()


def test_a_temperature_changes_confidence_and_not_what_is_right() -> None:
    asked = {"bundle": reviewer(), "text": "a glass box", "n_tokens": 12, "reviews": 40}
    cold, warm = (calibration(**asked, temperature=temperature) for temperature in (0.5, 3.0))
    assert cold.overall == warm.overall
    assert cold.mean_confidence > warm.mean_confidence
    assert cold.best == warm.best
    assert cold.error_before == warm.error_before


def test_the_best_temperature_undoes_one_that_was_put_on() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4_000, 2, generator=generator, dtype=torch.float64) * 2
    labels = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
    assert best_temperature(3 * logits, labels) == pytest.approx(3.0, rel=0.12)


def test_bins_and_the_error_by_hand() -> None:
    np.testing.assert_array_equal(bins_of(np.array([0.5, 0.55, 0.551, 1.0]), EDGES), [0, 0, 1, 9])
    confidence, right = np.array([0.6, 0.6, 0.9, 0.9]), np.array([1.0, 0.0, 1.0, 1.0])
    assert calibration_error(confidence, right, EDGES) == pytest.approx((abs(1.2 - 1) + abs(1.8 - 2)) / 4)


def test_wilsons_interval_against_a_printed_value() -> None:
    low, high = wilson(np.array([8.0, 0.0]), np.array([10, 0]))
    assert (low[0], high[0]) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert np.isnan(low[1])


def test_other_labels_and_numbers_are_refused() -> None:
    asked = {"text": "a", "n_tokens": 12}
    with pytest.raises(ValueError, match="glass tells no, yes"):
        calibration(bundle=small_bundle(), reviews=10, **asked)
    for wrong in ({"reviews": 0}, {"bins": 1}, {"temperature": 0.0}, {"temperature": float("nan")}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
            calibration(bundle=reviewer(), **({"reviews": 10} | asked | wrong))


def test_agreement_over_reviews() -> None:
    found = agreement_on_reviews(bundle=reviewer(), count=3)
    assert found.mean_by_review.shape == (3,)
    there = np.isfinite(found.rho)
    np.testing.assert_allclose(found.rho[there], found.rho.T[there])
    assert (found.same_first <= 1).all()
    with pytest.raises(ValueError, match="count=61 must be from 1 to 60"):
        agreement_on_reviews(bundle=reviewer(), count=61)
