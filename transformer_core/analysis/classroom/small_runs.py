"""Small runs: a one-layer classifier trained for some 60 steps on built-in reviews, one seed or setting each.

How much the seed alone does: Dodge et al. 2020, section 4.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import torch

from transformer_core.analysis.short_training import SMALL
from transformer_core.analysis.timing import alone_on_one_thread
from transformer_core.bundle import MODELS
from transformer_core.config import require_choice
from transformer_core.layers.initialization import initialize
from transformer_core.shares import interval
from transformer_core.training.loop import Run
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.make import make_task
from transformer_core.training.tasks.task import Task

Vary = Literal["seed", "rate", "depth"]
SETTINGS: dict[Vary, tuple[float, ...]] = {
    "seed": tuple(range(24)),
    "rate": (1e-4, 3e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2),
    "depth": (1, 2, 3, 4),
}
EXAMPLES, HELD_OUT, EPOCHS, WINDOW = 2_000, 400, 2, 4


@dataclass(frozen=True, eq=False)
class SmallRun:
    """One run.

    Shapes:
        losses: (point,), means over WINDOW steps, in nats

    Args:
        setting: the seed, the learning rate or the number of layers.
        accuracy: on `held_out` reviews; low, high: bounds of 95 % for so many.
        guessing: the accuracy of always saying the commonest class.
    """

    setting: float
    losses: np.ndarray
    accuracy: float
    low: float
    high: float
    held_out: int
    guessing: float


def settings_of(vary: Vary, runs: int) -> tuple[float, ...]:
    """Return the settings of so many runs: seeds from 0, learning rates or numbers of layers.

    Raises:
        ValueError: vary is none of these, or there are not so many settings.
    """
    require_choice("vary", vary, get_args(Vary))
    known = SETTINGS[vary]
    if not 2 <= runs <= len(known):
        raise ValueError(f"runs={runs} must be from 2 to {len(known)} where vary={vary!r}")
    return tuple(known[:runs])


@lru_cache(maxsize=2)
def _reviews(language: str) -> tuple[RunSpec, Task]:
    data = replace(SMALL.data, examples=EXAMPLES, held_out=HELD_OUT, language=language)
    spec = replace(SMALL, data=data, training=replace(SMALL.training, epochs=EPOCHS, seed=0))
    return spec, make_task(spec, None)


def small_run(*, vary: Vary, setting: float, language: str) -> SmallRun:
    """Train one small classifier and measure it on held-out reviews.

    The reviews and the order of batches are the same in all runs; a seed sets the starting weights alone.

    Args:
        vary: what the setting is: "seed", "rate" (of learning) or "depth" (layers).
        setting: its value.
        language: of the reviews, "en" or "zh".

    Raises:
        ValueError: there is no such language or choice.
    """
    require_choice("vary", vary, get_args(Vary))
    spec, task = _reviews(language)
    training = replace(spec.training, learning_rate=setting) if vary == "rate" else spec.training
    config = replace(task.config, n_layers=int(setting)) if vary == "depth" else task.config
    model = MODELS[task.kind](config)
    initialize(model, torch.Generator().manual_seed(int(setting) if vary == "seed" else 0))
    with alone_on_one_thread():
        run = Run(model, task.objective, task.batches, steps_per_epoch=task.steps_per_epoch, config=training)
        losses = np.array([step.loss for step in run.steps()])
        accuracy = task.measure(model.eval(), True)["held_out_accuracy"]
    windows = losses[: len(losses) // WINDOW * WINDOW].reshape(-1, WINDOW).mean(1)
    return SmallRun(setting, windows, accuracy, *interval(accuracy, HELD_OUT), HELD_OUT, task.baselines["majority"])
