"""Short trainings: what they learn from, and variants of one model side by side from the same seeds and weights."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_core.analysis.timing import alone_on_one_thread
from transformer_core.bundle import MODELS
from transformer_core.layers.initialization import initialize
from transformer_core.progress import counted
from transformer_core.text import Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.training.corpora import Language, passage
from transformer_core.training.loop import Objective, Run
from transformer_core.training.runs.presets import QUICK
from transformer_core.training.tasks.characters import characters_of, parts_of
from transformer_core.training.tasks.make import make_task

WINDOW = 16
SMALL = replace(
    QUICK,
    data=replace(QUICK.data, examples=4_000, held_out=400),
    model=replace(QUICK.model, d_model=32, d_ff=64, n_layers=1),
    training=replace(QUICK.training, learning_rate=5e-3, batch_size=64, epochs=4),
)


def characters_of_passage(language: Language) -> tuple[Tokenizer, str, str]:
    """Return a tokenizer of characters, what it knows of the built-in running text, and the last tenth, held out.

    Raises:
        ValueError: there is no such language.
    """
    learned, held_out = parts_of(passage(language))
    return characters_of(learned), learned, held_out


def backwards_loss(model: nn.Module, rows: Tensor) -> Tensor:
    """Return the cross entropy of writing rows of symbols backwards, in nats a symbol.

    Shapes:
        rows: (batch, pos), ids, from which the model scores every symbol at every place
    """
    return F.cross_entropy(model(rows).flatten(0, 1), rows.flip(1).flatten())


@torch.inference_mode()
def backwards_right(model: nn.Module, rows: Tensor) -> float:
    """Return the share of symbols right where rows, as of backwards_loss, are to be written backwards."""
    return float((model(rows).argmax(-1) == rows.flip(1)).float().mean())


@dataclass(frozen=True, eq=False)
class Trial:
    """What every run reached.

    Shapes:
        variants, seeds, accuracy, held_out_loss, parameters: (run,)
        steps: (point,); losses: (run, point), means over windows of 16 steps, in nats

    Args:
        accuracy: on held-out examples, in [0, 1]; chance is what guessing gives.
    """

    variants: tuple[str, ...]
    seeds: np.ndarray
    steps: np.ndarray
    losses: np.ndarray
    accuracy: np.ndarray
    held_out_loss: np.ndarray
    parameters: np.ndarray
    chance: float

    def of(self, variant: str, measured: np.ndarray) -> np.ndarray:
        """Return the part of a measure, one per run, that belongs to a variant."""
        return measured[np.array(self.variants) == variant]

    def gap(self, variant: str, reference: str) -> float:
        """Return how much more accuracy a variant has than a reference, mean over seeds."""
        return float(np.mean(self.of(variant, self.accuracy) - self.of(reference, self.accuracy)))

    def noise(self, *variants: str) -> float:
        """Return how far accuracies of one variant differ between seeds at most."""
        return max(float(np.ptp(self.of(variant, self.accuracy))) for variant in variants)


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a seed's runs share: batches, the loss, and how a model is measured after training.

    Args:
        measure: from a model to its accuracy and its loss on held-out examples.
    """

    objective: Objective
    batches: Callable[[int], Iterable[Any]]
    steps_per_epoch: int
    training: TrainConfig
    measure: Callable[[nn.Module], tuple[float, float]]


def start_alike(models: Mapping[str, nn.Module], seed: int) -> None:
    """Fill all models with seeded weights; what has a name and shape in common starts as in the first one."""
    first = next(iter(models.values()))
    for model in models.values():
        initialize(model, torch.Generator().manual_seed(seed))
        own, common = model.state_dict(), first.state_dict()
        shared = {name: common[name] for name in own if name in common and own[name].shape == common[name].shape}
        model.load_state_dict(shared, strict=False)


def train_each(lessons: Sequence[tuple[int, Lesson, Mapping[str, nn.Module]]], *, chance: float) -> Trial:
    """Train every variant of every seed, one after another on one thread."""
    rows = []
    with alone_on_one_thread():
        for seed, lesson, models in counted(lessons):
            start_alike(models, seed)
            for variant, model in counted(models.items()):
                run = Run(
                    model,
                    lesson.objective,
                    lesson.batches,
                    steps_per_epoch=lesson.steps_per_epoch,
                    config=lesson.training,
                )
                losses = np.array([step.loss for step in run.steps()])
                windows = losses[: len(losses) // WINDOW * WINDOW].reshape(-1, WINDOW).mean(-1)
                accuracy, loss = lesson.measure(model.eval())
                parameters = sum(parameter.numel() for parameter in model.parameters())
                rows.append((variant, seed, windows, accuracy, loss, parameters))
    variants, seeds, curves, *measures = zip(*rows, strict=True)
    steps = WINDOW * (np.arange(len(curves[0])) + 0.5)
    accuracy, loss, parameters = map(np.array, measures)
    return Trial(variants, np.array(seeds), steps, np.stack(curves), accuracy, loss, parameters, chance)


def train_on_reviews(variants: Mapping[str, Mapping[str, Any]], *, language: str, seeds: tuple[int, ...]) -> Trial:
    """Train variants of a one-layer model on a part of the built-in reviews: some 250 steps each.

    Args:
        variants: changes of ModelConfig by name; the first one is the reference whose starting weights others share.
        language: of the reviews, "en" or "zh".
        seeds: of the reviews, their order, and the starting weights.

    Raises:
        ValueError: there is no such language or choice.
    """
    lessons = []
    for seed in seeds:
        spec = replace(
            SMALL,
            data=replace(SMALL.data, language=language),
            training=replace(SMALL.training, seed=seed),
        )
        task = make_task(spec, None)

        def measure(model: nn.Module, task=task) -> tuple[float, float]:
            measures = task.measure(model, True)
            return measures["held_out_accuracy"], measures["held_out_loss"]

        lesson = Lesson(task.objective, task.batches, task.steps_per_epoch, spec.training, measure)
        models = {name: MODELS[task.kind](replace(task.config, **changes)) for name, changes in variants.items()}
        lessons.append((seed, lesson, models))
    return train_each(lessons, chance=task.baselines["majority"])
