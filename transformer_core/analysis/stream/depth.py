"""Depth: gradients and training of deep stacks, with and without residual connections, pre- and post-norm.

Residuals: He et al. 2016, sections 3.1 and 4.1 (with our own small task); norm order: Xiong et al. 2020, section 3.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.short_training import backwards_loss, backwards_right
from transformer_core.config import ModelConfig, NormOrder, require_range
from transformer_core.layers.blocks import EncoderBlock, Stack
from transformer_core.layers.initialization import initialize
from transformer_core.models import Gpt
from transformer_core.probe import SILENT, Edit, Probe
from transformer_core.progress import counted
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import DivergedError, Run

MOST_LAYERS = 48
WIDEST = 64
BATCH, POSITIONS, CLASSES = 4, 12, 4
TINY = 1e-300
NORMS = ("pre", "post", "none")
NO_NORM: Mapping[str, Edit] = {
    "*.mean": torch.zeros_like,
    "*.inverse_deviation": torch.ones_like,
    "*.weights": torch.clone,  # keeps to the explicit path: the fused kernel's gradient overflows on scores this large
}


@dataclass(frozen=True, eq=False)
class DepthProfile:
    """Gradients and activations by depth of one untrained stack.

    Shapes:
        input_gradients, activations, apart: (layer + 1); parameter_gradients: (layer)

    Args:
        norm: "pre", "post", or "none", where every norm is left out.
        residual: whether the stack has residual connections.
        input_gradients: Euclidean norm of the loss's gradient with respect to what each layer reads, the last entry
            with respect to what the last layer passes on.
        parameter_gradients: the same with respect to each layer's parameters.
        activations: root mean square of what each layer reads, the last entry of what the last layer passes on.
        apart: mean of 1 - cosine between the vectors at different positions of one sequence, in [0, 2]; at 0 the
            positions can no longer be distinguished (Dong et al. 2021, section 2).
        loss: in nats.
        first_over_last: gradient at the first layer's input over that at the last layer's; 0 or infinite where floats
            reach no further.
    """

    norm: str
    residual: bool
    input_gradients: np.ndarray
    parameter_gradients: np.ndarray
    activations: np.ndarray
    apart: np.ndarray
    loss: float
    first_over_last: float


@dataclass(frozen=True, eq=False)
class GradientsByDepth:
    """Six stacks with the same start values: each of NORMS with residuals, then each without."""

    profiles: tuple[DepthProfile, ...]


def gradients_by_depth(*, n_layers: int, d_model: int, seed: int) -> GradientsByDepth:
    """Backpropagate one gradient through six untrained stacks of the same size, start values and input.

    The input is 4 sequences of 12 vectors from N(0, 1); the loss is the cross entropy of guessing 4 random classes
    from each sequence's first vector through a random linear map. None of it is trained; all of it is seeded. It is
    computed in 64 bits, since without norms 32 do not reach far enough.

    Args:
        n_layers: from 2 to 48.
        d_model: a multiple of 8 from 16 to 64.
        seed: of weights, input and classes.

    Raises:
        ValueError: a size is outside its range.
    """
    require_range("n_layers", n_layers, 2, MOST_LAYERS)
    if not 16 <= d_model <= WIDEST or d_model % 8:
        raise ValueError(f"d_model={d_model} must be a multiple of 8 from 16 to {WIDEST}")
    return GradientsByDepth(
        tuple(
            _profile(n_layers, d_model, seed, norm, residual)
            for residual in counted((True, False))
            for norm in counted(NORMS)
        )
    )


def untrained_stack(n_layers: int, d_model: int, seed: int, norm_order: NormOrder, residual: bool) -> Stack:
    """Return a stack of encoder blocks with 4 heads; the same seed gives the same start values for every kind."""
    config = ModelConfig(
        vocab_size=2,
        d_model=d_model,
        n_heads=4,
        d_ff=2 * d_model,
        n_layers=n_layers,
        dropout=0.0,
        norm_order=norm_order,
        residual=residual,
    )
    with torch.random.fork_rng([]):
        stack = Stack(config, EncoderBlock)
    initialize(stack, torch.Generator().manual_seed(seed))
    return stack


def _profile(n_layers: int, d_model: int, seed: int, norm: str, residual: bool) -> DepthProfile:
    stack = untrained_stack(n_layers, d_model, seed, "post" if norm == "post" else "pre", residual).double()
    probe = Probe((), edits=NO_NORM) if norm == "none" else SILENT
    generator = torch.Generator().manual_seed(seed + 1)
    x = (
        torch.randn(BATCH, POSITIONS, d_model, generator=generator).double().requires_grad_(True)
    )  # (batch, pos, d_model)
    readout = torch.randn(d_model, CLASSES, generator=generator).double() / d_model**0.5
    classes = torch.randint(0, CLASSES, (BATCH,), generator=generator)
    inputs = [x]
    with torch.enable_grad():
        for index, layer in enumerate(stack.layers):
            inputs.append(layer(inputs[-1], probe=probe.at(f"layer{index}")))
            inputs[-1].retain_grad()
        final = stack.final_norm
        last = inputs[-1] if final is None else final(inputs[-1], probe=probe.at("final_norm"))
        loss = F.cross_entropy(last[:, 0] @ readout, classes)
        loss.backward()
    gradients = [_norm([tensor.grad]) for tensor in inputs]
    values = [tensor.detach() for tensor in inputs]
    return DepthProfile(
        norm=norm,
        residual=residual,
        input_gradients=np.array(gradients),
        parameter_gradients=np.array([_norm([p.grad for p in layer.parameters()]) for layer in stack.layers]),
        activations=np.array([float(tensor.square().mean().sqrt()) for tensor in values]),
        apart=np.array([_apart(tensor) for tensor in values]),
        loss=float(loss.detach()),
        first_over_last=gradients[0] / gradients[-2] if gradients[-2] else float("nan"),
    )


def _norm(gradients: list[Tensor | None]) -> float:
    parts = [gradient.double().square().sum() for gradient in gradients if gradient is not None]
    return float(torch.stack(parts).sum().sqrt())


def _apart(x: Tensor) -> float:
    directions = F.normalize(x, dim=-1, eps=TINY)  # (batch, pos, d_model)
    between = directions[:, :, None] - directions[:, None]  # (batch, pos, pos, d_model)
    pairs = x.shape[1] * (x.shape[1] - 1)
    return float(between.square().sum((1, 2, 3)).mean() / (2 * pairs))


DEPTHS = (2, 4, 8, 12, 16, 24, 32)
WIDTH = 16


@dataclass(frozen=True, eq=False)
class Reach:
    """The gradient at the first layer's input over that at the last layer's, for untrained stacks.

    Shapes:
        depths: (depth,); with_residuals, without_residuals: (norm, depth)

    Args:
        norms: "pre", "post", "none" (every normalisation left out).
    """

    norms: tuple[str, ...]
    depths: np.ndarray
    with_residuals: np.ndarray
    without_residuals: np.ndarray


def reach_by_depth(*, seed: int) -> Reach:
    """Backpropagate a gradient through stacks of 2 to 32 layers of width 16, with residual connections and without.

    Args:
        seed: of weights, input and classes; nothing is trained.
    """
    reached = [
        {(p.norm, p.residual): p.first_over_last for p in found.profiles}
        for found in (gradients_by_depth(n_layers=depth, d_model=WIDTH, seed=seed) for depth in counted(DEPTHS))
    ]
    ratios = [np.array([[one[norm, residual] for one in reached] for norm in NORMS]) for residual in (True, False)]
    return Reach(NORMS, np.array(DEPTHS), *ratios)


LETTERS, LENGTH, LETTER_BATCH = 8, 6, 16
MOST_TRAINED_LAYERS = 24
LAYER_STEPS = 2_400  # layers times steps, which bounds the time
MOST_STEPS = 200
LEARNING_RATE = 3e-3


@dataclass(frozen=True, eq=False)
class DeepTraining:
    """Loss curves of one deep stack with residuals and without.

    Shapes:
        with_residuals, without_residuals: (step); shorter where the loss stopped being a number

    Args:
        guessing: nats per letter of guessing blindly, log of the number of letters.
        right_with, right_without: share of letters right after training, on fresh sequences, in [0, 1].
        parameters: of one model.
    """

    with_residuals: np.ndarray
    without_residuals: np.ndarray
    guessing: float
    right_with: float
    right_without: float
    parameters: int


def deep_training(*, n_layers: int, norm_order: NormOrder, seed: int) -> DeepTraining:
    """Train a stack of blocks to write 6 letters backwards, once with residuals and once without.

    Args:
        n_layers: from 2 to 24; the deeper, the fewer steps.
        norm_order: "pre" or "post".
        seed: of start values and batches, for both.

    Raises:
        ValueError: n_layers is outside its range.
    """
    require_range("n_layers", n_layers, 2, MOST_TRAINED_LAYERS)
    steps = min(MOST_STEPS, LAYER_STEPS // n_layers)
    (losses_with, right_with, size), (losses_without, right_without, _) = (
        _trained(n_layers, norm_order, residual, seed, steps) for residual in counted((True, False))
    )
    return DeepTraining(losses_with, losses_without, float(np.log(LETTERS)), right_with, right_without, size)


def _model(n_layers: int, norm_order: NormOrder, residual: bool, seed: int) -> Gpt:
    config = ModelConfig(
        vocab_size=LETTERS,
        d_model=32,
        n_heads=4,
        d_ff=64,
        n_layers=n_layers,
        max_len=LENGTH,
        dropout=0.0,
        pad_id=None,
        positions="learned",
        norm_order=norm_order,
        residual=residual,
        causal=False,
        tied_output=False,
    )
    with torch.random.fork_rng([]):
        model = Gpt(config)
    initialize(model, torch.Generator().manual_seed(seed))
    return model


def _letters(seed: int, step: int) -> Tensor:
    return torch.randint(
        LETTERS, (LETTER_BATCH, LENGTH), generator=torch.Generator().manual_seed(1_000_003 * seed + step)
    )


def _trained(
    n_layers: int, norm_order: NormOrder, residual: bool, seed: int, steps: int
) -> tuple[np.ndarray, float, int]:
    """Return the loss by step, the share of letters right, and the number of parameters."""
    model = _model(n_layers, norm_order, residual, seed)

    def batches(_: int) -> Iterator[Tensor]:
        for step in range(steps):
            yield _letters(seed, step)

    config = TrainConfig(learning_rate=LEARNING_RATE, warm_up=0.1, batch_size=LETTER_BATCH, seed=seed)
    run = Run(model, backwards_loss, batches, steps_per_epoch=steps, config=config)
    losses = []
    try:
        losses.extend(step.loss for step in run.steps())
    except DivergedError:
        losses.append(float("nan"))
    fresh = torch.cat([_letters(seed, steps + extra) for extra in range(8)])
    right = backwards_right(model.eval(), fresh)
    return np.array(losses), right, sum(parameter.numel() for parameter in model.parameters())
