"""TrainConfig: all settings of a training run, checked when it is constructed.

Vaswani et al. 2017, section 5; AdamW: Loshchilov and Hutter 2019.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from transformer_core.config import require_choice

Optimizer = Literal["adamw", "adam", "sgd", "muon"]
Schedule = Literal["cosine", "constant", "noam"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """All settings of a training run except those of the model and the data.

    Args:
        optimizer: "adamw", "adam" (weight decay is added to the gradient), "sgd" (with a momentum of 0.9) or "muon"
            (orthogonal steps for the matrices of inner linear layers, AdamW for all else).
        learning_rate: the highest that the schedule reaches.
        warm_up: fraction of all steps, in [0, 1), in which the learning rate rises linearly.
        schedule: what follows: "cosine" falls to 0 at the last step, "constant" stays, "noam" falls as step^-0.5.
        weight_decay: of matrices only; biases and normalisations have none.
        clip_norm: the largest norm of the whole gradient; None never clips.
        label_smoothing: probability, in [0, 1), that is spread evenly over all classes.
        batch_size: examples a step.
        epochs: passes over the data.
        seed: of the order of examples and of everything random inside a step.
        precision: "bfloat16" computes matrix products in 16 bits; the weights stay in float32.

    Raises:
        ValueError: a value outside its range.
    """

    optimizer: Optimizer = "adamw"
    learning_rate: float = 1e-3
    warm_up: float = 0.1
    schedule: Schedule = "cosine"
    weight_decay: float = 0.01
    clip_norm: float | None = 1.0
    label_smoothing: float = 0.0
    batch_size: int = 32
    epochs: int = 1
    seed: int = 0
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        for name, choices in (("optimizer", Optimizer), ("schedule", Schedule), ("precision", Precision)):
            require_choice(name, getattr(self, name), get_args(choices))
        _require_number("learning_rate", self.learning_rate, above=0.0)
        _require_number("weight_decay", self.weight_decay, least=0.0)
        _require_number("warm_up", self.warm_up, least=0.0, below=1.0)
        _require_number("label_smoothing", self.label_smoothing, least=0.0, below=1.0)
        if self.clip_norm is not None:
            _require_number("clip_norm", self.clip_norm, above=0.0)
        for name, least, most in (("batch_size", 1, 65_536), ("epochs", 1, 100_000), ("seed", 0, 2**63 - 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise ValueError(f"{name}={value!r} must be a whole number from {least} to {most}")


def _require_number(
    name: str, value: Any, *, least: float = -math.inf, above: float = -math.inf, below: float = math.inf
) -> None:
    bounds = ((f"at least {least:g}", least), (f"greater than {above:g}", above), (f"less than {below:g}", below))
    need = " and ".join(words for words, bound in bounds if math.isfinite(bound))
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or value < least or value <= above or value >= below:
        raise ValueError(f"{name}={value!r} must be a number {need}")
