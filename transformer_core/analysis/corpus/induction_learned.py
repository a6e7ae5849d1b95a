"""An induction head coming into being: a model of two layers learns random symbols that repeat, and is measured as it
learns.

Olsson et al. 2022, section "Per-head analysis": the head appears within a few steps, and with it the loss of what is
repeated falls. Departures: the sequences are random instead of text, and one small model is trained.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from string import ascii_letters

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.attention.heads import WEIGHTS
from transformer_core.analysis.corpus.induction import (
    INDUCES_FROM,
    LONGEST,
    SHORTEST_WISHED,
    Sequence,
    induction_scores,
    random_sequences,
)
from transformer_core.analysis.short_training import start_alike
from transformer_core.analysis.timing import alone_on_one_thread
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig, require_range
from transformer_core.models import Gpt
from transformer_core.probe import capture
from transformer_core.text import Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Run

SYMBOLS = ascii_letters[: 2 * LONGEST]
STEPS, EVERY = 800, 50
BATCH, WIDTH = 32, 2 * LONGEST
MEASURED = 16  # sequences, at each of the points
CONFIG = ModelConfig(
    vocab_size=len(SYMBOLS),
    d_model=64,
    n_heads=4,
    d_ff=64,
    n_layers=2,
    max_len=WIDTH,
    dropout=0.0,
    pad_id=None,
    positions="rotary",
    tied_output=False,
)
TRAINING = TrainConfig(learning_rate=1e-2, schedule="constant", batch_size=BATCH)


@dataclass(frozen=True, eq=False)
class InductionLearned:
    """What the model did at each of the points of its training.

    Shapes:
        steps: (point,)
        induction, low, high: (point, layer, head), as of Induction; previous: (point, layer, head), the mean weight on
            the token before, on the same sequences
        loss_first, loss_again: (point,), nats a symbol in the first reading of a sequence, and in the second
        before, after: (layer, head, query_pos, key_pos), the weights on one sequence without training, and after it

    Args:
        symbols: of that sequence; period: how many there are until they repeat.
        layer, head: where induction is strongest at the end; its helper: where the look at the token before is.
        appears: the first point's step from which that head's induction stays at INDUCES_FROM or above; -1 for none.
        chance: of induction, of a head that looks at everything alike; guess: nats of a guess among all symbols.
    """

    steps: np.ndarray
    induction: np.ndarray
    low: np.ndarray
    high: np.ndarray
    previous: np.ndarray
    loss_first: np.ndarray
    loss_again: np.ndarray
    before: np.ndarray
    after: np.ndarray
    symbols: tuple[str, ...]
    period: int
    layer: int
    head: int
    helper: tuple[int, int]
    appears: int
    chance: float
    guess: float


def appears_at(steps: np.ndarray, scores: np.ndarray) -> int:
    """Return the first step from which scores stay at INDUCES_FROM or above; -1 where the last one does not.

    Shapes:
        steps, scores: (point,)
    """
    low = np.flatnonzero(scores < INDUCES_FROM)
    first = 0 if not low.size else int(low[-1]) + 1
    return int(steps[first]) if first < len(steps) else -1


def induction_learned(*, seed: int = 0, steps: int = STEPS) -> InductionLearned:
    """Train the model and measure it every EVERY steps.

    Args:
        seed: of the starting weights and of the sequences.
        steps: of training, at most STEPS.

    Raises:
        ValueError: a number is out of its range.
    """
    require_range("steps", steps, 1, STEPS)
    tokenizer = Tokenizer.train("character", [SYMBOLS], vocab_size=200, min_frequency=1, template="none")
    model = Gpt(replace(CONFIG, vocab_size=tokenizer.vocab_size))
    bundle = Bundle("induction", model, tokenizer)
    asked = random_sequences(bundle, MEASURED, 2 * seed + 1)

    def batches(epoch: int) -> Iterator[Tensor]:
        random = np.random.default_rng((seed, epoch))
        first = tokenizer.vocab_size - len(SYMBOLS)
        for _ in range(steps):
            periods = random.integers(SHORTEST_WISHED, LONGEST + 1, BATCH)
            drawn = [np.resize(first + random.permutation(len(SYMBOLS))[:period], WIDTH + 1) for period in periods]
            yield torch.from_numpy(np.stack(drawn))

    with alone_on_one_thread():
        start_alike({"model": model}, seed)
        run = Run(model, _next_symbols, batches, steps_per_epoch=steps, config=replace(TRAINING, seed=seed))
        points, rows = [0], [_measured(bundle, asked, seed)]
        before = _weights(model, asked[0])
        for step in run.steps():
            if step.step % EVERY == 0 or step.step == steps:
                points.append(step.step)
                rows.append(_measured(bundle, asked, seed))
                model.train()
        after = _weights(model.eval(), asked[0])
    scores, low, high, previous, first, again, chance = (np.stack(found) for found in zip(*rows, strict=True))
    layer, head = (int(place) for place in np.unravel_index(int(scores[-1].argmax()), scores[-1].shape))
    helper = tuple(int(place) for place in np.unravel_index(int(previous[-1].argmax()), scores[-1].shape))
    return InductionLearned(
        np.array(points),
        scores,
        low,
        high,
        previous,
        first,
        again,
        before,
        after,
        tokenizer.labels_of(asked[0].ids),
        asked[0].period,
        layer,
        head,
        helper,  # type: ignore[arg-type]
        appears_at(np.array(points), scores[:, layer, head]),
        float(chance[0]),
        float(np.log(len(SYMBOLS))),
    )


def _next_symbols(model: Gpt, rows: Tensor) -> Tensor:
    """Return the cross entropy of each next symbol of rows (batch, pos + 1), in nats."""
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def _weights(model: Gpt, one: Sequence) -> np.ndarray:
    """Return the weights of all heads on one sequence. # (layer, head, query_pos, key_pos)"""
    return capture(model, torch.tensor([one.ids]), sites=(WEIGHTS,))[1].stack(WEIGHTS)[:, 0].numpy()


def _measured(bundle: Bundle, asked: list[Sequence], seed: int) -> tuple[np.ndarray | float, ...]:
    """Return induction with its bounds, the look at the token before, the loss in both readings, and chance."""
    bundle.model.eval()
    found = induction_scores(bundle=bundle, sequences=MEASURED, seed=2 * seed + 1)
    shape = (bundle.config.n_layers, bundle.config.n_heads)
    before, losses, first, again = np.zeros(shape), [], 0.0, 0.0
    queries = sum(len(one.ids) - 1 for one in asked)
    for one in asked:
        ids = torch.tensor([one.ids])
        logits, trace = capture(bundle.model, ids, sites=(WEIGHTS,))
        before += np.diagonal(trace.stack(WEIGHTS)[:, 0].double().numpy(), -1, 2, 3).sum(-1)
        losses = F.cross_entropy(logits[0, :-1].double(), ids[0, 1:], reduction="none").numpy()  # (pos - 1,)
        first += float(losses[: one.period - 1].sum())
        again += float(losses[one.period :].sum())  # its first symbol comes before anything is seen to repeat
    each = sum(one.period - 1 for one in asked)
    parts = (part.reshape(shape) for part in (found.score, *found.bounds))
    return (*parts, before / queries, first / each, again / each, float(found.chance[0]))
