"""A tiny BERT trained for a few seconds on the built-in reviews, for its embeddings' sake.

Devlin et al. 2019, section 3.1.
"""

import functools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.config import ModelConfig
from transformer_core.models import Bert
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import LabelledBatch, epochs_of, padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.corpora import Language, reviews
from transformer_core.training.corpora.grammar import load_grammar
from transformer_core.training.loop import Run
from transformer_core.training.objectives import masked_words

REVIEWS = 4_000
LEAST_OFTEN = 8
MOST_WORDS = 1_000
KINDS = ("praise", "blame", "thing", "other")


@dataclass(frozen=True, eq=False)
class Corpus:
    """The built-in reviews of one language, cut into words.

    Chinese is cut into characters: its words are not distinguished by blanks.

    Args:
        language: "en" or "zh".
        texts: as they were written.
        tokenizer: knows every word that occurs at least 8 times.
        rows: the ids of each text.
        kinds: of each id, what the grammar uses the word for: "praise", "blame", "thing" or "other".
    """

    language: Language
    texts: tuple[str, ...]
    tokenizer: Tokenizer
    rows: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]


@functools.cache
def one_corpus(language: Language) -> Corpus:
    """Write the reviews and cut them; always the same.

    Raises:
        ValueError: there is no such language.
    """
    texts = tuple(example.text for example in reviews(language, train=REVIEWS, held_out=0)[0])
    options = {"vocab_size": MOST_WORDS, "lowercase": True, "min_frequency": LEAST_OFTEN, "template": "none"}
    tokenizer = Tokenizer.train("word", texts, **options)
    rows = tuple(tokenizer.ids_of(texts))
    return Corpus(language, texts, tokenizer, rows, _kinds(tokenizer, language))


def _kinds(tokenizer: Tokenizer, language: Language) -> tuple[str, ...]:
    uses: dict[int, set[str]] = {}
    for lists in load_grammar(language).lists.values():
        for (_, polarity), words in lists.items():
            for word in words.known:
                id_ = tokenizer.id_of(word.lower())
                if id_ is not None:
                    uses.setdefault(id_, set()).add("thing" if polarity is None else ("blame", "praise")[polarity])
    single = {id_: next(iter(kinds)) for id_, kinds in uses.items() if len(kinds) == 1}
    return tuple(single.get(id_, "other") for id_ in range(tokenizer.vocab_size))


DIMENSIONS = (8, 16, 32, 64)
HIDDEN = 0.3
MAX_LEN = 64
TRAINING = TrainConfig(learning_rate=0.01, batch_size=64, epochs=16, seed=0)
_trained: dict[tuple[str, int], "Trained"] = {}
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of a tiny training.

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


def trained_vectors(language: Language, dimension: int) -> Trained:
    """Train, or return the cached result: the same language and dimension give the same vectors.

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
