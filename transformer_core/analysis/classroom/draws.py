"""Draws of the next token: one number in [0, 1) a draw, and the softmax that many of them come near to.

Inverse transform sampling: Devroye 1986, section II.2. The expected distance of a histogram: Berend and Kontorovich 2013.
"""

import math
from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.gpt.kept_logits import kept_logits, labels_after
from transformer_core.prompt import Prompt

HOTTEST = 3.0  # temperature


@dataclass(frozen=True, eq=False)
class Forecast:
    """The distribution of the token after a text, the likeliest first.

    Shapes:
        ids, logits: (vocab,)

    Args:
        prompt: the model and the text.
        before: ids of the text.
    """

    prompt: Prompt
    before: tuple[int, ...]
    ids: np.ndarray
    logits: np.ndarray

    def shares(self, temperature: float) -> np.ndarray:
        """Return softmax(logits / temperature), the likeliest first. # (vocab,)

        Raises:
            ValueError: temperature is not more than 0 and at most HOTTEST.
        """
        if not 0 < temperature <= HOTTEST:
            raise ValueError(f"temperature={temperature} must be more than 0 and at most {HOTTEST:g}")
        powers = np.exp((self.logits - self.logits[0]) / temperature)
        return powers / powers.sum()

    def drawn(self, numbers: np.ndarray, temperature: float) -> np.ndarray:
        """Return which token each number falls on, where the likeliest token has the first piece of [0, 1).

        Shapes:
            numbers: (draw,), in [0, 1); returns: (draw,), places in `ids`
        """
        ends = np.cumsum(self.shares(temperature))
        return np.minimum(np.searchsorted(ends, numbers, side="right"), len(ends) - 1)

    def labels(self, places: np.ndarray) -> tuple[str, ...]:
        """Return the labels of tokens by their places in `ids`."""
        return labels_after(self.prompt.bundle.tokenizer, self.before, self.ids[places])


def forecast(*, prompt: Prompt) -> Forecast:
    """Return what a language model expects after a text.

    Raises:
        ValueError: the model is no language model, or the text has no token.
    """
    kept = kept_logits(prompt)
    logits = kept.logits[-1].double().numpy()  # (vocab,)
    order = np.argsort(-logits, kind="stable")
    return Forecast(prompt, kept.ids, order, logits[order])


def distance(shares: np.ndarray, drawn: np.ndarray) -> tuple[float, float]:
    """Return how far a histogram of draws is from the distribution, and how far chance puts it on average.

    The distance is the total variation, half the sum of |share drawn - probability|: between 0 and 1. Of n draws its
    expectation is about half the sum of min(sqrt(2 p (1 - p) / (pi n)), 2 p (1 - p)): that of a normal number, or,
    where a token is expected less than once, of one that hardly comes.

    Shapes:
        shares: (token,); drawn: (draw,), places of tokens

    Raises:
        ValueError: nothing was drawn.
    """
    if not len(drawn):
        raise ValueError("drawn has no draws; at least 1 is needed")
    found = np.bincount(drawn, minlength=len(shares)) / len(drawn)
    spread = shares * (1 - shares)
    chance = np.minimum(np.sqrt(2 * spread / (math.pi * len(drawn))), 2 * spread)
    return float(np.abs(found - shares).sum() / 2), float(chance.sum() / 2)
