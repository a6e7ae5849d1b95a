"""Continuation: a GPT writes one token per step; a user may replace any of them, and greedy decoding may repeat itself.

Every stretch of writing, from the prompt or from a user's token on, draws with a generator of its own, seeded by
the seed and the step at which it begins: a step's token depends on the seed and on the tokens before it alone. Greedy
loops: Holtzman et al. 2020, section 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Literal, get_args

import numpy as np
import torch

from transformer_core.analysis.gpt.kept_logits import entropy_bits, gpt_of, ids_on_device, labels_after
from transformer_core.analysis.words.chat import ends_of
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.generation.sampling import Written, greedy_words, probabilities, sample
from transformer_core.prompt import Prompt

How = Literal["greedy", "sample"]
MOST_STEPS = 128
TOP = 10
TINY = 1e-45


@dataclass(frozen=True)
class Rules:
    """How the next token is chosen.

    Args:
        how: the likeliest, or drawn.
        temperature, top_k, top_p: of drawing; they change nothing for the likeliest.
        seed: of the draws.
        choices: (step, id) pairs: tokens that a person puts in the model's place.
    """

    how: How
    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int
    choices: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ContinuationStep:
    """One token that was written.

    Args:
        token_id: the token; label: what it is called where it stands.
        by_person: whether a person chose it.
        probability, rank: how the model expected it, before any rule.
        chance: with which it could be drawn; 1 or 0 where the likeliest is taken.
        entropy: of the model's distribution, in bits.
        top_ids, top_labels, top_probabilities, top_chances: the likeliest tokens, before and under the rules.
        rest, rest_chance: of all others, before and under the rules; exactly 0 where all of them are cut.
    """

    token_id: int
    label: str
    by_person: bool
    probability: float
    rank: int
    chance: float
    entropy: float
    top_ids: tuple[int, ...]
    top_labels: tuple[str, ...]
    top_probabilities: tuple[float, ...]
    top_chances: tuple[float, ...]
    rest: float
    rest_chance: float


class Continuation:
    """A model's continuation of a text, computed only as far as it was asked for; threads may share it."""

    def __init__(self, bundle: Bundle, ids: tuple[int, ...], rules: Rules) -> None:
        self._bundle, self._ids, self._rules = bundle, list(ids), rules
        self._steps: list[ContinuationStep] = []
        self.ends = ends_of(bundle)
        self._more = self._write()
        self._lock = Lock()

    def upto(self, steps: int) -> tuple[ContinuationStep, ...]:
        """Return the first steps; fewer where the model has ended its text."""
        with self._lock:
            while len(self._steps) < steps:
                step = next(self._more, None)
                if step is None:
                    break
                self._steps.append(step)
            return tuple(self._steps[:steps])

    def _write(self) -> Iterator[ContinuationStep]:
        choices, done = dict(self._rules.choices), 0
        while done < MOST_STEPS:
            for written in self._stretch(done):
                chosen = choices.get(done)
                step = self._step(written, chosen)
                self._ids.append(step.token_id)
                done += 1
                yield step
                if step.token_id in self.ends:
                    return
                if chosen is not None:
                    break

    def _stretch(self, done: int) -> Iterator[Written]:
        model, rules, most = gpt_of(self._bundle), self._rules, MOST_STEPS - done
        ids = ids_on_device(model, self._ids)
        if rules.how == "greedy":
            return greedy_words(model, ids, most=most)
        generator = torch.Generator(device=ids.device).manual_seed(rules.seed * (MOST_STEPS + 1) + done)
        options = {"temperature": rules.temperature, "top_k": rules.top_k, "top_p": rules.top_p}
        return sample(model, ids, most=most, generator=generator, **options)

    def _step(self, written: Written, chosen: int | None) -> ContinuationStep:
        logits, rules = written.logits.float().cpu(), self._rules
        before = logits.softmax(-1)  # (vocab,)
        if rules.how == "greedy":
            after = torch.zeros_like(before)
            after[written.token_id] = 1.0
        else:
            after = probabilities(logits, temperature=rules.temperature, top_k=rules.top_k, top_p=rules.top_p)
        token_id = written.token_id if chosen is None else chosen
        best = before.topk(min(TOP, len(before)))
        named = labels_after(self._bundle.tokenizer, self._ids, [token_id, *best.indices.tolist()])
        return ContinuationStep(
            token_id=token_id,
            label=named[0],
            by_person=chosen is not None,
            probability=float(before[token_id]),
            rank=int((logits > logits[token_id]).sum()) + 1,
            chance=float(after[token_id]),
            entropy=float(entropy_bits(before)),
            top_ids=tuple(best.indices.tolist()),
            top_labels=named[1:],
            top_probabilities=tuple(best.values.tolist()),
            top_chances=tuple(after[best.indices].tolist()),
            rest=max(0.0, 1.0 - float(best.values.sum())),
            rest_chance=float(after.index_fill(0, best.indices, 0.0).sum()),
        )


@lru_cache(maxsize=16)
def continuation(prompt: Prompt, rules: Rules) -> Continuation:
    """Return a model's continuation of a text; the last few are kept, so that more steps cost only these.

    Raises:
        ValueError: the bundle is not a GPT, or the rules are out of range.
    """
    vocab = gpt_of(prompt.bundle).config.vocab_size
    if rules.how not in get_args(How):
        raise ValueError(f"how={rules.how!r} must be one of {', '.join(get_args(How))}")
    for step, id_ in rules.choices:
        if not (0 <= step < MOST_STEPS and 0 <= id_ < vocab):
            raise ValueError(f"choices={(step, id_)} must be a step below {MOST_STEPS} and an id below {vocab}")
    return Continuation(prompt.bundle, prompt.encoding.ids, rules)


@dataclass(frozen=True, eq=False)
class WrittenOn:
    """A text and a model's continuation of it.

    Shapes:
        bits: (step,), how surprising each token is to the model itself, before any rule

    Args:
        steps: one per token.
        written: their text.
        ended: whether the model's end token, or the end of a chat model's answer, came.
    """

    steps: tuple[ContinuationStep, ...]
    written: str
    bits: np.ndarray
    ended: bool


def written_on(
    *,
    prompt: Prompt,
    how: How,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    seed: int,
    choices: tuple[tuple[int, int], ...],
    steps: int,
) -> WrittenOn:
    """Let a model continue a text.

    Args:
        prompt: to a GPT.
        how, temperature, top_k, top_p, seed, choices: see Rules.
        steps: tokens to write.

    Raises:
        ValueError: steps is out of range, or as continuation.
    """
    require_range("steps", steps, 0, MOST_STEPS)
    rules = Rules(how, temperature, top_k, top_p, seed, choices)
    writing = continuation(prompt, rules)
    done = writing.upto(steps)
    known = [step.token_id for step in done if step.token_id < prompt.bundle.tokenizer.vocab_size]
    return WrittenOn(
        steps=done,
        written=prompt.bundle.tokenizer.decode(known),
        bits=np.array([-math.log2(max(step.probability, TINY)) for step in done]),
        ended=bool(done) and done[-1].token_id in writing.ends,
    )


ROUNDS = 3


@dataclass(frozen=True, eq=False)
class GreedyLoop:
    """A greedy continuation and the loop that it ends in.

    Args:
        written: the continuation.
        period: how many tokens the loop has; 0 where the text does not end in one.
        since: the step from which on it only repeats; -1 where it does not.
        again: the labels of one round.
    """

    written: WrittenOn
    period: int
    since: int
    again: tuple[str, ...]


def period_of(ids: Sequence[int], *, rounds: int = ROUNDS) -> tuple[int, int]:
    """Return the shortest period that a sequence ends in, for so many rounds at least, and where that begins.

    Returns:
        (0, -1) where there is none.
    """
    for period in range(1, len(ids) // rounds + 1):
        start = len(ids) - period
        while start > 0 and ids[start - 1] == ids[start - 1 + period]:
            start -= 1
        if len(ids) - start >= rounds * period:
            return period, start
    return 0, -1


def greedy_loop(*, prompt: Prompt, steps: int) -> GreedyLoop:
    """Continue greedily and look for a loop at the end.

    Args:
        prompt: to a GPT.
        steps: tokens to write.

    Raises:
        ValueError: as written_on.
    """
    greedily = {"how": "greedy", "temperature": 1.0, "top_k": None, "top_p": None, "seed": 0, "choices": ()}
    written = written_on(prompt=prompt, steps=steps, **greedily)
    period, since = period_of([step.token_id for step in written.steps])
    again = tuple(step.label for step in written.steps[since : since + period]) if period else ()
    return GreedyLoop(written, period, since, again)
