"""Greedy, beam and exhaustive search on a tiny translator of letters, whose vocabulary allows scoring every target.

Search errors and model errors: Stahlberg and Byrne 2019, section 3. The rules of the letters are those of
training/corpora/sequences.py.
"""

import functools
import threading
from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer_core.analysis.timing import alone_on_one_thread
from transformer_core.config import ModelConfig
from transformer_core.generation import Hypothesis, beam_search, best_of, exhaustive_search, ranked
from transformer_core.generation.beam import count_hypotheses
from transformer_core.models import Translation
from transformer_core.progress import counted
from transformer_core.text import EOS_ID, SPECIAL_TOKENS, Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.training.corpora.sequences import Rule, answer, sequences
from transformer_core.training.loop import Run
from transformer_core.training.spec import DataSpec, RunSpec
from transformer_core.training.tasks.sequences import sequence_task

SYMBOLS, LENGTH = 3, 5
TRAIN, HELD_OUT = 300, 32
EXCLUDED = tuple(id_ for id_ in range(len(SPECIAL_TOKENS)) if id_ != EOS_ID)
SPEC = RunSpec(
    name="letters",
    data=DataSpec(source="reverse", examples=TRAIN, held_out=HELD_OUT, symbols=SYMBOLS, length=LENGTH),
    model=ModelConfig(
        vocab_size=16, d_model=32, n_heads=2, d_ff=64, n_layers=1, max_len=16, dropout=0.0, scale_embeddings=True
    ),
    training=TrainConfig(learning_rate=5e-3, batch_size=32, epochs=4),
)
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, eq=False)
class Letters:
    """A trained translator of letters.

    Args:
        sources: held out from training; answers: what the rule makes of them.
        steps: of training.
        loss: nats per letter, the mean over the last tenth of the steps.
    """

    model: Translation
    tokenizer: Tokenizer
    sources: tuple[str, ...]
    answers: tuple[str, ...]
    steps: int
    loss: float


def trained_letters(rule: Rule, *, epochs: int, seed: int) -> Letters:
    """Train, or return the cached model: the same arguments give the same model.

    Args:
        rule: copy, reverse or sort.
        epochs: over 300 pairs of 2 to 5 letters out of three.
        seed: of the pairs, their order and the starting weights.

    Raises:
        ValueError: there is no such rule, or epochs is less than 1.
    """
    with _one_at_a_time:
        return _train(rule, epochs, seed)


@functools.lru_cache(maxsize=32)
def _train(rule: Rule, epochs: int, seed: int) -> Letters:
    training = replace(SPEC.training, epochs=epochs, seed=seed)
    task = sequence_task(replace(SPEC, data=replace(SPEC.data, source=rule), training=training), torch.device("cpu"))
    with torch.random.fork_rng(devices=[]), alone_on_one_thread():
        torch.manual_seed(seed)
        model = Translation(task.config)
        run = Run(model, task.objective, task.batches, steps_per_epoch=task.steps_per_epoch, config=training)
        losses = [step.loss for step in run.steps()]
    _, held_out = sequences(rule, symbols=SYMBOLS, length=LENGTH, train=TRAIN, held_out=HELD_OUT, seed=seed)
    sources, answers = zip(*held_out, strict=True)
    tail = losses[-max(1, len(losses) // 10) :]
    return Letters(
        model.eval().requires_grad_(False), task.tokenizer, sources, answers, len(losses), sum(tail) / len(tail)
    )


def letters_of(source: str, rule: Rule) -> tuple[str, str]:
    """Return a source of letters as the model reads it, with blanks between, and what the rule makes of it.

    Raises:
        ValueError: there are fewer than 2 or more than 5 letters, or others than a, b and c.
    """
    letters = source.lower().split() if " " in source.strip() else list(source.strip().lower())
    known = "abcdefghijklmnopqrstuvwxyz"[:SYMBOLS]
    if not 2 <= len(letters) <= LENGTH or any(letter not in tuple(known) for letter in letters):
        raise ValueError(f"source={source[:40]!r} must be 2 to {LENGTH} letters out of {', '.join(known)}")
    spaced = " ".join(letters)
    return spaced, answer(rule, spaced)


MOST = LENGTH + 1
WIDTHS = (1, 2, 3, 4, 5)
SAME = 1e-6


@dataclass(frozen=True, eq=False)
class Searched:
    """What every search finds for one source.

    Shapes:
        scores, log_probs, weighed: (width,); best_scores, best_log_probs: (rank,)

    Args:
        answer: what the rule makes of the source.
        texts: by width, the first being greedy; "…" marks what was cut off before its end.
        weighed: how many hypotheses each search scored.
        best_texts: of all targets there are, the best by score.
        n_targets: how many there are.
        steps, loss: of the training.
    """

    source: str
    answer: str
    texts: tuple[str, ...]
    scores: np.ndarray
    log_probs: np.ndarray
    weighed: np.ndarray
    best_texts: tuple[str, ...]
    best_scores: np.ndarray
    best_log_probs: np.ndarray
    n_targets: int
    steps: int
    loss: float

    @property
    def found(self) -> tuple[bool, ...]:
        """Whether each width finds the best of all."""
        return tuple(bool(score >= self.best_scores[0] - SAME) for score in self.scores)


def _options(letters: Letters, length_penalty: float) -> dict:
    tokenizer = letters.tokenizer
    return {
        "bos_id": tokenizer.bos_id,
        "eos_id": tokenizer.eos_id,
        "most": MOST,
        "length_penalty": length_penalty,
        "exclude": EXCLUDED,
    }


def _text(letters: Letters, hypothesis: Hypothesis) -> str:
    written = letters.tokenizer.decode(hypothesis.token_ids)
    return written if hypothesis.finished else f"{written} …".strip()


def letter_search(*, rule: Rule, source: str, epochs: int, seed: int, length_penalty: float, top: int = 8) -> Searched:
    """Train a tiny translator of letters, and search for the best target of one source in every way.

    Args:
        rule, epochs, seed: as in trained_letters.
        source: 2 to 5 letters out of a, b and c.
        length_penalty: alpha.
        top: how many of all targets are named.

    Raises:
        ValueError: as trained_letters, letters_of and beam_search.
    """
    spaced, right = letters_of(source, rule)
    letters = trained_letters(rule, epochs=epochs, seed=seed)
    options = _options(letters, length_penalty)
    source_ids = torch.tensor([letters.tokenizer.encode(spaced).ids])  # (1, source_pos)
    searches = [list(beam_search(letters.model, source_ids, width=width, **options)) for width in WIDTHS]
    found = [best_of(steps) for steps in searches]
    *_, last = exhaustive_search(letters.model, source_ids, **options)
    every = ranked(last)
    words = SYMBOLS + 1
    return Searched(
        source=spaced,
        answer=right,
        texts=tuple(_text(letters, one) for one in found),
        scores=np.array([one.score for one in found]),
        log_probs=np.array([one.log_prob for one in found]),
        weighed=np.array([words * (1 + sum(len(step.kept) for step in steps[:-1])) for steps in searches]),
        best_texts=tuple(_text(letters, one) for one in every[:top]),
        best_scores=np.array([one.score for one in every[:top]]),
        best_log_probs=np.array([one.log_prob for one in every[:top]]),
        n_targets=count_hypotheses(SYMBOLS, MOST),
        steps=letters.steps,
        loss=letters.loss,
    )


@dataclass(frozen=True, eq=False)
class Survey:
    """How often each width finds the best of all targets, and how often what it finds is right.

    Shapes:
        found, right: (width,), shares of the sources

    Args:
        best_right: how often the best of all is right, a share.
        missed: the sources for which greedy misses the best.
    """

    widths: tuple[int, ...]
    found: np.ndarray
    right: np.ndarray
    best_right: float
    missed: tuple[str, ...]
    n_sources: int


def letter_survey(*, rule: Rule, epochs: int, seed: int, length_penalty: float) -> Survey:
    """Search in every way for each held-out source; arguments as in letter_search.

    Raises:
        ValueError: as letter_search.
    """
    letters = trained_letters(rule, epochs=epochs, seed=seed)
    each = [
        letter_search(rule=rule, source=source, epochs=epochs, seed=seed, length_penalty=length_penalty, top=1)
        for source in counted(letters.sources)
    ]
    return Survey(
        widths=WIDTHS,
        found=np.mean([one.found for one in each], axis=0),
        right=np.mean([[text == one.answer for text in one.texts] for one in each], axis=0),
        best_right=float(np.mean([one.best_texts[0] == one.answer for one in each])),
        missed=tuple(one.source for one in each if not one.found[0]),
        n_sources=len(each),
    )
