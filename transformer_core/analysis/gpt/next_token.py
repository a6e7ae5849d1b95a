"""The next token at each place of a text: its probability, the surprisal of what came, and sampling under new rules.

Surprisal: Shannon 1948; of words in context: Hale 2001; temperature: Ackley et al. 1985; top-k: Fan et al. 2018; top-p:
Holtzman et al. 2020.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.gpt.kept_logits import entropy_bits, kept_logits, labels_after, labels_at, logits_at
from transformer_core.config import require_range
from transformer_core.generation.sampling import probabilities
from transformer_core.prompt import Prompt

MOST_SHOWN = 50


@dataclass(frozen=True, eq=False)
class Surprisals:
    """How well each token of a text was predicted from those before it.

    Shapes:
        bits, probability: (pos,), not a number for the first token, which has nothing before it
        rank: (pos,), 1 where it was the likeliest; 0 for the first
        entropy: (pos + 1,), of the expectation before each token and, last, of that after the text; in bits

    Args:
        labels: one per token.
        likeliest: the token most expected at each place and after the text; empty for the first.
        mean_bits: over the tokens that could be predicted; 0 where there is none.
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


def surprisals(*, prompt: Prompt) -> Surprisals:
    """Measure every token of a text: -log2 of the probability that it was given beforehand.

    Args:
        prompt: to a GPT or a recurrent language model.

    Raises:
        ValueError: as kept_logits.
    """
    kept = kept_logits(prompt)
    log_probs = kept.logits.log_softmax(-1)  # (pos, vocab)
    came = torch.tensor(kept.ids[1:], dtype=torch.long)[:, None]  # (pos - 1, 1)
    own = log_probs[:-1].gather(1, came)  # (pos - 1, 1)
    rank = (log_probs[:-1] > own).sum(-1) + 1
    bits = (-own[:, 0] / math.log(2)).double().numpy()
    likeliest = kept.logits.argmax(-1).tolist()
    return Surprisals(
        labels=kept.labels,
        bits=np.concatenate([[np.nan], bits]),
        probability=np.concatenate([[np.nan], own[:, 0].exp().double().numpy()]),
        rank=np.concatenate([[0], rank.numpy()]),
        entropy=np.concatenate([[np.nan], entropy_bits(log_probs.exp()).double().numpy()]),
        likeliest=("", *labels_at(prompt.bundle.tokenizer, kept.ids, likeliest)),
        mean_bits=float(bits.mean()) if len(bits) else 0.0,
        foreseen=int((rank == 1).sum()),
    )


def expected(*, prompt: Prompt, place: int, top: int) -> Expected:
    """Return what was held likely at one place of a text.

    Args:
        prompt: to a GPT or a recurrent language model.
        place: how many tokens have been read; their number asks what comes after the text.
        top: how many of the likeliest tokens to name.

    Raises:
        ValueError: place or top is out of range, or as kept_logits.
    """
    kept, logits = logits_at(prompt, place)
    probabilities = logits.softmax(-1)  # (vocab,)
    require_range("top", top, 1, MOST_SHOWN)
    best = probabilities.topk(min(top, len(probabilities)))
    came_id = kept.ids[place] if place < len(kept.ids) else -1
    came = float(probabilities[came_id]) if came_id >= 0 else 0.0
    return Expected(
        ids=best.indices.numpy(),
        labels=labels_after(prompt.bundle.tokenizer, kept.ids[:place], best.indices.tolist()),
        probabilities=best.values.numpy(),
        rest=max(0.0, 1.0 - float(best.values.sum())),
        n_rest=len(probabilities) - len(best.values),
        entropy=float(entropy_bits(probabilities)),
        greatest=math.log2(len(probabilities)),
        came=kept.labels[place] if came_id >= 0 else "",
        came_id=came_id,
        came_probability=came,
        came_bits=-float(logits.log_softmax(-1)[came_id]) / math.log(2) if came_id >= 0 else 0.0,
        came_rank=int((logits > logits[came_id]).sum()) + 1 if came_id >= 0 else 0,
    )


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
    """Many draws from one distribution, beside the probabilities.

    Shapes:
        probabilities, counts, spread: (top + 1,), the likeliest first; the last is all other tokens together

    Args:
        labels: of the tokens, without the last.
        spread: the standard deviation that a count of so many draws has.
        first: the label of what the first draw gave.
        possible, within: how many of these counts can be above 0, and how many of them lie within two deviations.
        distance: half the sum of |share - chance| over all tokens.
        draws: how many.
    """

    labels: tuple[str, ...]
    probabilities: np.ndarray
    counts: np.ndarray
    spread: np.ndarray
    first: str
    possible: int
    within: int
    distance: float
    draws: int


def redrawn(
    *, prompt: Prompt, place: int, temperature: float, top_k: int | None, top_p: float | None, top: int
) -> Redrawn:
    """Apply sampling rules to the logits of one place; a text that was read is not read again.

    Args:
        prompt: to a GPT or a recurrent language model.
        place: how many tokens have been read.
        temperature, top_k, top_p: as in generation.sampling.probabilities.
        top: how many tokens to name.

    Raises:
        ValueError: as logits_at and probabilities.
    """
    kept, logits = logits_at(prompt, place)
    before, heated = logits.softmax(-1), probabilities(logits, temperature=temperature)
    after = probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)  # (vocab,)
    best = before.topk(min(top, MOST_SHOWN, len(before)))
    shown, survives = after[best.indices], after > 0
    return Redrawn(
        ids=best.indices.numpy(),
        labels=labels_after(prompt.bundle.tokenizer, kept.ids[:place], best.indices.tolist()),
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
    prompt: Prompt,
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
        seed: of the draws; all else as in redrawn.
        draws: how many.

    Raises:
        ValueError: as redrawn, or draws is out of range.
    """
    if not 1 <= draws <= MOST_DRAWS:
        raise ValueError(f"draws={draws} must be from 1 to {MOST_DRAWS:,}")
    kept, logits = logits_at(prompt, place)
    odds = probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)  # (vocab,)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.multinomial(odds, draws, replacement=True, generator=generator)  # (draw,)
    counts = torch.bincount(tokens, minlength=len(odds)).double()  # (vocab,)
    best = logits.topk(min(top, MOST_SHOWN, len(odds))).indices

    def with_rest(values: torch.Tensor) -> np.ndarray:
        others = values.double().index_fill(0, best, 0.0).sum()
        return torch.cat((values[best].double(), others[None])).numpy()

    share, count = with_rest(odds), with_rest(counts)
    spread = np.sqrt(draws * share * (1 - share).clip(0.0))
    name = labels_after(prompt.bundle.tokenizer, kept.ids[:place], [*best.tolist(), int(tokens[0])])
    return Draws(
        labels=name[:-1],
        probabilities=share,
        counts=count,
        spread=spread,
        first=name[-1],
        possible=int((share > 0).sum()),
        within=int((np.abs(count - draws * share) <= 2 * spread)[share > 0].sum()),
        distance=float((counts / draws - odds.double()).abs().sum() / 2),
        draws=draws,
    )
