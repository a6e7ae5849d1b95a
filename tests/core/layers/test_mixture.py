"""A mixture of experts is the weighted sum of the likeliest ones, each of which computes its own tokens alone."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.engine import close, lively, tiny
from transformer_core.layers.feed_forward import MixtureOfExperts
from transformer_core.layers.initialization import initialize
from transformer_core.probe import SILENT, Probe

every_path = pytest.mark.parametrize("path", [lambda: SILENT, Probe], ids=["silent", "probed"])


def mixed(**changes: Any) -> tuple[Any, Tensor]:
    """Return a mixture of five experts, two of them active, and what it reads: (batch, pos, d_model)."""
    mixture = MixtureOfExperts(tiny(n_experts=5, n_active_experts=2, **changes))
    initialize(mixture)
    return lively(mixture), torch.randn(2, 5, 16)


@every_path
@pytest.mark.parametrize("sums_to_one", [False, True])
@pytest.mark.parametrize("gated", [False, True])
def test_a_mixture_is_the_sum_of_the_likeliest_experts(path, sums_to_one, gated):
    shared = {"shared_d_ff": 7, "shared_gate": gated}
    mixture, x = mixed(**shared, gated=gated, expert_weights_sum_to_one=sums_to_one)
    expected = torch.zeros_like(x)
    for row, place in ((row, place) for row in range(2) for place in range(5)):
        token = x[row, place]
        shares = mixture.router(token).softmax(0)
        first, second = shares.argsort(descending=True)[:2].tolist()
        whole = shares[first] + shares[second] if sums_to_one else 1.0
        expected[row, place] = sum(shares[one] / whole * mixture.experts[one](token) for one in (first, second))
        gate = torch.sigmoid(mixture.shared_gate(token)) if gated else 1.0
        expected[row, place] += gate * mixture.shared(token)
    close(mixture(x, probe=path()), expected)


@every_path
def test_an_expert_computes_the_tokens_that_chose_it_alone(path):
    mixture, x = mixed()
    with torch.no_grad():
        mixture.router.weight[3] = 0
        mixture.router.weight[:3] = torch.stack([x[0, 0], x[0, 1], x[0, 0] + x[0, 1]])
    before = mixture(x[:1, :2])
    for expert in (3, 4):
        for weight in mixture.experts[expert].parameters():
            nn.init.constant_(weight, torch.nan)
    probe = path()
    close(mixture(x[:1, :2], probe=probe), before)
    if probe is not SILENT:
        weights, outputs = probe.trace["expert_weights"], probe.trace["expert_outputs"]
        assert ((weights > 0).sum(-1) == 2).all()
        assert torch.equal(outputs.abs().sum(-1) > 0, weights.mT > 0)


def test_an_expert_whose_score_is_minus_infinity_gives_its_tokens_to_the_next():
    mixture, x = mixed()

    def away(scores):
        scores[..., 2] = -torch.inf
        return scores

    usual, without = Probe(), Probe(edits={"router_scores": away})
    mixture(x, probe=usual), mixture(x, probe=without)
    before, after = (probe.trace["expert_weights"] > 0 for probe in (usual, without))
    moved = before[..., 2]
    assert moved.any()
    assert not after[..., 2].any()
    assert (after.sum(-1) == 2).all()
    assert torch.equal(after[~moved], before[~moved])
    third = usual.trace["router_probabilities"].argsort(-1, descending=True)[..., 2:3]
    assert after.gather(-1, third)[moved].all()
