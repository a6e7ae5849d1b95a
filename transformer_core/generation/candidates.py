"""One step of a beam search, for many sentences side by side: weigh what every hypothesis may go on with.

Sutskever et al. 2014, section 3.2; length penalty: Wu et al. 2016, eq. 14. Read next: beam.py.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer_core.generation.drawing import without
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
    """The hypotheses that were weighed, best first.

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
        where a vocabulary is too small for so many, all of it was weighed.

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
        state: the model's, a row a beam.
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
