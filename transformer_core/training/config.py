"""TrainConfig: all settings of a training run, checked when it is constructed.

Vaswani et al. 2017, section 5; AdamW: Loshchilov and Hutter 2019; the range test: Smith 2017, section 3.3.
"""

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from transformer_core.untrusted.schema import check_fields

Optimizer = Literal["adamw", "adam", "sgd", "muon"]
Schedule = Literal["cosine", "constant", "noam"]
Precision = Literal["float32", "bfloat16"]
Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max, description="a number greater than 0")]
NotNegative = Annotated[float, Meta(ge=0, le=sys.float_info.max, description="a number at least 0")]
Probability = Annotated[float, Meta(ge=0, lt=1, description="a number at least 0 and less than 1")]


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
        patience: after so many evaluations in a row without an improvement of the held-out loss the run stops; None
            never stops it. See early_stopping.watch.
        min_improvement: by how much a loss must lie below the best one to count as an improvement, in nats.
        range_test: the learning rate rises exponentially from range_from at the first step to range_to at the last;
            learning_rate, warm_up, schedule, patience and min_improvement then count for nothing.
        range_from, range_to: learning rates.

    Raises:
        ValueError: a value outside its range, or a range test whose rate would not rise.
    """

    optimizer: Optimizer = "adamw"
    learning_rate: Positive = 1e-3
    warm_up: Probability = 0.1
    schedule: Schedule = "cosine"
    weight_decay: NotNegative = 0.01
    clip_norm: Positive | None = 1.0
    label_smoothing: Probability = 0.0
    batch_size: Annotated[int, Meta(ge=1, le=65_536)] = 32
    epochs: Annotated[int, Meta(ge=1, le=100_000)] = 1
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    precision: Precision = "float32"
    patience: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    min_improvement: NotNegative = 0.0
    range_test: bool = False
    range_from: Positive = 1e-6
    range_to: Positive = 10.0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.range_test and self.range_from >= self.range_to:
            raise ValueError(f"range_from={self.range_from:g} must be less than range_to={self.range_to:g}")

    @property
    def stops_early(self) -> bool:
        """Whether evaluations may end the run before its last step."""
        return self.patience is not None and not self.range_test
