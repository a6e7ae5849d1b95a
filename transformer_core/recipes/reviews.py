"""How the classifiers of opinions learn: first to guess hidden words, then to classify; and how they are measured.

Devlin et al. 2019, section 3.1. Without the first stage the upper layers' heads stay near uniform; the figures behind
the settings are in DECISIONS.md.
"""

import argparse
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from transformer_core.config import ModelConfig
from transformer_core.examples import Example, distinct, take
from transformer_core.measured import Trained
from transformer_core.models import Bert, Classifier
from transformer_core.recipes.command import open_clock, settle, train
from transformer_core.recipes.texts import Say
from transformer_core.text import CLS_ID, PAD_ID, SEP_ID, Tokenizer
from transformer_core.training.batching import LabelledBatch, bucketed, padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import classification, masked_words

ENCODED_AT_ONCE = 512
SENTENCE_STOPS = (".", "!", "?")


def set_aside(examples: Iterable[Example], per_class: int, *, seed: int) -> tuple[list[Example], list[Example]]:
    """Split examples into those to train on and a balanced part that is never trained on, both in random order.

    Reviews that differ only in case and blanks count once: the first is kept, so that no text is in both parts.

    Args:
        per_class: examples of each class to set aside.
        seed: of the choice.

    Returns:
        The examples to train on, and those set aside.

    Raises:
        ValueError: a class has too few examples to leave any for training.
    """
    unique = distinct(examples)
    counts = Counter(example.label for example in unique)
    for label, count in sorted(counts.items()):
        if count <= per_class:
            raise ValueError(f"label {label} has {count} different reviews; to set {per_class} aside, more are needed")
    return take(unique, dict.fromkeys(counts, per_class), seed=seed)


@dataclass(frozen=True)
class Crops:
    """How a review is cut for one epoch.

    Args:
        opening: probability of its first tokens, as many as fit.
        window: probability of a stretch of as many tokens from anywhere in it.
        longest: in the remaining cases, 1 to this many whole sentences are cut out: users of the app type short
            texts, and reviews are long.
        whole: texts of at most this many tokens are never cut: they are sentences.
    """

    opening: float
    window: float
    longest: int = 3
    whole: int = 64

    def cut(self, ids: np.ndarray, sentence_ends: np.ndarray, room: int, rng: np.random.Generator) -> np.ndarray:
        """Cut (pos,) ids to at most `room` of them; sentence_ends (n,) are the places where sentences end."""
        if len(ids) <= min(self.whole, room):
            return ids
        way = rng.random()
        if way < self.opening:
            return ids[:room]
        if way < self.opening + self.window:
            start = int(rng.integers(0, max(len(ids) - room, 0) + 1))
            return ids[start : start + room]
        bounds = np.union1d(sentence_ends, (0, max(len(ids), 1)))
        first = int(rng.integers(0, len(bounds) - 1))
        last = min(first + int(rng.integers(1, self.longest + 1)), len(bounds) - 1)
        return ids[bounds[first] : bounds[last]][:room]


class ReviewBatches:
    """The batches of any epoch: the same number gives the same crops in the same order.

    Args:
        rows: ids of each review, without special tokens.
        labels: class numbers of the reviews.
        tokenizer: that made the rows.
        crops: how to cut.
        max_len: tokens a crop has at most, [CLS] and [SEP] included.
        batch_size: reviews a batch.
        seed: together with the epoch's number it determines every random choice.
        device: of the batches; by default the processor.
    """

    def __init__(
        self,
        rows: Sequence[np.ndarray],
        labels: Sequence[int],
        tokenizer: Tokenizer,
        crops: Crops,
        *,
        max_len: int,
        batch_size: int,
        seed: int,
        device: torch.device | None = None,
    ) -> None:
        self._rows, self._labels, self._crops = rows, np.asarray(labels), crops
        self._max_len, self._batch_size, self._seed, self._device = max_len, batch_size, seed, device
        stops = [number for number in map(tokenizer.id_of, SENTENCE_STOPS) if number is not None]
        self._sentence_ends = [np.flatnonzero(np.isin(row, stops)) + 1 for row in rows]

    def __len__(self) -> int:
        return -(-len(self._rows) // self._batch_size)

    def __call__(self, epoch: int) -> Iterator[LabelledBatch]:
        """Yield the batches of an epoch."""
        rng = np.random.default_rng((self._seed, epoch))
        room = self._max_len - 2
        crops = [self._crops.cut(*pair, room, rng) for pair in zip(self._rows, self._sentence_ends, strict=True)]
        for places in bucketed([len(crop) for crop in crops], self._batch_size, rng):
            rows = [[CLS_ID, *crops[place], SEP_ID] for place in places]
            labels = self._labels[places]
            batch = LabelledBatch(padded(rows, PAD_ID), torch.from_numpy(labels))
            yield batch if self._device is None else batch.to(self._device)


def encode_rows(tokenizer: Tokenizer, examples: Sequence[Example]) -> list[np.ndarray]:
    """Return the ids of each text, in full and without [CLS] and [SEP]."""
    rows = []
    for start in range(0, len(examples), ENCODED_AT_ONCE):
        texts = [example.text for example in examples[start : start + ENCODED_AT_ONCE]]
        rows += [np.array(ids[1:-1], dtype=np.int32) for ids in tokenizer.ids_of(texts)]
    return rows


@dataclass(frozen=True)
class Pretraining:
    """How an encoder learns to guess hidden words; no label is used.

    Args:
        training: how to train.
        max_len: tokens of a stretch of a review, [CLS] and [SEP] included.
        hide: probability of hiding a token.
    """

    training: TrainConfig
    max_len: int
    hide: float


@torch.no_grad()
def copy_encoder(classifier: nn.Module, bert: nn.Module) -> None:
    """Copy the encoder's weights of a Bert into a classifier."""
    learned = dict(bert.get_submodule("encoder").named_parameters())
    for name, parameter in classifier.get_submodule("encoder").named_parameters():
        parameter.copy_(learned[name])


@torch.no_grad()
def average(models: Sequence[nn.Module]) -> nn.Module:
    """Give the first model the mean of all models' weights, and return it (Wortsman et al. 2022, model soups)."""
    of_all = [dict(model.named_parameters()) for model in models]
    for name, parameter in of_all[0].items():
        parameter.copy_(torch.stack([of_one[name] for of_one in of_all]).double().mean(0))
    return models[0]


@dataclass(frozen=True)
class SentimentSettings:
    """What the recipe fixes.

    Args:
        vocab_size: largest size of the vocabulary.
        model: sizes of the encoder and the classifier.
        pretraining: the first stage.
        training, crops, hide: the second stage: how to train, how to cut reviews, probability of hiding a token.
        runs: how often the second stage is trained, each time from the first and in another order; the classifier has
            the mean of their weights.
    """

    vocab_size: int
    model: ModelConfig
    pretraining: Pretraining
    training: TrainConfig
    crops: Crops
    hide: float
    runs: int = 1


STRETCHES = Crops(opening=0.0, window=1.0, whole=0)


def quick(settings: SentimentSettings) -> SentimentSettings:
    """Return settings of a tiny classifier that trains in seconds."""
    before = settings.pretraining
    return replace(
        settings,
        vocab_size=400,
        model=replace(settings.model, d_model=32, n_heads=4, d_head=8, d_ff=64, n_layers=1, max_len=64),
        pretraining=replace(before, training=replace(before.training, batch_size=16, epochs=1), max_len=32),
        training=replace(settings.training, learning_rate=3e-3, batch_size=16, epochs=2),
    )


def describe(settings: SentimentSettings, say: Say) -> str:
    """Return in words how a classifier is trained."""
    once = say(
        "classifier.training",
        before=settings.pretraining,
        config=settings.training,
        crops=settings.crops,
        hide=settings.hide,
        dropout=settings.model.dropout,
        schedule=say(f"schedule.{settings.training.schedule}"),
    )
    return once if settings.runs == 1 else say("classifier.runs", once=once, runs=settings.runs)


def train_in_stages(
    settings: SentimentSettings,
    tokenizer: Tokenizer,
    to_read: Sequence[Example],
    to_judge: Sequence[Example],
    chosen: argparse.Namespace,
    *,
    name: str = "",
) -> tuple[nn.Module, list[Trained]]:
    """Train an encoder to guess hidden words, then a classifier that starts from it.

    Args:
        to_read: texts of the first stage, whose labels are not used.
        to_judge: examples of the second; one may occur several times.
        name: put before the names of the stages, where a recipe trains several classifiers.

    Returns:
        The classifier, and what each stage took.
    """
    model = replace(settings.model, vocab_size=tokenizer.vocab_size, target_vocab_size=None)
    before, device = settle(settings.pretraining.training, chosen)
    config, _ = settle(settings.training, chosen)

    def cut(examples: Sequence[Example], crops: Crops, max_len: int, training: TrainConfig) -> ReviewBatches:
        rows, labels = encode_rows(tokenizer, examples), [example.label for example in examples]
        options = {"max_len": max_len, "batch_size": training.batch_size, "seed": training.seed, "device": device}
        return ReviewBatches(rows, labels, tokenizer, crops, **options)

    stretches = cut(to_read, STRETCHES, settings.pretraining.max_len, before)
    stage = functools.partial(train, device=device, chosen=chosen, clock=open_clock(chosen))
    bert, read = stage(
        lambda: Bert(model),
        functools.partial(masked_words, probability=settings.pretraining.hide),
        stretches,
        steps_per_epoch=len(stretches),
        config=before,
        stage=f"{name}pretraining",
    )

    def pretrained_classifier() -> nn.Module:
        classifier = Classifier(model)
        copy_encoder(classifier, bert)
        return classifier

    def judge(run: int) -> tuple[nn.Module, Trained]:
        seeded = replace(config, seed=config.seed + run)
        crops = cut(to_judge, settings.crops, model.max_len, seeded)
        return stage(
            pretrained_classifier,
            functools.partial(classification, label_smoothing=config.label_smoothing, hide=settings.hide),
            crops,
            steps_per_epoch=len(crops),
            config=seeded,
            stage=f"{name}training{f'-{run + 1}' if run else ''}",
        )

    classifiers, judged = zip(*map(judge, range(settings.runs)), strict=True)
    return average(classifiers), [read, *judged]
