"""A tiny training: a BERT of one layer guesses hidden words of the corpus for a few seconds, for its embeddings' sake.

Devlin et al. 2019, section 3.1. Read next: two_embeddings.py.
"""

import functools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.analysis.words.one_corpus import one_corpus
from transformer_core.config import ModelConfig
from transformer_core.models import Bert
from transformer_core.text import PAD_ID
from transformer_core.training.batching import LabelledBatch, epochs_of, padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.corpora import Language
from transformer_core.training.loop import Run
from transformer_core.training.objectives import masked_words

DIMENSIONS = (8, 16, 32, 64)
HIDDEN = 0.3
MAX_LEN = 64
TRAINING = TrainConfig(learning_rate=0.01, batch_size=64, epochs=16, seed=0)
_trained: dict[tuple[str, int], "Trained"] = {}
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, eq=False)
class Trained:
    """What a tiny training left.

    Shapes:
        vectors: (vocab, dimension)

    Args:
        losses: nats a hidden word, means over the first and the last tenth of the steps.
        steps: how many.
        seconds: of wall-clock time.
    """

    vectors: Tensor
    losses: tuple[float, float]
    steps: int
    seconds: float


def is_trained(language: Language, dimension: int) -> bool:
    """Tell whether this process has trained these vectors already."""
    return (language, dimension) in _trained


def trained_vectors(language: Language, dimension: int) -> Trained:
    """Train, or remember what was trained: the same language and dimension give the same vectors.

    Raises:
        ValueError: the dimension is none of DIMENSIONS, or there is no such language.
    """
    if dimension not in DIMENSIONS:
        raise ValueError(f"dimension={dimension} must be one of {DIMENSIONS}")
    with _one_at_a_time:
        if (language, dimension) not in _trained:
            _trained[language, dimension] = _train(language, dimension)
        return _trained[language, dimension]


def _train(language: Language, dimension: int) -> Trained:
    corpus = one_corpus(language)
    rows = [row[:MAX_LEN] for row in corpus.rows]

    def batch(places: Sequence[int]) -> LabelledBatch:
        ids = padded([rows[place] for place in places], PAD_ID)
        return LabelledBatch(ids, torch.zeros(len(ids), dtype=torch.long))

    config = ModelConfig(
        vocab_size=corpus.tokenizer.vocab_size,
        d_model=dimension,
        n_heads=2,
        d_ff=2 * dimension,
        n_layers=1,
        max_len=MAX_LEN,
        dropout=0.0,
        pad_id=PAD_ID,
        scale_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(TRAINING.seed)
        model = Bert(config)
    batches, steps_per_epoch = epochs_of(list(map(len, rows)), TRAINING.batch_size, TRAINING.seed, batch)
    objective = functools.partial(masked_words, probability=HIDDEN)
    started = time.perf_counter()
    run = Run(model, objective, batches, steps_per_epoch=steps_per_epoch, config=TRAINING)
    losses = [step.loss for step in run.steps()]
    tenth = max(1, len(losses) // 10)
    return Trained(
        model.encoder.embedding.token.weight.detach().float().clone(),
        (sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth),
        len(losses),
        time.perf_counter() - started,
    )
