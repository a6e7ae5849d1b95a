"""Training a deep stack with and without residuals: the same start, the same batches, the same steps.

He et al. 2016, section 4.1, with our own small task. Read next: ../why/timing.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.config import ModelConfig, NormOrder
from transformer_core.layers.initialization import initialize
from transformer_core.models import Gpt
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import DivergedError, Run

LETTERS, LENGTH, BATCH = 8, 6, 16
MOST_LAYERS = 24
LAYER_STEPS = 2_400  # layers times steps, which bounds the time
MOST_STEPS = 200
LEARNING_RATE = 3e-3


@dataclass(frozen=True, eq=False)
class DeepTraining:
    """Loss curves of one deep stack with residuals and without.

    Shapes:
        with_residuals, without_residuals: (step); shorter where the loss stopped being a number

    Args:
        guessing: nats a letter of guessing blindly, log of the number of letters.
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
    if not 2 <= n_layers <= MOST_LAYERS:
        raise ValueError(f"n_layers={n_layers} must be from 2 to {MOST_LAYERS}")
    steps = min(MOST_STEPS, LAYER_STEPS // n_layers)
    (losses_with, right_with, size), (losses_without, right_without, _) = (
        _trained(n_layers, norm_order, residual, seed, steps) for residual in (True, False)
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
    return torch.randint(LETTERS, (BATCH, LENGTH), generator=torch.Generator().manual_seed(1_000_003 * seed + step))


def _backwards(model: Gpt, letters: Tensor) -> Tensor:
    return F.cross_entropy(model(letters).flatten(0, 1), letters.flip(1).flatten())


def _trained(
    n_layers: int, norm_order: NormOrder, residual: bool, seed: int, steps: int
) -> tuple[np.ndarray, float, int]:
    """Return the loss by step, the share of letters right, and the number of parameters."""
    model = _model(n_layers, norm_order, residual, seed)

    def batches(_: int) -> Iterator[Tensor]:
        for step in range(steps):
            yield _letters(seed, step)

    config = TrainConfig(learning_rate=LEARNING_RATE, warm_up=0.1, batch_size=BATCH, seed=seed)
    run = Run(model, _backwards, batches, steps_per_epoch=steps, config=config)
    losses = []
    try:
        losses.extend(step.loss for step in run.steps())
    except DivergedError:
        losses.append(float("nan"))
    with torch.inference_mode():
        fresh = torch.cat([_letters(seed, steps + extra) for extra in range(8)])
        right = (model.eval()(fresh).argmax(-1) == fresh.flip(1)).float().mean()
    return np.array(losses), float(right), sum(parameter.numel() for parameter in model.parameters())
