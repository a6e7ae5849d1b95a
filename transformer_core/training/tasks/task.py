"""A task: all that a run must know of what it learns, whatever the kind of model.

Read next: classification.py.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.text import Tokenizer
from transformer_core.training.loop import Objective

Measures = dict[str, float]


@dataclass(frozen=True, eq=False)
class Points:
    """Examples whose sentence vectors are followed through a run.

    Shapes:
        token_ids: (point, pos), padded on the right

    Args:
        texts: one a point.
        labels: class numbers, one a point.
        held_out: whether the point was never trained on, one a point.
    """

    texts: Sequence[str]
    labels: Sequence[int]
    held_out: Sequence[bool]
    token_ids: Tensor

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, eq=False)
class Task:
    """What a run learns.

    Args:
        kind: of model, an entry of bundle.MODELS.
        config: of the model, complete.
        tokenizer: between texts and ids.
        labels: names of the classes; empty for models without classes.
        objective: from the model and a batch to the loss.
        batches: from an epoch's number to its batches, the same number to the same batches.
        steps_per_epoch: how many batches an epoch has.
        measure: from the model, in evaluation mode, and whether to be thorough, to its measures: "train_loss" and
            "held_out_loss" in nats, "train_accuracy" and "held_out_accuracy" in [0, 1]. A quick measure takes a fixed
            sample, a thorough one every held-out example.
        baselines: held-out accuracy of simple rules by name, such as "majority" and "bag_of_words".
        points: examples to follow; None where the kind of model has no sentence vector.
        prompt: a text to begin with when nobody has typed one.
    """

    kind: str
    config: ModelConfig
    tokenizer: Tokenizer
    objective: Objective
    batches: Callable[[int], Iterable[Any]]
    steps_per_epoch: int
    measure: Callable[[nn.Module, bool], Measures]
    prompt: str
    labels: tuple[str, ...] = ()
    baselines: Measures = field(default_factory=dict)
    points: Points | None = None
