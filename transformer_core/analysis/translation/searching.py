"""Greedy and beam search against exhaustive search: what each finds, of how many targets, and whether it is right.

Search errors and model errors: Stahlberg and Byrne 2019, section 3. Read next: toy.py.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.translation.letters import (
    EXCLUDED,
    LENGTH,
    SYMBOLS,
    Letters,
    letters_of,
    trained_letters,
)
from transformer_core.generation import Hypothesis, beam_search, best_of, exhaustive_search, ranked
from transformer_core.generation.beam import count_hypotheses
from transformer_core.training.corpora.sequences import Rule

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
        rule, epochs, seed: as of trained_letters.
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
    """Search in every way for each held-out source; arguments as of letter_search.

    Raises:
        ValueError: as letter_search.
    """
    letters = trained_letters(rule, epochs=epochs, seed=seed)
    each = [
        letter_search(rule=rule, source=source, epochs=epochs, seed=seed, length_penalty=length_penalty, top=1)
        for source in letters.sources
    ]
    return Survey(
        widths=WIDTHS,
        found=np.mean([one.found for one in each], axis=0),
        right=np.mean([[text == one.answer for text in one.texts] for one in each], axis=0),
        best_right=float(np.mean([one.best_texts[0] == one.answer for one in each])),
        missed=tuple(one.source for one in each if not one.found[0]),
        n_sources=len(each),
    )
