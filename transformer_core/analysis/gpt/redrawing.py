"""Redrawing: temperature, top-k and top-p laid over kept logits, and what is drawn under them.

Temperature: Ackley et al. 1985; top-k: Fan et al. 2018; top-p: Holtzman et al. 2020. Read next: continuing.py.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.gpt.expectation import MOST_SHOWN
from transformer_core.analysis.gpt.kept import entropy_bits, labels_after, logits_at
from transformer_core.bundle import Bundle
from transformer_core.generation.sampling import chances

MOST_DRAWS = 100_000


@dataclass(frozen=True, eq=False)
class Redrawn:
    """One place's distribution as the model has it, and under the rules of drawing.

    Shapes:
        ids, before, after, kept: (top,), the likeliest before first; kept is False where a token was cut

    Args:
        labels: of these tokens.
        rest_before, rest_after: of all other tokens together; after is exactly 0 where all of them are cut.
        n_kept, n_tokens: how many of all tokens can still be drawn, and how many there are.
        cut: the probability that was cut away after the temperature, shared out among those that are kept.
        entropy_before, entropy_after: in bits.
    """

    ids: np.ndarray
    labels: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray
    kept: np.ndarray
    rest_before: float
    rest_after: float
    n_kept: int
    n_tokens: int
    cut: float
    entropy_before: float
    entropy_after: float


@dataclass(frozen=True, eq=False)
class Draws:
    """Many draws from one distribution, beside the chances.

    Shapes:
        chances, counts, spread: (top + 1,), the likeliest first; the last is all other tokens together

    Args:
        labels: of the tokens, without the last.
        spread: the standard deviation that a count of so many draws has.
        first: the label of what the first draw gave.
        possible, within: how many of these counts can be above 0, and how many of them lie within two deviations.
        distance: half the sum of |share - chance| over all tokens.
        draws: how many.
    """

    labels: tuple[str, ...]
    chances: np.ndarray
    counts: np.ndarray
    spread: np.ndarray
    first: str
    possible: int
    within: int
    distance: float
    draws: int


def redrawn(
    *,
    bundle: Bundle,
    text: str,
    n_tokens: int,
    place: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    top: int,
) -> Redrawn:
    """Lay the rules over the logits of one place; nothing is computed anew by the model where it has read the text.

    Args:
        bundle: a GPT.
        n_tokens: at most so many tokens of the text are read.
        place: how many tokens have been read.
        temperature, top_k, top_p: as of generation.drawing.chances.
        top: how many tokens to name.

    Raises:
        ValueError: as logits_at and chances.
    """
    kept, logits = logits_at(bundle, text, n_tokens, place)
    before, heated = logits.softmax(-1), chances(logits, temperature=temperature)
    after = chances(logits, temperature=temperature, top_k=top_k, top_p=top_p)  # (vocab,)
    best = before.topk(min(top, MOST_SHOWN, len(before)))
    shown, survives = after[best.indices], after > 0
    return Redrawn(
        ids=best.indices.numpy(),
        labels=labels_after(bundle.tokenizer, kept.ids[:place], best.indices.tolist()),
        before=best.values.numpy(),
        after=shown.numpy(),
        kept=survives[best.indices].numpy(),
        rest_before=max(0.0, 1.0 - float(best.values.sum())),
        rest_after=float(after.index_fill(0, best.indices, 0.0).sum()),
        n_kept=int(survives.sum()),
        n_tokens=len(before),
        cut=max(0.0, 1.0 - float(heated[survives].sum())),
        entropy_before=float(entropy_bits(before)),
        entropy_after=float(entropy_bits(after)),
    )


def drawn(
    *,
    bundle: Bundle,
    text: str,
    n_tokens: int,
    place: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    top: int,
    seed: int,
    draws: int,
) -> Draws:
    """Draw many tokens for one place and count them.

    Args:
        seed: of the draws; all else as of redrawn.
        draws: how many.

    Raises:
        ValueError: as redrawn, or draws is out of range.
    """
    if not 1 <= draws <= MOST_DRAWS:
        raise ValueError(f"draws={draws} must be from 1 to {MOST_DRAWS:,}")
    kept, logits = logits_at(bundle, text, n_tokens, place)
    odds = chances(logits, temperature=temperature, top_k=top_k, top_p=top_p)  # (vocab,)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.multinomial(odds, draws, replacement=True, generator=generator)  # (draw,)
    counts = torch.bincount(tokens, minlength=len(odds)).double()  # (vocab,)
    best = logits.topk(min(top, MOST_SHOWN, len(odds))).indices

    def with_rest(values: torch.Tensor) -> np.ndarray:
        others = values.double().index_fill(0, best, 0.0).sum()
        return torch.cat((values[best].double(), others[None])).numpy()

    share, count = with_rest(odds), with_rest(counts)
    spread = np.sqrt(draws * share * (1 - share).clip(0.0))
    name = labels_after(bundle.tokenizer, kept.ids[:place], [*best.tolist(), int(tokens[0])])
    return Draws(
        labels=name[:-1],
        chances=share,
        counts=count,
        spread=spread,
        first=name[-1],
        possible=int((share > 0).sum()),
        within=int((np.abs(count - draws * share) <= 2 * spread)[share > 0].sum()),
        distance=float((counts / draws - odds.double()).abs().sum() / 2),
        draws=draws,
    )
