"""The learning rate, step by step: a warm-up in a straight line, then one of three ways on.

Vaswani et al. 2017, eq. 3 (noam); Loshchilov and Hutter 2017, eq. 5 (cosine). Read next: precision.py.
"""

import math

from transformer_core.training.config import TrainConfig


def learning_rate_at(step: int, total_steps: int, config: TrainConfig) -> float:
    """Return the learning rate of one step.

    With w warm-up steps, t = step + 1 and T = total_steps: the highest rate times t / w while t <= w, and then times
    1 (constant), (1 + cos(pi (t - w) / (T - w))) / 2 (cosine), or sqrt(w / t) (noam). Departure: the paper's noam is
    scaled by d_model^-0.5; here config.learning_rate is the highest value itself.

    Args:
        step: from 0 to total_steps - 1.
        total_steps: steps of the whole run.
        config: the run's.

    Raises:
        ValueError: the step is not one of the run's.
    """
    if not 0 <= step < total_steps:
        raise ValueError(f"step={step} must be at least 0 and less than total_steps={total_steps}")
    warm_up_steps = math.ceil(config.warm_up * total_steps)
    place = step + 1
    if place <= warm_up_steps:
        return config.learning_rate * place / warm_up_steps
    if config.schedule == "cosine":
        done = (place - warm_up_steps) / (total_steps - warm_up_steps)
        return config.learning_rate * (1 + math.cos(math.pi * done)) / 2
    if config.schedule == "noam":
        return config.learning_rate * math.sqrt(max(warm_up_steps, 1) / place)
    return config.learning_rate
