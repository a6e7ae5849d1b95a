"""Entropy and rollout: their identities, and their agreement with the formulas."""

import math

import numpy as np
import pytest

from tests.helpers.engine import random_weights, small_bundle
from transformer_core.analysis.attention.heads import entropy, head_entropies
from transformer_core.analysis.attention.occlusion import occlusion, verdict_evidence
from transformer_core.analysis.attention.rollout import attention_flow, rollout
from transformer_core.analysis.outcome import read

TEXT = "a glass box a glass bell"


def test_rows_of_rollout_sum_to_one() -> None:
    np.testing.assert_allclose(rollout(random_weights(3, 2, 7)).sum(-1), 1.0, atol=1e-6)


def test_uniform_heads_roll_out_to_a_uniform_mixture_with_oneself() -> None:
    n, layers = 5, 3
    uniform = np.full((layers, 2, n, n), 1 / n)
    own = 0.5**layers
    np.testing.assert_allclose(rollout(uniform), own * np.eye(n) + (1 - own) / n, atol=1e-12)


def test_heads_that_look_at_themselves_alone_roll_out_to_themselves() -> None:
    np.testing.assert_array_equal(rollout(np.broadcast_to(np.eye(4), (3, 2, 4, 4))), np.eye(4))


def test_rollout_multiplies_the_last_layer_from_the_left() -> None:
    weights = random_weights(2, 2, 4)
    first, last = (0.5 * layer.mean(0) + 0.5 * np.eye(4) for layer in weights)
    np.testing.assert_allclose(rollout(weights), last @ first, atol=1e-12)


def test_entropy_is_minus_the_sum_of_w_ln_w() -> None:
    row = np.array([0.5, 0.25, 0.25, 0.0])
    assert entropy(row) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(4))
    assert entropy(np.full(8, 1 / 8)) == pytest.approx(math.log(8))
    assert entropy(np.eye(3)).max() == 0


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_verdict_rests_on_shares_that_sum_to_one(pooling: str) -> None:
    flow = attention_flow(bundle=small_bundle(pooling=pooling), text=TEXT, n_tokens=12)
    assert flow.verdict_rollout.sum() == pytest.approx(1, abs=1e-6)
    assert flow.verdict_last.sum() == pytest.approx(1, abs=1e-6)
    if pooling == "cls":
        np.testing.assert_array_equal(flow.verdict_rollout, flow.rollout[0])


def test_entropies_stay_below_their_maximum_and_padding_counts_for_nothing() -> None:
    found = head_entropies(bundle=small_bundle(), text=f"{TEXT} [PAD] [PAD]", n_tokens=12)
    assert found.greatest == pytest.approx(math.log(8))  # [CLS], six words, [SEP]
    assert found.tokens.max() <= found.greatest + 1e-5
    np.testing.assert_allclose(found.shares, found.heads / found.greatest)


def test_occlusion_is_what_the_model_says_of_the_changed_text() -> None:
    bundle = small_bundle()
    hidden = occlusion(bundle=bundle, text=TEXT, n_tokens=12, substitute="mask")
    before = read(bundle, bundle.tokenizer.encode(TEXT), sites=("class_logits",)).probabilities
    after = read(bundle, bundle.tokenizer.encode("a [MASK] box a glass bell"), sites=("class_logits",)).probabilities
    assert hidden.before == pytest.approx(max(before), abs=1e-6)
    assert hidden.change[2] == pytest.approx(after[hidden.winner] - before[hidden.winner], abs=1e-6)
    assert np.isnan(hidden.change[[0, -1]]).all()
    assert np.isfinite(hidden.change[1:-1]).all()


def test_a_token_that_is_the_substitute_already_has_no_effect_to_tell() -> None:
    hidden = occlusion(bundle=small_bundle(), text="a nowhere box", n_tokens=12, substitute="unk")
    assert np.isnan(hidden.change[2])
    assert np.isfinite(hidden.change[1])


def test_a_substitute_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="substitute='blank' must be mask or unk"):
        occlusion(bundle=small_bundle(), text=TEXT, n_tokens=12, substitute="blank")  # pyright: ignore


def test_evidence_ranks_the_words_alone() -> None:
    found = verdict_evidence(bundle=small_bundle(), text=TEXT, n_tokens=12)
    assert found.rollout_agrees.count == found.last_agrees.count == 6
    np.testing.assert_allclose(found.effect[1:-1], np.abs(found.occlusion.change[1:-1]))
