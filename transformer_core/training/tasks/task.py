"""A task: everything a training run needs to know about its data, for any kind of model, and its measures."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.loop import Objective
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.model_config import model_config

Measures = dict[str, float]
QUICK_TOKENS = 4_096
LEAST_QUICK = 64


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
        counts: how many examples a thorough measure takes of "train" and "held_out"; empty where it counts no examples.
        points: examples to follow; None where the kind of model has no sentence vector.
        prompt: a text to use where the user has typed none.
        begun: the undamaged model that a run begins with, in evaluation mode; None where it begins otherwise.
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
    counts: dict[str, int] = field(default_factory=dict)
    points: Points | None = None
    begun: nn.Module | None = None


def sample_size(lengths: Sequence[int]) -> int:
    """Return how many examples, from the first on, a quick measure takes: about 4,000 tokens, and at least 64."""
    mean = max(1, round(sum(lengths) / max(len(lengths), 1)))
    return min(len(lengths), max(LEAST_QUICK, QUICK_TOKENS // mean))


def config_of(
    spec: RunSpec, tokenizer: Tokenizer, begun: Bundle | None, *, n_classes: int | None = None
) -> ModelConfig:
    """Return the config of a run's model: what its spec says, with the sizes that vocabulary and classes determine.

    Args:
        begun: the model that the run begins with, whose own vocabulary has as many entries as it was made for.
        n_classes: None where the model has no classes.
    """
    if begun is None:
        return model_config(spec, vocab_size=tokenizer.vocab_size, n_classes=n_classes)
    values = {name: getattr(begun.config, name) for name in ("vocab_size", "pad_id", "pad_is_read")}
    return replace(spec.model, n_classes=n_classes or spec.model.n_classes, target_vocab_size=None, **values)


def word_measures(pairs: Iterator[tuple[Tensor, Tensor]], *, padding: int = PAD_ID) -> tuple[float, float, float]:
    """Return nats a token, the share of tokens guessed, and the share of rows with every token guessed.

    Shapes:
        pairs: logits (batch, pos, vocab) and words (batch, pos), where padding is not counted
    """
    loss = right = words_seen = rows_right = rows = 0.0
    for logits, words in pairs:
        real = words != padding
        loss += float(
            F.cross_entropy(logits.float().flatten(0, 1), words.flatten(), ignore_index=padding, reduction="sum")
        )
        hits = (logits.argmax(-1) == words) & real
        right, words_seen = right + float(hits.sum()), words_seen + float(real.sum())
        rows_right, rows = rows_right + float((hits == real).all(-1).sum()), rows + len(words)
    return loss / max(words_seen, 1.0), right / max(words_seen, 1.0), rows_right / max(rows, 1.0)


def both_parts(measure: Callable[[nn.Module, str, bool], tuple[float, float]]) -> Callable[[nn.Module, bool], Measures]:
    """Return a task's measure from a function that measures loss and accuracy of one part, "train" or "held_out"."""

    @torch.inference_mode()
    def measures(model: nn.Module, thorough: bool) -> Measures:
        train_loss, train_accuracy = measure(model, "train", False)
        held_out_loss, held_out_accuracy = measure(model, "held_out", thorough)
        return {
            "train_loss": train_loss,
            "train_accuracy": train_accuracy,
            "held_out_loss": held_out_loss,
            "held_out_accuracy": held_out_accuracy,
        }

    return measures
