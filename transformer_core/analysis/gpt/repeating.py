"""Repeating: whether the likeliest token, taken again and again, leads in a circle.

Holtzman et al. 2020, section 1. Read next: caching.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_core.analysis.gpt.continuing import WrittenOn, written_on
from transformer_core.bundle import Bundle

ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Circle:
    """A greedy continuation and the circle that it ends in.

    Args:
        written: the continuation.
        period: how many tokens the circle has; 0 where the text does not end in one.
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


def greedy_circle(*, bundle: Bundle, text: str, n_tokens: int, steps: int) -> Circle:
    """Write on greedily and look for a circle at the end.

    Args:
        bundle: a GPT.
        n_tokens: at most so many tokens of the text are read.
        steps: tokens to write.

    Raises:
        ValueError: as written_on.
    """
    greedily = {"how": "greedy", "temperature": 1.0, "top_k": None, "top_p": None, "seed": 0, "choices": ()}
    written = written_on(bundle=bundle, text=text, n_tokens=n_tokens, steps=steps, **greedily)
    period, since = period_of([step.token_id for step in written.steps])
    again = tuple(step.label for step in written.steps[since : since + period]) if period else ()
    return Circle(written, period, since, again)
