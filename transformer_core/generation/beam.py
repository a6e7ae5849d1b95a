"""Beam search: the best few hypotheses go on side by side, and each step can be drawn as a level of a tree.

Sutskever et al. 2014, section 3.2; length penalty: Wu et al. 2016, eq. 14. Read next: translating.py.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.generation.candidates import Beams, Weighed, penalty
from transformer_core.generation.writer import Writer


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
        exclude: tokens that shall never be written; none is left out unasked.

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
