"""From vectors to a verdict: by layer, coordinate and sentence; over the built-in reviews; with padding in the mean."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.helpers import refusals
from tests.helpers.engine import shipped, small_bundle
from transformer_core.analysis.encoder.calibration import (
    best_temperature,
    bins_of,
    calibration,
    calibration_error,
)
from transformer_core.analysis.encoder.layers import POOLINGS, layer_verdicts, read_reviews
from transformer_core.analysis.encoder.linear_probes import fit_logistic, linear_probes
from transformer_core.analysis.encoder.measures import agreement_on_reviews
from transformer_core.analysis.encoder.padded_mean import padded_mean
from transformer_core.analysis.encoder.two_sentences import aligned, depth_of_parting, sentence_pair
from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt

BUNDLE = shipped("sentiment")
TEXT = "a glass box a bell"
SHAPES = [{}, {"norm_order": "post"}, {"pooling": "mean"}, {"embedding_norm": True, "n_classes": 3, "pooler": "tanh"}]


def bundle_of(shape: dict):
    bundle = small_bundle(**shape)
    return replace(bundle, labels=("no", "yes", "maybe")) if shape.get("n_classes") == 3 else bundle


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_last_depth_is_the_models_own_verdict(shape: dict) -> None:
    bundle = bundle_of(shape)
    found = layer_verdicts(prompt=Prompt(bundle, TEXT, 12))
    own = POOLINGS.index(found.pooling)
    probabilities = read(bundle, bundle.tokenizer.encode(TEXT)).probabilities
    np.testing.assert_allclose(found.probabilities[own, -1], probabilities, atol=1e-5)
    np.testing.assert_allclose(found.final, probabilities, atol=1e-6)
    assert found.winner == int(np.argmax(probabilities))
    margin = np.log(found.probabilities[..., found.winner]) - np.log(found.probabilities[..., found.rival])
    np.testing.assert_allclose(found.margins, margin, atol=1e-4)


def test_the_verdict_is_settled_from_the_depth_named() -> None:
    for seed in ("a box", "a bell a bell", TEXT):
        found = layer_verdicts(prompt=Prompt(small_bundle(), seed, 12))
        classes = found.probabilities[0].argmax(-1)
        assert (classes[found.settled :] == found.winner).all()
        assert found.settled == 0 or classes[found.settled - 1] != found.winner


@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
def test_moves_are_the_traces_own(shape: dict) -> None:
    bundle = bundle_of(shape)
    found = layer_verdicts(prompt=Prompt(bundle, TEXT, 12))
    trace = read(bundle, bundle.tokenizer.encode(TEXT)).trace
    before, after = (trace[f"encoder.layer{layer}.residual"][0].double() for layer in (0, 1))
    moved = (after - before).norm(dim=-1) / before.norm(dim=-1)
    np.testing.assert_allclose(found.moves[1], moved.numpy(), rtol=1e-5)
    cosine = torch.cosine_similarity(before, after, dim=-1).numpy()
    np.testing.assert_allclose(np.cos(np.radians(found.angles[1])), cosine, atol=1e-5)
    assert found.moves[found.farthest] == found.moves.max()


def test_equal_sentences_are_never_told_apart() -> None:
    found = sentence_pair(prompt=(prompt := Prompt(small_bundle(), TEXT, 12)), other=prompt)
    assert not any(found.changed)
    assert found.distances.max() == 0
    assert found.spread.max() == 0
    np.testing.assert_array_equal(found.margins[0], found.margins[1])


def test_one_word_differs_at_the_embedding_and_spreads() -> None:
    bundle, other = small_bundle(), "a glass box a box"
    found = sentence_pair(prompt=Prompt(bundle, TEXT, 12), other=Prompt(bundle, other, 12))
    assert sum(found.changed) == 1
    changed = found.changed.index(True)
    assert found.labels[changed] == "bell → box"
    assert (np.flatnonzero(found.spread[0]) == [changed]).all()
    assert (found.spread[1] > 0).all()
    probabilities = read(bundle, bundle.tokenizer.encode(other)).probabilities
    np.testing.assert_allclose(found.probabilities[1], probabilities, atol=1e-6)
    assert found.moved == pytest.approx(probabilities[found.winner] - found.probabilities[0, found.winner], abs=1e-6)


def test_an_added_word_leaves_the_others_aligned() -> None:
    assert aligned((1, 2, 3), (1, 9, 2, 3)) == [(0, 0), (1, 2), (2, 3)]
    assert aligned((1, 2, 3), (1, 9, 3)) == [(0, 0), (1, 1), (2, 2)]
    assert aligned((1, 2, 3, 4), (1, 5, 6, 4)) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert aligned((), (3, 4, 5)) == []


def test_the_depth_of_parting_is_the_first_that_stays() -> None:
    assert depth_of_parting(np.array([0.0, 0.6, 0.1, 0.5, 1.0])) == 3
    assert depth_of_parting(np.array([0.0, -0.2, -0.6, -0.9])) == 2
    assert depth_of_parting(np.array([0.0, 0.0])) == 0


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


def test_the_logits_are_those_of_the_vectors_that_are_pooled() -> None:
    bundle = reviewer(pooling="mean")
    read = read_reviews(bundle, train=0, held_out=4)
    logits = read.vectors[1, -1] @ bundle.model.class_proj.weight.T + bundle.model.class_proj.bias  # pyright: ignore
    torch.testing.assert_close(logits, read.logits, atol=1e-5, rtol=0)


def test_calibration_counts_every_review_once() -> None:
    found = calibration(prompt=Prompt(reviewer(), "a glass box", 12), reviews=40)
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
    asked = {"prompt": Prompt(reviewer(), "a glass box", 12), "reviews": 40}
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


def test_agreement_over_reviews() -> None:
    found = agreement_on_reviews(bundle=reviewer(), count=3)
    assert found.mean_by_review.shape == (3,)
    there = np.isfinite(found.rho)
    np.testing.assert_allclose(found.rho[there], found.rho.T[there])
    assert (found.same_first <= 1).all()


REVIEW = "The film was not good, but I loved the ending."


def test_one_mean_drifts_and_the_other_stays() -> None:
    found = padded_mean(prompt=Prompt(BUNDLE, REVIEW, 64), pads=16)
    assert found.pads.tolist() == list(range(17))
    assert found.real_moves.max() < 1e-5
    assert np.ptp(found.real_shares) < 1e-5
    assert (np.diff(found.all_moves) > 0).all()
    assert found.all_moves[-1] > 0.1
    assert found.all_shares[0] == pytest.approx(found.real_shares[0], abs=1e-6)


def test_padding_that_is_typed_is_no_real_token() -> None:
    plain, typed = (padded_mean(prompt=Prompt(BUNDLE, text, 64), pads=2) for text in ("good", "good [PAD]"))
    assert typed.n_real == plain.n_real
    assert typed.real_moves.max() < 1e-5


def test_a_model_that_reads_its_mean_gives_the_same_verdict() -> None:
    bundle = small_bundle(pooling="mean")
    found = padded_mean(prompt=Prompt(bundle, "a glass box", 8), pads=3)
    with torch.inference_mode():
        logits = bundle.model(torch.tensor([bundle.tokenizer.encode("a glass box").ids]))[0]
    assert found.winner == int(logits.argmax())
    assert found.real_shares[3] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-5)


CALIBRATED = {"prompt": Prompt(reviewer(), "a", 12), "reviews": 10}
REFUSED = [
    (lambda: calibration(prompt=Prompt(small_bundle(), "a", 12), reviews=10), "glass tells no, yes"),
    (lambda: calibration(**CALIBRATED | {"reviews": 0}), "reviews="),
    (lambda: calibration(**CALIBRATED, bins=1), "bins="),
    (lambda: calibration(**CALIBRATED, temperature=0.0), "temperature="),
    (lambda: calibration(**CALIBRATED, temperature=float("nan")), "temperature="),
    (lambda: agreement_on_reviews(bundle=reviewer(), count=61), "count=61 must be from 1 to 60"),
    (lambda: padded_mean(prompt=Prompt(BUNDLE, "a", 12), pads=0), "pads=0 must be from 1 to "),
    (lambda: padded_mean(prompt=Prompt(small_bundle(pad_id=None), "a", 12), pads=2), "has no padding token"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
