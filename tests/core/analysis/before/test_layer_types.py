"""Operations are those that torch itself counts, and path lengths are those along which gradients arrive."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transformer_core.analysis.before.layer_types import (
    KERNELS,
    LENGTHS,
    SYSTEMS,
    layer_types,
    make_layers,
    operations,
    path_length,
)


def multiplied(call) -> int:
    """Return the multiplications that torch counts in a call: it counts additions, too, so twice as many."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        call()
    return counter.get_total_flops() // 2


@pytest.mark.parametrize(("n", "d", "k"), [(8, 16, 2), (16, 4, 3), (5, 12, 5), (33, 8, 9)])
def test_operations_are_those_that_torch_counts(n: int, d: int, k: int) -> None:
    x, w, u = torch.randn(1, n, d), torch.randn(d, d), torch.randn(d, d)
    heads = x.view(1, n, 2, d // 2).transpose(1, 2)
    attend = multiplied(lambda: (heads @ heads.mT).softmax(-1) @ heads)
    assert attend == operations("attention", n, d, k)

    def recur() -> None:
        h = torch.zeros(1, d)
        for place in range(n):
            h = torch.tanh(x[:, place] @ w + h @ u)

    assert multiplied(recur) == operations("recurrent", n, d, k)
    layers = make_layers(d, k)
    assert multiplied(lambda: layers["convolution"](x)) == operations("convolution", n, d, k)


def arrives(layers: list, n: int, d: int = 4) -> bool:
    """Tell whether the first position's input moves the last position's output."""
    x = torch.randn(1, n, d, dtype=torch.float64, requires_grad=True)
    y = x.mT
    for dilation, convolution in layers:
        reach = dilation * (convolution.kernel_size[0] - 1)
        y = convolution(nn.functional.pad(y, (reach, 0)))
    y[0, :, -1].sum().backward()
    assert x.grad is not None
    return bool(x.grad[0, 0].abs().sum() > 0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [2, 3, 9, 10, 17, 28])
@pytest.mark.parametrize("dilated", [False, True])
def test_a_signal_crosses_so_many_convolutions_and_no_fewer(kernel: int, n: int, dilated: bool) -> None:
    needed = path_length("dilated" if dilated else "convolution", n, kernel)

    def stack(depth: int) -> list:
        dilations = [kernel**layer if dilated else 1 for layer in range(depth)]
        made = [(dilation, nn.Conv1d(4, 4, kernel, dilation=dilation, dtype=torch.float64)) for dilation in dilations]
        for _, convolution in made:
            nn.init.constant_(convolution.weight, 0.3)
        return made

    assert arrives(stack(needed), n)
    assert not arrives(stack(needed - 1), n) or needed == 1


def test_attention_crosses_in_one_layer_and_recurrence_step_by_step() -> None:
    layers = make_layers(8, 3)
    for name in ("attention", "recurrent"):
        x = torch.randn(1, 6, 8, requires_grad=True)
        layers[name](x)[0, -1].sum().backward()
        assert x.grad is not None
        assert bool((x.grad[0].abs().sum(-1) > 0).all())
    assert (path_length("attention", 6, 3), path_length("recurrent", 6, 3)) == (1, 5)
    with pytest.raises(ValueError, match="system='x' must be one of attention"):
        path_length("x", 3, 3)
    with pytest.raises(ValueError, match="system='x' must be one of attention"):
        operations("x", 3, 3, 3)


def test_no_output_of_a_convolution_sees_a_later_position_and_all_keep_the_shape() -> None:
    x = torch.randn(1, 7, 8)
    changed = x.clone()
    changed[:, 5:] += 1
    for name, layer in make_layers(8, 3).items():
        with torch.no_grad():
            assert layer(x).shape == x.shape
            if name != "attention":
                torch.testing.assert_close(layer(x)[:, :5], layer(changed)[:, :5])


def test_what_is_counted_and_timed_has_a_row_a_system() -> None:
    found = layer_types(d_model=32, kernel=3, seed=0, measurement=0)
    assert found.systems == SYSTEMS
    assert found.seconds.shape == found.operations.shape == found.steps.shape == (3, len(LENGTHS))
    assert (found.seconds > 0).all()
    assert found.steps[1].tolist() == list(LENGTHS)
    assert found.paths.shape == (4, len(LENGTHS))
    assert found.overtaken() == 64
    np.testing.assert_array_equal(found.operations[0] > found.operations[1], found.lengths > 32)
    assert found.seconds[1, -1] > found.seconds[1, 0] * 10
    with pytest.raises(ValueError, match="kernel=4 must be one of 2, 3, 5, 9"):
        layer_types(d_model=32, kernel=4, seed=0, measurement=0)
    with pytest.raises(ValueError, match="d_model=33 must be one of 32"):
        layer_types(d_model=33, kernel=3, seed=0, measurement=0)
