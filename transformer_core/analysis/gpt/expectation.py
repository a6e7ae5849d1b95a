"""Expectation: what a GPT holds likely at each place of a text, and how much the token that came surprised it.

Surprisal: Shannon 1948; of words in context: Hale 2001. Read next: redrawing.py.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.gpt.kept import entropy_bits, kept_logits, labels_after, logits_at
from transformer_core.bundle import Bundle

MOST_SHOWN = 50


@dataclass(frozen=True, eq=False)
class Surprisals:
    """How well each token of a text was foreseen from those before it.

    Shapes:
        bits, probability: (pos,), not a number for the first token, which nothing stands before
        rank: (pos,), 1 where it was the likeliest; 0 for the first
        entropy: (pos + 1,), of the expectation before each token and, last, of that after the text; in bits

    Args:
        labels: one a token.
        likeliest: the token most expected at each place and after the text; empty for the first.
        mean_bits: over the tokens that could be foreseen; 0 where there is none.
        foreseen: how many of these were the likeliest.
    """

    labels: tuple[str, ...]
    bits: np.ndarray
    probability: np.ndarray
    rank: np.ndarray
    entropy: np.ndarray
    likeliest: tuple[str, ...]
    mean_bits: float
    foreseen: int


@dataclass(frozen=True, eq=False)
class Expected:
    """The distribution of the token at one place.

    Shapes:
        ids, probabilities: (top,), the likeliest first

    Args:
        labels: of these.
        rest, n_rest: the probability of all other tokens together, and how many they are.
        entropy, greatest: in bits: of the distribution, and of one that holds all tokens alike.
        came: the label of the token that the text has there; empty after its end.
        came_id: its id, or -1.
        came_probability, came_bits, came_rank: how it was expected; 0 where there is none.
    """

    ids: np.ndarray
    labels: tuple[str, ...]
    probabilities: np.ndarray
    rest: float
    n_rest: int
    entropy: float
    greatest: float
    came: str
    came_id: int
    came_probability: float
    came_bits: float
    came_rank: int


def surprisals(*, bundle: Bundle, text: str, n_tokens: int) -> Surprisals:
    """Measure every token of a text: -log2 of the probability that it was given beforehand.

    Args:
        bundle: a GPT.
        n_tokens: at most so many tokens of the text are read.

    Raises:
        ValueError: as kept_logits.
    """
    kept = kept_logits(bundle, text, n_tokens)
    log_chances = kept.logits.log_softmax(-1)  # (pos, vocab)
    came = torch.tensor(kept.ids[1:], dtype=torch.long)[:, None]  # (pos - 1, 1)
    own = log_chances[:-1].gather(1, came)  # (pos - 1, 1)
    rank = (log_chances[:-1] > own).sum(-1) + 1
    bits = (-own[:, 0] / math.log(2)).double().numpy()
    likeliest = kept.logits.argmax(-1).tolist()
    named = (labels_after(bundle.tokenizer, kept.ids[:place], [id_])[0] for place, id_ in enumerate(likeliest, 1))
    return Surprisals(
        labels=kept.labels,
        bits=np.concatenate([[np.nan], bits]),
        probability=np.concatenate([[np.nan], own[:, 0].exp().double().numpy()]),
        rank=np.concatenate([[0], rank.numpy()]),
        entropy=np.concatenate([[np.nan], entropy_bits(log_chances.exp()).double().numpy()]),
        likeliest=("", *named),
        mean_bits=float(bits.mean()) if len(bits) else 0.0,
        foreseen=int((rank == 1).sum()),
    )


def expected(*, bundle: Bundle, text: str, n_tokens: int, place: int, top: int) -> Expected:
    """Return what was held likely at one place of a text.

    Args:
        bundle: a GPT.
        n_tokens: at most so many tokens of the text are read.
        place: how many tokens have been read; their number asks what comes after the text.
        top: how many of the likeliest tokens to name.

    Raises:
        ValueError: place or top is out of range, or as kept_logits.
    """
    kept, logits = logits_at(bundle, text, n_tokens, place)
    chances = logits.softmax(-1)  # (vocab,)
    if not 1 <= top <= MOST_SHOWN:
        raise ValueError(f"top={top} must be from 1 to {MOST_SHOWN}")
    best = chances.topk(min(top, len(chances)))
    came_id = kept.ids[place] if place < len(kept.ids) else -1
    came = float(chances[came_id]) if came_id >= 0 else 0.0
    return Expected(
        ids=best.indices.numpy(),
        labels=labels_after(bundle.tokenizer, kept.ids[:place], best.indices.tolist()),
        probabilities=best.values.numpy(),
        rest=max(0.0, 1.0 - float(best.values.sum())),
        n_rest=len(chances) - len(best.values),
        entropy=float(entropy_bits(chances)),
        greatest=math.log2(len(chances)),
        came=kept.labels[place] if came_id >= 0 else "",
        came_id=came_id,
        came_probability=came,
        came_bits=-float(logits.log_softmax(-1)[came_id]) / math.log(2) if came_id >= 0 else 0.0,
        came_rank=int((logits > logits[came_id]).sum()) + 1 if came_id >= 0 else 0,
    )
