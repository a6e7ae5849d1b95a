"""From vectors to a verdict, by layer, by coordinate, by two sentences; the last depth is the model's own verdict."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.helpers.engine import small_bundle
from transformer_core.analysis.encoder.layers import POOLINGS, layer_verdicts
from transformer_core.analysis.encoder.logit_sum import logit_sum
from transformer_core.analysis.encoder.two_sentences import aligned, depth_of_parting, sentence_pair
from transformer_core.analysis.outcome import read

TEXT = "a glass box a bell"
SHAPES = [{}, {"norm_order": "post"}, {"pooling": "mean"}, {"embedding_norm": True, "n_classes": 3, "pooler": "tanh"}]


def bundle_of(shape: dict):
    bundle = small_bundle(**shape)
    return replace(bundle, labels=("no", "yes", "maybe")) if shape.get("n_classes") == 3 else bundle


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_last_depth_is_the_models_own_verdict(shape: dict) -> None:
    bundle = bundle_of(shape)
    found = layer_verdicts(bundle=bundle, text=TEXT, n_tokens=12)
    own = POOLINGS.index(found.pooling)
    probabilities = read(bundle, bundle.tokenizer.encode(TEXT)).probabilities
    np.testing.assert_allclose(found.probabilities[own, -1], probabilities, atol=1e-5)
    np.testing.assert_allclose(found.final, probabilities, atol=1e-6)
    assert found.winner == int(np.argmax(probabilities))
    margin = np.log(found.probabilities[..., found.winner]) - np.log(found.probabilities[..., found.rival])
    np.testing.assert_allclose(found.margins, margin, atol=1e-4)


def test_the_verdict_is_settled_from_the_depth_named() -> None:
    for seed in ("a box", "a bell a bell", TEXT):
        found = layer_verdicts(bundle=small_bundle(), text=seed, n_tokens=12)
        classes = found.probabilities[0].argmax(-1)
        assert (classes[found.settled :] == found.winner).all()
        assert found.settled == 0 or classes[found.settled - 1] != found.winner


@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
def test_moves_are_the_traces_own(shape: dict) -> None:
    bundle = bundle_of(shape)
    found = layer_verdicts(bundle=bundle, text=TEXT, n_tokens=12)
    trace = read(bundle, bundle.tokenizer.encode(TEXT)).trace
    before, after = (trace[f"encoder.layer{layer}.residual"][0].double() for layer in (0, 1))
    moved = (after - before).norm(dim=-1) / before.norm(dim=-1)
    np.testing.assert_allclose(found.moves[1], moved.numpy(), rtol=1e-5)
    cosine = torch.cosine_similarity(before, after, dim=-1).numpy()
    np.testing.assert_allclose(np.cos(np.radians(found.angles[1])), cosine, atol=1e-5)
    assert found.moves[found.farthest] == found.moves.max()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("target", [None, 0, 1])
def test_bias_and_products_add_up_to_the_logit(shape: dict, target: int | None) -> None:
    bundle = bundle_of(shape)
    found = logit_sum(bundle=bundle, text=TEXT, n_tokens=12, target=target)
    logits = read(bundle, bundle.tokenizer.encode(TEXT)).trace["class_logits"][0]
    wanted = logits[found.winner] - logits[found.rival] if target is None else logits[target]
    assert found.bias + found.products.sum() == pytest.approx(float(wanted), abs=1e-5)
    assert found.total == pytest.approx(found.above + found.below + found.bias, abs=1e-9)
    assert found.above >= 0 >= found.below
    assert abs(found.difference) < 1e-5
    np.testing.assert_allclose(found.products, found.vector * found.weight)
    assert found.running[-1] == found.total
    assert (np.sign(found.running[found.needed :]) == np.sign(found.total)).all()
    assert found.needed == 0 or np.sign(found.running[found.needed - 1]) != np.sign(found.total)


def test_a_class_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="target=2 must be from 0 to 1, or None"):
        logit_sum(bundle=small_bundle(), text=TEXT, n_tokens=12, target=2)


def test_equal_sentences_are_never_told_apart() -> None:
    found = sentence_pair(bundle=small_bundle(), text=TEXT, other=TEXT, n_tokens=12)
    assert not any(found.changed)
    assert found.distances.max() == 0
    assert found.spread.max() == 0
    np.testing.assert_array_equal(found.margins[0], found.margins[1])


def test_one_word_differs_at_the_embedding_and_spreads() -> None:
    bundle, other = small_bundle(), "a glass box a box"
    found = sentence_pair(bundle=bundle, text=TEXT, other=other, n_tokens=12)
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
