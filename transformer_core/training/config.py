"""TrainConfig: all settings of a training run, checked when it is constructed.

Vaswani et al. 2017, section 5; AdamW: Loshchilov and Hutter 2019.
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

    Raises:
        ValueError: a value outside its range.
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

    def __post_init__(self) -> None:
        check_fields(self)
