"""Induction: on random tokens that are repeated, how much a head looks at what followed a token the last time.

Olsson et al. 2022, "In-context Learning and Induction Heads", appendix "Head activation evaluators" (prefix matching).
Departures: tokens are drawn from the whole vocabulary, not without the most and the least frequent; a sequence is read
twice, not four times; and its length differs from one to the next, so that a head that looks back by a fixed distance
gains nothing.
"""

from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.lab.directions import stack_at
from transformer_core.analysis.lab.heads_off import scopes_of
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.probe import capture
from transformer_core.progress import counted
from transformer_core.shares import ratio_bounds

SHORTEST, LONGEST = 4, 24  # tokens until a sequence repeats
SHORTEST_WISHED = 8  # where the model and its vocabulary allow it
INDUCES_FROM = 0.4  # of all attention; our border, from which on a head is called an induction head
MOST_SEQUENCES = 128


@dataclass(frozen=True)
class Sequence:
    """Random tokens, all different, read twice.

    Args:
        ids: with the special tokens around them.
        first: the place of the first random token.
        period: how many there are until they repeat.
    """

    ids: tuple[int, ...]
    first: int
    period: int

    @property
    def queries(self) -> range:
        """The places of the second reading."""
        return range(self.first + self.period, self.first + 2 * self.period)

    @property
    def keys(self) -> range:
        """Of each query, the place of what followed its token in the first reading."""
        return range(self.first + 1, self.first + self.period + 1)

    def chance(self, causal: bool) -> float:
        """What a head gives these places that looks at all places it may see alike, summed over the queries."""
        return sum(1 / (place + 1 if causal else len(self.ids)) for place in self.queries)


@dataclass(frozen=True, eq=False)
class Induction:
    """How much each head looks at what followed the same token.

    Shapes:
        score: (head,), over heads_off.all_heads: the mean weight, in [0, 1]; nan for cross-attention, whose keys are
            another text; bounds: (2, head), of 95 % of resampled sequences
        control, control_bounds: the same where the second half repeats nothing, at the same places
        chance: (head,), of a head that looks at everything it may see alike
        induces: (head,), whether it is called an induction head: the lower bound is at least INDUCES_FROM, and above
            the control's upper bound

    Args:
        sequences: how many were read; queries: how many places the mean is over.
        shortest, longest: tokens until a sequence repeats.
    """

    score: np.ndarray
    bounds: np.ndarray
    control: np.ndarray
    control_bounds: np.ndarray
    chance: np.ndarray
    induces: np.ndarray
    sequences: int
    queries: int
    shortest: int
    longest: int


def random_sequences(
    bundle: Bundle, count: int, seed: int, *, repeats: bool = True, target: bool = False
) -> list[Sequence]:
    """Draw sequences from a model's vocabulary.

    Args:
        count: how many.
        seed: of the draw; the same one gives the same lengths and first halves, whether they repeat or not.
        repeats: the second half is the first one again; else it is drawn anew.
        target: of a translation, what it writes.

    Raises:
        ValueError: the model reads too few tokens, or knows too few.
    """
    tokenizer = bundle.of_target if target else bundle.tokenizer
    blank = tokenizer.encode("a", max_len=bundle.config.max_len)
    before = blank.ids[: blank.own[0]] if blank.own else ()
    after = () if target else blank.ids[blank.own[-1] + 1 :] if blank.own else ()
    size = bundle.config.target_vocab_size if target else bundle.config.vocab_size
    known = min(tokenizer.vocab_size, size or 0)
    words = [id_ for id_ in range(known) if id_ != tokenizer.unk_id and not tokenizer.is_special(id_)]
    room = (bundle.config.max_len - len(before) - len(after)) // 2
    longest = min(LONGEST, room, len(words) // 2)  # the same ones whether the second half repeats or not
    if longest < SHORTEST:
        raise ValueError(
            f"bundle={bundle.name!r} reads {bundle.config.max_len} tokens and knows {len(words)} words; "
            f"to repeat {SHORTEST} different ones it needs {2 * SHORTEST} of each"
        )
    random = Random(seed)
    found = []
    for _ in range(count):
        period = random.randint(min(SHORTEST_WISHED, longest), longest)
        drawn = random.sample(words, 2 * period)
        half, other = drawn[:period], drawn[period:]
        found.append(Sequence((*before, *half, *(half if repeats else other), *after), len(before), period))
    return found


def _weights(bundle: Bundle, scopes: tuple[str, ...], *inputs: Sequence) -> dict[str, Tensor]:
    """Return each scope's weights on one sequence, or on a source and a target. # (head, query_pos, key_pos)"""
    device = bundle.device
    ids = [torch.tensor([one.ids], device=device) for one in inputs]
    _, trace = capture(bundle.model, *ids, sites=tuple(f"{scope}.weights" for scope in scopes))
    return {scope: trace[f"{scope}.weights"][0] for scope in scopes}


def _by_sequence(bundle: Bundle, scopes: tuple[str, ...], drawn: list[tuple[Sequence, ...]]) -> np.ndarray:
    """Return the sum of the weights on what followed, of each sequence. # (sequence, head)"""
    rows = []
    for inputs in counted(drawn):
        found = _weights(bundle, scopes, *inputs)
        sums = []
        for scope, weights in found.items():
            if scope.endswith("cross_attention"):
                sums.append(np.full(len(weights), np.nan))
                continue
            one = inputs[-1] if stack_at(scope) == "decoder" else inputs[0]
            sums.append(weights[:, list(one.queries), list(one.keys)].double().sum(-1).cpu().numpy())
        rows.append(np.concatenate(sums))
    return np.stack(rows)


def induction_scores(*, bundle: Bundle, sequences: int = 32, seed: int = 0) -> Induction:
    """Measure every head on random tokens that repeat, and on as many that do not.

    Args:
        bundle: with heads; of a translation, source and target each repeat tokens of their own.
        sequences: how many are read of each.
        seed: of the draw.

    Raises:
        ValueError: the model has no heads, or as random_sequences; sequences is out of its range.
    """
    require_range("sequences", sequences, 2, MOST_SEQUENCES)
    scopes = scopes_of(bundle)
    if not scopes:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}, which has no heads to measure")
    sides = (False, True) if bundle.kind == "translation" else (False,)
    drawn = [
        list(
            zip(
                *(random_sequences(bundle, sequences, seed, repeats=repeats, target=side) for side in sides),
                strict=True,
            )
        )
        for repeats in (True, False)
    ]
    sums = [_by_sequence(bundle, scopes, ways) for ways in counted(drawn)]
    n_heads = bundle.config.n_heads
    sizes, chances = [], []
    for scope in scopes:
        of_target = stack_at(scope) == "decoder"
        ones = [inputs[-1] if of_target else inputs[0] for inputs in drawn[0]]
        counts = np.array([one.period for one in ones], dtype=float)
        causal = of_target and (bundle.reader.causal or bundle.kind == "translation")
        chance = sum(one.chance(causal) for one in ones) / counts.sum()
        sizes += [counts] * n_heads
        chances += [np.nan if scope.endswith("cross_attention") else chance] * n_heads
    counts = np.stack(sizes, axis=1)  # (sequence, head)
    score, control = (one.sum(0) / counts.sum(0) for one in sums)
    bounds, beside = (ratio_bounds(one, counts) for one in sums)
    with np.errstate(invalid="ignore"):
        induces = (bounds[0] >= INDUCES_FROM) & (bounds[0] > beside[1])
    periods = [inputs[0].period for inputs in drawn[0]]
    total = int(counts[:, 0].sum())
    about = (sequences, total, min(periods), max(periods))
    return Induction(score, bounds, control, beside, np.array(chances), induces, *about)
