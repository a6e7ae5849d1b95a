"""Draws of the next token: one number in [0, 1) a draw, and the softmax that many of them come near to.

Inverse transform sampling: Devroye 1986, section II.2.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.gpt.kept_logits import kept_logits, labels_after
from transformer_core.prompt import Prompt

HOTTEST = 3.0  # temperature
SIMULATED = 1_000


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


def distance(shares: np.ndarray, counts: np.ndarray) -> tuple[float, float, float]:
    """Return how far a histogram of draws is from its distribution, and how far chance puts it.

    The distance is the total variation, half the sum of |share drawn - probability|: between 0 and 1. Chance is
    measured: SIMULATED histograms of as many draws, with a fixed seed.

    Shapes:
        shares, counts: (bar,); the shares sum to 1

    Returns:
        The distance; the mean of the simulated ones; and what 95 % of them do not exceed.

    Raises:
        ValueError: nothing was drawn.
    """
    n = int(counts.sum())
    if not n:
        raise ValueError("counts has no draws; at least 1 is needed")
    simulated = np.random.default_rng(0).multinomial(n, shares, size=SIMULATED) / n  # (histogram, bar)
    chance = np.abs(simulated - shares).sum(1) / 2
    return float(np.abs(counts / n - shares).sum() / 2), float(chance.mean()), float(np.quantile(chance, 0.95))
