"""Ranges are weighted by gradients; the correlation of gates with them is as measured on the shipped models."""

import numpy as np
import pytest
import torch

from tests.helpers import ROOT
from transformer_core.analysis.before.gate_ranges import TEXTS, gate_ranges
from transformer_core.analysis.before.gates import layer_of
from transformer_core.checkpoints import load
from transformer_core.training.corpora.reviews import reviews

MODELS = ROOT / "assets" / "checkpoints"


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_influence_is_the_gradient_of_one_unit_after_the_other(direction: str) -> None:
    bundle = load(MODELS / "seq2seq-en-fr", device="cpu")
    found = gate_ranges(bundle=bundle, direction=direction)
    assert found.n_texts == TEXTS
    rows = [bundle.tokenizer.encode(one.text).ids for one in reviews("en", train=0, held_out=200, seed=0)[1]]
    ids = torch.tensor([row[: found.window] for row in rows if len(row) >= found.window][:TEXTS])
    layer, unit, backward = layer_of(bundle.model, direction), 7, direction == "backward"
    x = (bundle.model.embedding(ids) * bundle.model.scale).detach().requires_grad_(True)
    layer(x, backward=backward)[1][0][:, unit].sum().backward()
    assert x.grad is not None
    lengths = x.grad.norm(dim=-1).mean(0).numpy()
    np.testing.assert_allclose(found.influence[unit], lengths if backward else lengths[::-1], rtol=1e-4)
    assert found.ranges[unit] == pytest.approx(np.average(np.arange(found.window), weights=found.influence[unit]))


def test_update_gates_go_with_a_units_range_and_reset_gates_hardly_do() -> None:
    for name, direction in (("seq2seq-en-fr", "forward"), ("seq2seq-en-fr-plain", "backward")):
        found = gate_ranges(bundle=load(MODELS / name, device="cpu"), direction=direction)
        rho = {gate: one.rho for gate, one in zip(found.names, found.correlations, strict=True)}
        assert rho["update_gate"] > 0.6
        assert 0 < rho["reset_gate"] < rho["update_gate"] - 0.2


def test_of_many_units_some_are_measured_and_a_model_without_gates_is_refused(bundle_of) -> None:
    found = gate_ranges(bundle=load(MODELS / "lm-lstm", device="cpu"))
    assert len(found.units) == len(found.ranges) == found.gates.shape[1] == 192
    assert found.names == ("input_gate", "forget_gate", "output_gate")
    with pytest.raises(ValueError, match="without gates; it must have gru or lstm"):
        gate_ranges(bundle=bundle_of(unit="tanh"))
