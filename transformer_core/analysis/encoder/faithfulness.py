"""Which measure is faithful to the model? The deletion test, and the sanity check by shuffled weights.

Deletion: Samek et al. 2017, section 3 (most relevant first), beside random orders, since most tokens matter a little.
Sanity check: Adebayo et al. 2018 (cascading randomisation), with one change: each weight matrix is
shuffled, entry by entry, not drawn again, so that its entries stay as large as training made them.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from transformer_core.analysis.attention.occlusion import hidden_logits
from transformer_core.analysis.encoder.layers import classifier_of, winner_and_rival
from transformer_core.analysis.encoder.measures import (
    MEASURES,
    STEPS,
    held_out_reviews,
    hiding_token,
    rank_matrix,
    values_of,
)
from transformer_core.analysis.encoder.saliency import Baseline, baselines
from transformer_core.analysis.outcome import one_text
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding

SIGNED = ("product", "integrated", "occlusion")  # their sign says whether a token speaks for the verdict
RANDOM = 8
POINTS = 11
FEWEST_WORDS = 2


@dataclass(frozen=True, eq=False)
class Deletion:
    """How fast the winner's probability falls when the words that a measure ranks first are hidden.

    Shapes:
        left: (order, point), the winner's probability once that share of the words is hidden, the orders being
            MEASURES and then random, a mean over several
        area: (order,), the mean of it along the way; the smaller, the better the measure's order
        shares: (point,), from 0 to 1

    Args:
        names: MEASURES and "random".
        winner: the likeliest class of the whole text.
        best: the measure with the smallest area.
        words: how many words there are to hide.
    """

    names: tuple[str, ...]
    left: np.ndarray
    area: np.ndarray
    shares: np.ndarray
    winner: int
    best: int
    words: int


@dataclass(frozen=True, eq=False)
class DeletionOnReviews:
    """The same over held-out reviews of the built-in corpus.

    Shapes:
        left: (order, point), the mean over reviews; area, error: (order,), its mean and that mean's standard error
        wins: (order,), in how many reviews the order had the smallest area; shares: (point,)

    Args:
        names, best: as in Deletion.
        reviews: how many were measured.
        language: of the reviews.
    """

    names: tuple[str, ...]
    left: np.ndarray
    area: np.ndarray
    error: np.ndarray
    wins: np.ndarray
    shares: np.ndarray
    best: int
    reviews: int
    language: str


def hiding_orders(values: np.ndarray, own: Sequence[int]) -> list[list[int]]:
    """Return for each measure in which order it would hide the words: what speaks for the verdict most comes first.

    A measure without a sign goes by size; a word of which it says nothing comes last.

    Shapes:
        values: (measure, pos), in the order of MEASURES
    """
    orders = []
    for name, row in zip(MEASURES, values, strict=True):
        weight = np.nan_to_num(row if name in SIGNED else np.abs(row), nan=-np.inf)
        orders.append(sorted(own, key=lambda place: (-weight[place], place)))
    return orders


def _left(bundle: Bundle, encoding: Encoding, orders: Sequence[Sequence[int]], winner: int) -> np.ndarray:
    """Return the winner's probability after each word that is hidden, (order, 1 + word)."""
    substitute = hiding_token(bundle)
    assert substitute is not None
    groups = [tuple(order[:count]) for order in orders for count in range(len(order) + 1)]
    hidden, logits = hidden_logits(bundle, encoding, substitute, groups)
    probabilities = logits.softmax(-1)[:, winner].cpu().double().numpy()
    left = np.full(len(groups), probabilities[0])  # of what hides nothing, too
    left[hidden] = probabilities[1:]
    return left.reshape(len(orders), -1)


def deletion(*, prompt: Prompt, steps: int = 32, baseline: Baseline = "mask", seed: int = 0) -> Deletion:
    """Hide a text's words in the order of each measure and at random, and record the winner's probability after each.

    Args:
        prompt: to a classifier with a token to hide words behind.
        steps, baseline: of integrated gradients, see saliency.
        seed: of the random orders.

    Raises:
        ValueError: as saliency; or there is nothing to hide words behind, or there are fewer than two.
    """
    encoding = prompt.encoding
    own = [place for place, special in enumerate(encoding.special) if not special]
    if hiding_token(prompt.bundle) is None or len(own) < FEWEST_WORDS:
        raise ValueError(f"text={prompt.text!r:.40} has {len(own)} words to hide; at least {FEWEST_WORDS} are needed")
    values, found = values_of(prompt, steps=steps, baseline=baseline)
    rng = np.random.default_rng(seed)
    orders = hiding_orders(values, own) + [rng.permutation(own).tolist() for _ in range(RANDOM)]
    falls = _left(prompt.bundle, encoding, orders, found.winner)  # (order, 1 + word)
    falls = np.concatenate([falls[: len(MEASURES)], falls[len(MEASURES) :].mean(0, keepdims=True)])
    hidden, shares = np.linspace(0, 1, len(own) + 1), np.linspace(0, 1, POINTS)
    area = np.array([np.trapezoid(fall, hidden) for fall in falls])
    left = np.stack([np.interp(shares, hidden, fall) for fall in falls])
    best = int(area[: len(MEASURES)].argmin())
    return Deletion((*MEASURES, "random"), left, area, shares, found.winner, best, len(own))


def deletion_on_reviews(*, bundle: Bundle, count: int) -> DeletionOnReviews:
    """Do the same with the first held-out reviews of the built-in corpus, and average.

    Args:
        bundle: a classifier with a token to hide words behind.
        count: how many reviews, from 1 to 60.

    Raises:
        ValueError: as deletion; or count is outside its range.
    """
    language, prompts = held_out_reviews(bundle, count)
    baseline = baselines(bundle)[0]
    each = [deletion(prompt=prompt, steps=STEPS, baseline=baseline) for prompt in counted(prompts)]
    areas = np.stack([one.area for one in each])  # (review, order)
    wins = np.bincount(areas.argmin(1), minlength=areas.shape[1])
    area = areas.mean(0)
    return DeletionOnReviews(
        each[0].names,
        np.mean([one.left for one in each], axis=0),
        area,
        areas.std(0) / np.sqrt(len(each)),
        wins,
        each[0].shares,
        int(area[: len(MEASURES)].argmin()),
        len(each),
        language,
    )


MOST_SHUFFLES = 8


@dataclass(frozen=True, eq=False)
class SanityCheck:
    """How like its own map each measure stays while the weights are shuffled from the class map down.

    Shapes:
        rho: (shuffle, stage, measure), rank correlation of the sizes over words with those of the trained model
        mean_rho, spread: (stage, measure), mean and standard deviation over shuffles
        maps: (stage, measure, pos), of the first shuffle
        probabilities: (stage,), of the trained model's class, in the first shuffle

    Args:
        names: of the measures.
        stages: "trained", "class_map" (with pooler and final norm), "layer3" and so on down, "embedding"; at each, that
            part is shuffled and all above it; layers that are one block make one stage.
        words: (pos,), which tokens are ranked.
        shuffles: how many; the seeds count from `seed`.
    """

    names: tuple[str, ...]
    stages: tuple[str, ...]
    rho: np.ndarray
    mean_rho: np.ndarray
    spread: np.ndarray
    maps: np.ndarray
    probabilities: np.ndarray
    words: np.ndarray
    shuffles: int
    seed: int


def stages_of(bundle: Bundle) -> tuple[str, ...]:
    """Return the stages of the check, from the trained model to the one that is shuffled down to its embedding."""
    n_blocks = 1 if bundle.config.shared_layers else bundle.config.n_layers
    return ("trained", "class_map", *(f"layer{i}" for i in reversed(range(n_blocks))), "embedding")


@torch.no_grad()
def shuffle(module: nn.Module, generator: torch.Generator) -> None:
    """Shuffle the entries of each parameter within it."""
    for parameter in module.parameters():
        flat = parameter.detach().flatten()
        order = torch.randperm(flat.numel(), generator=generator).to(flat.device)
        parameter.copy_(flat[order].view_as(parameter))


def cascade(bundle: Bundle, seed: int) -> Iterator[Bundle]:
    """Yield the bundle itself, then a copy with one part more shuffled each time; the copy is one and the same."""
    yield bundle
    model = copy.deepcopy(classifier_of(bundle))
    generator = torch.Generator().manual_seed(seed)
    stack = model.encoder.stack
    above = (model.class_proj, model.pooler_norm, model.pooler_proj, stack.final_norm)
    top = [part for part in above if part is not None]
    for parts in (top, *([block] for block in reversed([*stack.layers.children()])), [model.encoder.embedding]):
        for part in parts:
            shuffle(part, generator)
        yield replace(bundle, model=model)


def sanity_check(*, prompt: Prompt, shuffles: int, seed: int = 0) -> SanityCheck:
    """Shuffle a model's weights from the top down and compare each measure with that of the trained model.

    Args:
        prompt: to a classifier; it is not changed.
        shuffles: how many times, each with a seed of its own; from 1 to 8.
        seed: of the first.

    Raises:
        ValueError: shuffles is outside its range, or the bundle is not a classifier.
    """
    bundle = prompt.bundle
    require_range("shuffles", shuffles, 1, MOST_SHUFFLES)
    classifier_of(bundle)
    encoding = prompt.encoding
    token_ids, words = one_text(bundle, encoding), ~np.array(encoding.special)
    baseline = baselines(bundle)[0]
    with torch.no_grad():
        between = winner_and_rival(bundle.model(token_ids)[0])

    def maps_of(some: Bundle) -> np.ndarray:
        return values_of(replace(prompt, bundle=some), steps=STEPS, baseline=baseline, between=between)[0]

    def chance_of(some: Bundle) -> float:
        with torch.no_grad():
            return float(some.model(token_ids)[0].softmax(-1)[between[0]])

    trained = maps_of(bundle)
    maps, rho, probabilities = [], [], []
    for number in counted(range(shuffles)):
        rows = []
        for some in cascade(bundle, seed + number):
            found = trained if some is bundle else maps_of(some)
            both = rank_matrix(np.concatenate([trained, found])[:, words])
            rows.append(both.diagonal(len(MEASURES)))
            if number == 0:
                maps.append(found)
                probabilities.append(chance_of(some))
        rho.append(np.stack(rows))
    stacked = np.stack(rho)  # (shuffle, stage, measure)
    return SanityCheck(
        MEASURES,
        stages_of(bundle),
        stacked,
        stacked.mean(0),
        stacked.std(0),
        np.stack(maps),
        np.array(probabilities),
        words,
        shuffles,
        seed,
    )
