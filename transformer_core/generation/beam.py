"""Beam search, step by step for many sentences at once, and exhaustive search for tiny vocabularies.

Sutskever et al. 2014, section 3.2; length penalty: Wu et al. 2016, eq. 14.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer_core.generation.sampling import without
from transformer_core.generation.writer import Writer


def penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha, by which a hypothesis's log-probability is divided (Wu et al. 2016, eq. 14)."""
    return ((5 + length) / 6) ** alpha


def log_probs_of(logits: Tensor, places: Tensor) -> Tensor:
    """Return the log-probability, in nats and at most 0, of some tokens.

    Shapes:
        logits: (..., vocab); places: (..., token); returns: (..., token), float64 on the CPU, where sums of many agree
    """
    best, total = logits.gather(-1, places), logits.logsumexp(-1, keepdim=True)
    return (best.cpu().double() - total.cpu().double()).clamp(max=0.0)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The hypotheses that were scored, best first.

    Shapes:
        token_ids, parents, log_probs: (sentence, candidate): the last word, which beam it goes on from, and the sum
    """

    token_ids: Tensor
    parents: Tensor
    log_probs: Tensor

    def sorted_out(self, width: int, eos_id: int) -> tuple[Tensor, Tensor]:
        """Return which candidates are done, (sentence, candidate), and the places of those that go on.

        Done are those that end and are among the best `width`; the best `width` of those that do not end go on. All
        sentences have as many: a beam has one way to end, so among twice as many candidates as beams enough go on, and
        where a vocabulary is too small for so many, all of it was scored.

        Shapes:
            returns: boolean (sentence, candidate), and (sentence, beam)
        """
        ends = self.token_ids == eos_id
        beams = min(width, int((~ends).sum(1).min()))
        on = ends.to(torch.int8).argsort(dim=1, stable=True)[:, :beams]
        return ends & (torch.arange(ends.shape[1]) < width), on


@dataclass(frozen=True, eq=False)
class Beams:
    """Hypotheses that are alive.

    Shapes:
        token_ids: (sentence, beam, pos), on the CPU, the beginning token first; log_probs: (sentence, beam)

    Args:
        state: the model's, a row per beam.
    """

    token_ids: Tensor
    log_probs: Tensor
    state: Any

    @classmethod
    def begin(cls, model: Writer, source_ids: Tensor, bos_id: int) -> "Beams":
        """Read sources (sentence, source_pos): one empty hypothesis each."""
        count = source_ids.shape[0]
        start = torch.full((count, 1, 1), bos_id)
        return cls(start, torch.zeros(count, 1, dtype=torch.float64), model.start(source_ids))

    def weigh(self, model: Writer, device: torch.device, width: int, exclude: tuple[int, ...]) -> "Weighed":
        """Let the model read each hypothesis's last word; return the 2 * width best to go on with."""
        sentences, beams = self.log_probs.shape
        logits, state = model.advance(self.token_ids[:, :, -1].reshape(-1, 1).to(device), self.state)  # (row, vocab)
        logits = without(logits.float(), exclude)
        each = min(2 * width, logits.shape[-1] - len(set(exclude)))
        places = logits.topk(each).indices  # (row, each)
        summed = (self.log_probs.reshape(-1, 1) + log_probs_of(logits, places)).view(sentences, beams * each)
        log_probs, best = summed.topk(min(2 * width, beams * each))  # (sentence, candidate)
        token_ids = places.cpu().view(sentences, beams * each).gather(1, best)
        return Weighed(Candidates(token_ids, best // each, log_probs), self, state)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Candidates, what they go on from, and the model's state after that."""

    candidates: Candidates
    beams: Beams
    state: Any

    def follow(self, model: Writer, device: torch.device, sentences: Tensor, on: Tensor) -> Beams:
        """Return the beams of the candidates at places `on` (sentence, beam), of these sentences alone."""
        on = on[sentences]
        parents = self.candidates.parents[sentences].gather(1, on)  # (sentence, beam)
        token_ids = self.candidates.token_ids[sentences].gather(1, on)
        log_probs = self.candidates.log_probs[sentences].gather(1, on)
        history = self.beams.token_ids[sentences[:, None], parents]  # (sentence, beam, pos)
        rows = sentences[:, None] * self.beams.log_probs.shape[1] + parents
        state = model.reorder(self.state, rows.flatten().to(device))
        return Beams(torch.cat((history, token_ids[..., None]), 2), log_probs, state)


@dataclass(frozen=True)
class Hypothesis:
    """A translation, or the beginning of one.

    Args:
        token_ids: its words; without the token that targets begin with, with the end token where it ends.
        log_prob: of all its words, in nats, at most 0.
        score: log_prob / ((5 + length) / 6)^length_penalty, by which hypotheses of unlike length are compared.
        finished: it ends with the end token.
        parent: which of the hypotheses that the step before kept it goes on from; None in the first step.
        alive: this step keeps it.
    """

    token_ids: tuple[int, ...]
    log_prob: float
    score: float
    finished: bool
    parent: int | None
    alive: bool


@dataclass(frozen=True)
class BeamStep:
    """One step of a beam search; every tuple is best first.

    Args:
        kept: hypotheses that the next step goes on from; in the last step none, or those that `most` cut off.
        considered: the 2 * width best of all one-word continuations, kept, finished and dropped ones.
        finished: those that have ended so far, of which there can be more than width.
    """

    kept: tuple[Hypothesis, ...]
    considered: tuple[Hypothesis, ...]
    finished: tuple[Hypothesis, ...]


def check_search(width: int, length_penalty: float) -> None:
    """Raise ValueError unless width is at least 1 and length_penalty at least 0."""
    if width < 1:
        raise ValueError(f"width={width} must be at least 1")
    if not 0 <= length_penalty < float("inf"):
        raise ValueError(f"length_penalty={length_penalty} must be at least 0 and finite")


def beam_search(
    model: Writer,
    source_ids: Tensor,
    *,
    width: int,
    bos_id: int,
    eos_id: int,
    most: int,
    length_penalty: float = 0.6,
    exclude: tuple[int, ...] = (),
) -> Iterator[BeamStep]:
    """Write the target with the best few hypotheses at a time.

    A hypothesis ends where the end token makes it one of the best `width` candidates of its step. The search ends with
    the step in which the `width`-th hypothesis ends, or after `most` steps. With width 1 it is greedy decoding.

    Shapes:
        source_ids: (1, source_pos)

    Args:
        width: hypotheses that go on side by side.
        bos_id, eos_id: what targets begin and end with.
        most: tokens at most; model.config.max_len bounds it too.
        length_penalty: alpha; 0 compares sums of log-probabilities, which favours short hypotheses.
        exclude: tokens that are never written; none by default.

    Raises:
        ValueError: width is less than 1, or length_penalty less than 0.
    """
    check_search(width, length_penalty)
    device, finished = source_ids.device, ()
    with torch.inference_mode():
        beams = Beams.begin(model, source_ids, bos_id)
    for length in range(1, min(most, model.config.max_len - 1) + 1):
        with torch.inference_mode():
            weighed = beams.weigh(model, device, width, exclude)
            done, on = weighed.candidates.sorted_out(width, eos_id)
            last = len(finished) + int(done.sum()) >= width
            alive = set() if last else set(on[0].tolist())
            considered = _considered(weighed, alive, eos_id, penalty(length, length_penalty))
            beams = weighed.follow(model, device, torch.tensor([0]), on)
        new = tuple(hypothesis for hypothesis, ends in zip(considered, done[0].tolist(), strict=True) if ends)
        finished = tuple(sorted(finished + new, key=lambda hypothesis: -hypothesis.score))
        kept = tuple(hypothesis for hypothesis in considered if hypothesis.alive)
        yield BeamStep(kept, considered, finished)
        if not kept:
            return


def _considered(weighed: Weighed, alive: set[int], eos_id: int, divisor: float) -> tuple[Hypothesis, ...]:
    candidates, before = weighed.candidates, weighed.beams.token_ids[0, :, 1:].tolist()
    rows = zip(
        candidates.token_ids[0].tolist(), candidates.parents[0].tolist(), candidates.log_probs[0].tolist(), strict=True
    )
    return tuple(
        Hypothesis(
            (*before[parent], token_id),
            log_prob,
            log_prob / divisor,
            finished=token_id == eos_id,
            parent=parent if before[parent] else None,
            alive=place in alive,
        )
        for place, (token_id, parent, log_prob) in enumerate(rows)
    )


def ranked(step: BeamStep) -> tuple[Hypothesis, ...]:
    """Return all that have ended or are kept at a step, best score first."""
    return tuple(sorted((*step.finished, *step.kept), key=lambda hypothesis: -hypothesis.score))


def best_of(steps: Iterable[BeamStep]) -> Hypothesis:
    """Return the hypothesis with the best score of all that have ended or are kept at the last of these steps.

    Raises:
        ValueError: there are no steps.
    """
    last = None
    for last in steps:  # noqa: B007
        pass
    if last is None:
        raise ValueError("steps must hold at least one step of a beam search")
    return ranked(last)[0]


MOST_HYPOTHESES = 50_000


def count_hypotheses(n_words: int, most: int) -> int:
    """Return how many targets there are: those of 0 to most - 1 words that end, and those of `most` words cut off.

    Args:
        n_words: words that can be written, the end token not counted.
    """
    return sum(n_words**length for length in range(most + 1))


def exhaustive_search(
    model: Writer,
    source_ids: Tensor,
    *,
    bos_id: int,
    eos_id: int,
    most: int,
    length_penalty: float = 0.6,
    exclude: tuple[int, ...] = (),
) -> Iterator[BeamStep]:
    """Score every target of at most `most` tokens; `best_of` gives the best, which no beam search can beat.

    Each step keeps all hypotheses of its length that do not end. Arguments as in beam_search.

    Raises:
        ValueError: there are more than 50,000 hypotheses, or as beam_search.
    """
    config = model.config
    n_words = getattr(config, "target_vocab_size", config.vocab_size) - len({*exclude, eos_id})
    most = min(most, config.max_len - 1)
    count = count_hypotheses(n_words, most)
    if count > MOST_HYPOTHESES:
        raise ValueError(
            f"most={most} tokens of {n_words} words make {count:,} hypotheses; at most {MOST_HYPOTHESES:,} are "
            "searched: lower most, or exclude words"
        )
    return beam_search(
        model,
        source_ids,
        width=count + 1,  # one more than can end, so that the search never stops early
        bos_id=bos_id,
        eos_id=eos_id,
        most=most,
        length_penalty=length_penalty,
        exclude=exclude,
    )
