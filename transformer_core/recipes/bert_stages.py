"""How Bert is trained: on hidden words, then on pairs of captions as well, then on as many pairs from stories.

Devlin et al. 2019, section 3.1. Departure: BERT learns both from the start; in a short training, pairs are then never
learned (DECISIONS.md). Read next: bert_card.py.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer_core.config import ModelConfig
from transformer_core.recipes.captions import Sentences, sentence_pairs
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import UNPAIRED, PackedBatch, bucketed, padded
from transformer_core.training.config import TrainConfig


@dataclass(frozen=True)
class Stage:
    """One of several trainings, each of which goes on from the one before.

    Args:
        name: of its folder.
        hide: probability of hiding a token; BERT has 0.15, a short training learns more from more.
        alone: share of the sentences that are read alone, drawn anew each epoch.
        pairs_a_picture: pairs of captions a picture.
        pairs_a_neighbour: pairs a sentence of a story that has a next one; stories are few beside captions.
        training: how to train.
    """

    name: str
    hide: float
    alone: float
    pairs_a_picture: int
    training: TrainConfig
    pairs_a_neighbour: int = 1


@dataclass(frozen=True)
class Settings:
    """What the recipe fixes."""

    vocab_size: int
    model: ModelConfig
    stages: tuple[Stage, ...]


WORDS = TrainConfig(
    optimizer="muon",
    learning_rate=4e-3,
    warm_up=0.02,
    schedule="constant",
    weight_decay=0.05,
    batch_size=64,
    epochs=3,
)
FULL = Settings(
    vocab_size=4_000,
    model=ModelConfig(
        vocab_size=16,
        d_model=192,
        n_heads=6,
        d_ff=768,
        n_layers=4,
        max_len=96,
        dropout=0.0,
        positions="learned",
        n_segments=2,
        embedding_norm=True,
    ),
    stages=(
        Stage("words", hide=0.3, alone=1.0, pairs_a_picture=0, training=WORDS),
        Stage("pairs", hide=0.25, alone=0.3, pairs_a_picture=3, training=replace(WORDS, schedule="cosine")),
        Stage(
            "stories",
            hide=0.15,
            alone=0.3,
            pairs_a_picture=1,
            pairs_a_neighbour=4,
            training=replace(WORDS, schedule="cosine", learning_rate=2e-3, epochs=1),
        ),
    ),
)
QUICK = Settings(
    vocab_size=1_000,
    model=replace(FULL.model, d_model=32, n_heads=2, d_head=16, d_ff=64, n_layers=1),
    stages=tuple(replace(stage, training=replace(stage.training, epochs=1)) for stage in FULL.stages),
)


class PackedBatches:
    """Sentences alone and pairs, both drawn anew each epoch, bucketed by length."""

    def __init__(self, sentences: Sentences, tokenizer: Tokenizer, stage: Stage, max_len: int, seed: int) -> None:
        self._sentences, self._tokenizer, self._stage, self._max_len = sentences, tokenizer, stage, max_len
        self._seed = seed
        groups = (*sentences.pictures, *sentences.stories)
        self._alone = self._rows([sentence for group in groups for sentence in group], None)
        self._n_alone = round(stage.alone * len(self._alone))
        self._n_pairs = len(self._pairs(random.Random(seed)))

    def __len__(self) -> int:
        return -(-(self._n_alone + self._n_pairs) // self._stage.training.batch_size)

    def _rows(self, firsts: Sequence[str], seconds: Sequence[str] | None) -> list[tuple[Sequence[int], Sequence[int]]]:
        encodings = self._tokenizer.encode_batch(firsts, seconds, max_len=self._max_len)
        return [(encoding.ids, encoding.segment_ids) for encoding in encodings]

    def _pairs(self, rng: random.Random) -> list[tuple[str, str, bool]]:
        stage = self._stage
        return sentence_pairs(
            self._sentences, rng, a_picture=stage.pairs_a_picture, a_neighbour=stage.pairs_a_neighbour
        )

    def epoch(self, number: int) -> Iterator[PackedBatch]:
        """Yield the batches of an epoch; the same number gives the same batches."""
        rng = random.Random(f"{self._seed} {number}")
        pairs = self._pairs(rng)
        alone = self._alone if self._n_alone == len(self._alone) else rng.sample(self._alone, self._n_alone)
        rows = alone + self._rows([first for first, _, _ in pairs], [second for _, second, _ in pairs])
        classes = [UNPAIRED] * len(alone) + [int(not together) for _, _, together in pairs]
        order = np.random.default_rng((self._seed, number))
        for places in bucketed([len(ids) for ids, _ in rows], self._stage.training.batch_size, order):
            yield PackedBatch(
                padded([rows[place][0] for place in places], PAD_ID),
                padded([rows[place][1] for place in places], 0),
                torch.tensor([classes[place] for place in places]),
            )
