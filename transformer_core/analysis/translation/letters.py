"""A tiny translator of letters, trained within seconds: its vocabulary is so small that every target can be weighed.

The rules are those of training/corpora/sequences.py. Read next: searching.py.
"""

import functools
import threading
from dataclasses import dataclass, replace

import torch

from transformer_core.analysis.why.timing import alone_on_one_thread
from transformer_core.config import ModelConfig
from transformer_core.models import Translation
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
        loss: nats a letter, the mean over the last tenth of the steps.
    """

    model: Translation
    tokenizer: Tokenizer
    sources: tuple[str, ...]
    answers: tuple[str, ...]
    steps: int
    loss: float


def trained_letters(rule: Rule, *, epochs: int, seed: int) -> Letters:
    """Train, or remember what was trained: the same arguments give the same model.

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
