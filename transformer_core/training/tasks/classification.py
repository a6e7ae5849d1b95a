"""Text classification: the task whose sentence vectors separate by class during training.

Devlin et al. 2019, section 4.1.
"""

import functools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.examples import Example
from transformer_core.text import Tokenizer
from transformer_core.training.baselines import bag_of_words, majority
from transformer_core.training.batching import LabelledBatch, epochs_of, in_turn, padded
from transformer_core.training.objectives import classification
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.task import Points, Task, both_parts, config_of, sample_size

LONGEST_SHOWN = 400


class LabelledPart:
    """Examples of one part, train or held out, as ids."""

    def __init__(
        self, examples: Sequence[Example], tokenizer: Tokenizer, config: ModelConfig, device: torch.device
    ) -> None:
        self.examples, self._device, self.padding = examples, device, config.padding
        self.rows = tokenizer.ids_of([example.text for example in examples], max_len=config.max_len)
        self.lengths = [len(row) for row in self.rows]
        self.labels = [example.label for example in examples]

    def batch(self, places: Sequence[int]) -> LabelledBatch:
        """Return the examples at these places as a batch on the device."""
        rows, labels = [self.rows[place] for place in places], [self.labels[place] for place in places]
        return LabelledBatch(padded(rows, self.padding), torch.tensor(labels)).to(self._device)

    def measure(self, model: nn.Module, count: int) -> tuple[float, float]:
        """Return loss in nats and accuracy on the first `count` examples."""
        loss, right = 0.0, 0
        for places in in_turn(self.lengths[:count]):
            batch = self.batch(places)
            logits = model(batch.token_ids).float()
            loss += float(F.cross_entropy(logits, batch.labels, reduction="sum"))
            right += int((logits.argmax(-1) == batch.labels).sum())
        return loss / count, right / count


def _points(parts: dict[str, LabelledPart], count: int) -> Points:
    """Take the first examples of each part, as many of one as of the other where there are enough."""
    shares = {name: min(count // 2, len(part.rows)) for name, part in parts.items()}
    chosen = [(part, place, name == "held_out") for name, part in parts.items() for place in range(shares[name])]
    return Points(
        texts=[part.examples[place].text[:LONGEST_SHOWN] for part, place, _ in chosen],
        labels=[part.labels[place] for part, place, _ in chosen],
        held_out=[held_out for _, _, held_out in chosen],
        token_ids=padded([part.rows[place] for part, place, _ in chosen], parts["train"].padding),
    )


def classification_task(
    spec: RunSpec,
    train: Sequence[Example],
    held_out: Sequence[Example],
    labels: Sequence[str],
    device: torch.device,
    begun: Bundle | None = None,
) -> Task:
    """Return the task of classifying texts.

    Words that occur only once in training become unknown, so that the model learns to handle unknown words.

    Args:
        spec: the run's.
        train, held_out: in random order.
        labels: names of the classes.
        device: of the batches.
        begun: the model that the run begins with, if it is not a fresh one; its classes must be these.

    Raises:
        ValueError: the texts leave nothing to learn a vocabulary from.
    """
    tokenizer = (
        begun.tokenizer
        if begun is not None
        else Tokenizer.train(
            spec.data.tokenizer,
            [example.text for example in train],
            vocab_size=spec.data.vocab_size,
            lowercase=True,
        )
    )
    config = config_of(spec, tokenizer, begun, n_classes=len(labels))
    parts = {
        name: LabelledPart(examples, tokenizer, config, device)
        for name, examples in (("train", train), ("held_out", held_out))
    }
    sizes = {name: sample_size(part.lengths) for name, part in parts.items()}

    def measure(model: nn.Module, name: str, thorough: bool) -> tuple[float, float]:
        return parts[name].measure(model, len(parts[name].rows) if thorough else sizes[name])

    part, training = parts["train"], spec.training
    batches, steps_per_epoch = epochs_of(part.lengths, training.batch_size, training.seed, part.batch)
    return Task(
        kind=spec.kind,
        config=config,
        tokenizer=tokenizer,
        labels=tuple(labels),
        objective=functools.partial(
            classification,
            label_smoothing=training.label_smoothing,
            softmax_before_loss=spec.softmax_before_loss,
        ),
        batches=batches,
        steps_per_epoch=steps_per_epoch,
        measure=both_parts(measure),
        baselines={
            "majority": majority(part.labels, parts["held_out"].labels),
            "bag_of_words": bag_of_words(train, held_out, tokenizer, n_classes=len(labels)),
        },
        counts={"train": sizes["train"], "held_out": len(held_out)},
        points=_points(parts, spec.points),
        prompt=held_out[0].text[:LONGEST_SHOWN],
    )
