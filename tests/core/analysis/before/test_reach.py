"""How far a gradient reaches: exact, by distance, and as the steps between multiply."""

import time

import numpy as np
import pytest
import torch

from transformer_core.analysis.before.reach import gradient_reach, jacobian_norms
from transformer_core.analysis.before.step_times import LENGTHS, SYSTEMS, step_times
from transformer_core.models.recurrent import Gru


def test_norms_are_those_of_the_whole_jacobian() -> None:
    torch.manual_seed(0)
    layer, x = Gru(3, 4), torch.randn(2, 5, 3, requires_grad=True)
    found = jacobian_norms(layer(x)[0][:, -1], x)
    for row in range(2):
        whole = torch.autograd.functional.jacobian(lambda y: layer(y)[0][0, -1], x[row : row + 1])[:, 0]
        torch.testing.assert_close(found[row], whole.square().sum((0, 2)).sqrt())


def test_steps_in_between_fade_and_attention_does_not() -> None:
    found = gradient_reach(length=48, d_model=16, seed=0)
    assert found.systems == ("plain", "gru", "lstm", "attention")
    assert found.norms.shape == (4, 48)
    assert found.distances.tolist() == list(range(48))
    plain, gru, lstm, attention = found.norms
    for steps in (plain, gru, lstm):
        assert steps[-1] < 1e-2 * steps[0]
    assert attention[1:].max() < 20 * attention[1:].min()
    np.testing.assert_allclose(found.relative[:, 0], 1.0)


def test_small_matrices_fade_sooner_and_open_gates_later() -> None:
    plain = gradient_reach(length=24, d_model=16, seed=0)
    small = gradient_reach(length=24, d_model=16, seed=0, gain=0.5)
    kept = gradient_reach(length=24, d_model=16, seed=0, keep_bias=2.0)
    assert small.half[0] <= plain.half[0]
    assert small.norms[0, -1] < plain.norms[0, -1]
    assert (kept.norms[1:3, -1] > plain.norms[1:3, -1]).all()
    assert np.array_equal(kept.norms[[0, 3]], plain.norms[[0, 3]])


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, again = (gradient_reach(length=8, d_model=8, seed=3) for _ in range(2))
    assert np.array_equal(first.norms, again.norms)


@pytest.mark.parametrize("changes", [{"length": 1}, {"length": 257}, {"d_model": 6}, {"d_model": 68}])
def test_sizes_outside_their_range_are_refused(changes: dict) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(changes))}="):
        gradient_reach(**({"length": 8, "d_model": 8, "seed": 0} | changes))


def test_times_are_measured_for_every_system_and_length() -> None:
    begun = time.time()
    found = step_times(d_model=32, seed=0, measurement=0)
    assert begun <= found.measured <= time.time()
    assert found.systems == SYSTEMS
    assert found.lengths.tolist() == list(LENGTHS)
    assert (found.step > 0).all()
    assert (found.reading > 0).all()
    gru, lstm, attention = found.kept_numbers
    assert gru.tolist() == [32] * len(LENGTHS)
    assert lstm.tolist() == [64] * len(LENGTHS)
    assert attention.tolist() == [64 * length for length in LENGTHS]
    assert found.reading[0, -1] > 8 * found.reading[0, 0]  # a recurrent layer reads one position after another
    with pytest.raises(ValueError, match="d_model=33 must be one of 32, 64"):
        step_times(d_model=33, seed=0, measurement=0)
