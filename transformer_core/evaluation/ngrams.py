"""How well counts of n-grams foresee the next token: what a language model has to beat.

Interpolated Kneser-Ney smoothing (Kneser and Ney 1995; Chen and Goodman 1999, section 4.1).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

Gram = tuple[int, ...]
BEFORE = -1  # stands for what comes before a row


class KneserNey:
    """Probabilities of the next token from counts of n-grams.

    p(w | c) = max(n(c w) - D, 0) / n(c) + D N(c) / n(c) p(w | c without its first token), where N(c) is how many
    different tokens follow c; below the highest order, n(c w) is how many different tokens stand before c w; below
    order 1 all entries of the vocabulary have the same probability.

    Args:
        rows: sequences of token ids to count.
        order: 2 for a bigram model, 3 for a trigram model.
        vocab_size: entries of the vocabulary.

    Raises:
        ValueError: the order is below 1, or there is nothing to count.
    """

    def __init__(self, rows: Iterable[Sequence[int]], *, order: int, vocab_size: int) -> None:
        if order < 1:
            raise ValueError(f"order={order} must be at least 1")
        self.order, self.vocab_size = order, vocab_size
        counts = Counter(gram for row in rows for gram in _grams(row, order))
        if not counts:
            raise ValueError("rows hold no token to count")
        self._levels = []
        for _ in range(order):
            self._levels.append(_Level(counts))
            counts = Counter(gram[1:] for gram in counts)

    def probability(self, word: int, context: Gram) -> float:
        """Return the probability of a token after a context of order - 1 tokens."""
        left, share = 0.0, 1.0
        for level in self._levels:
            own, rest = level.look_up(word, context)
            left += share * own
            share *= rest
            context = context[1:]
        return left + share / self.vocab_size

    def nats(self, rows: Iterable[Sequence[int]], *, given: int = 1) -> float:
        """Return the mean surprise, in nats a token, of all tokens of rows but the first `given` of each."""
        surprises = [
            -math.log(self.probability(gram[-1], gram[:-1]))
            for row in rows
            for place, gram in enumerate(_grams(row, self.order))
            if place >= given
        ]
        if not surprises:
            raise ValueError("rows hold no token to foresee")
        return sum(surprises) / len(surprises)


class _Level:
    """The counts of one order: of each n-gram, of its context, and of how many tokens follow the context."""

    def __init__(self, counts: Counter[Gram]) -> None:
        self._counts, self._totals, self._kinds = counts, defaultdict[Gram, int](int), defaultdict[Gram, int](int)
        for gram, count in counts.items():
            self._totals[gram[:-1]] += count
            self._kinds[gram[:-1]] += 1
        once, twice = (sum(count == times for count in counts.values()) for times in (1, 2))
        self._discount = once / (once + 2 * twice) if once else 0.0

    def look_up(self, word: int, context: Gram) -> tuple[float, float]:
        """Return what this order says of a token, and the share that is left to the order below."""
        total = self._totals.get(context, 0)
        if not total:
            return 0.0, 1.0
        own = max(self._counts.get((*context, word), 0) - self._discount, 0.0) / total
        return own, self._discount * self._kinds[context] / total


def _grams(row: Sequence[int], order: int) -> Iterable[Gram]:
    padded = (*[BEFORE] * (order - 1), *row)
    return (padded[place : place + order] for place in range(len(row)))
