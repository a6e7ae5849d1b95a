"""What a wider beam finds: the best translation for each width, with its score.

Search errors and wide beams: Stahlberg and Byrne 2019. Read next: searching.py.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.translation.beams import ranking_of, steps_of
from transformer_core.analysis.translation.writing import reader_of
from transformer_core.bundle import Bundle
from transformer_core.generation import best_of


@dataclass(frozen=True, eq=False)
class Widths:
    """The best translation by width, from 1 on.

    Shapes:
        widths, log_probs, lengths, scores: (width,)
    """

    widths: np.ndarray
    texts: tuple[str, ...]
    log_probs: np.ndarray
    lengths: np.ndarray
    scores: np.ndarray

    @property
    def changed(self) -> bool:
        """Whether any width finds another translation than width 1."""
        return len(set(self.texts)) > 1


def best_by_width(
    *, bundle: Bundle, text: str, n_tokens: int, widest: int, length_penalty: float, most: int = 64
) -> Widths:
    """Search with every width from 1 to `widest`; arguments as of beam_tree.

    Raises:
        ValueError: as beam_tree.
    """
    reader = reader_of(bundle, text, n_tokens)
    best = [
        best_of(steps_of(reader, width=width, length_penalty=length_penalty, most=most))
        for width in range(1, widest + 1)
    ]
    found = ranking_of(bundle, best, length_penalty)
    return Widths(np.arange(1, widest + 1), found.texts, found.log_probs, found.lengths, found.scores)
