"""Six measures of which tokens a verdict is based on, and whether they agree, on one text and over many reviews.

Three by gradients, occlusion, rollout and the last layer's weights; that such measures differ: Jain and Wallace 2019,
Bastings and Filippova 2020.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.attention.occlusion import Substitute, hidden_logits, substitutes
from transformer_core.analysis.attention.rollout import attention_flow
from transformer_core.analysis.encoder.saliency import Baseline, Saliency, baselines, saliency
from transformer_core.analysis.positions.order_cases import best_language
from transformer_core.analysis.rank_correlation import FEWEST, rank_correlation, ranks
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.training.corpora.grammar import Language
from transformer_core.training.corpora.reviews import reviews

MEASURES: tuple[str, ...] = ("gradient", "product", "integrated", "occlusion", "rollout", "last")


@dataclass(frozen=True, eq=False)
class Measures:
    """What each measure says of each token, and how far any two agree on the order of the words.

    Shapes:
        values: (measure, pos), in the order of MEASURES: length of the gradient; gradient . embedding; integrated
            gradients; the margin lost when the token is hidden; rollout; the last layer's weights. The second to fourth
            are in logits of the margin, above 0 where the token speaks for the verdict. Not a number where a measure
            gives no value for a token
        words: (pos,), which tokens are ranked: those that are not special
        rho, chance: (measure, measure), rank correlation of the sizes over words, and the share of random orders that
            are as far from 0
        first: (measure,), the word that each puts first, -1 for none

    Args:
        names: MEASURES.
        saliency: the gradients with their check.
        count: how many words were ranked.
        mean_rho: over all pairs of two measures; not a number where no pair has any.
    """

    names: tuple[str, ...]
    values: np.ndarray
    words: np.ndarray
    rho: np.ndarray
    chance: np.ndarray
    first: np.ndarray
    saliency: Saliency
    count: int
    mean_rho: float


def hiding_token(bundle: Bundle) -> Substitute | None:
    """Return what a word can be hidden behind: [MASK], else the unknown token, else None."""
    best = substitutes(bundle)[0]
    return None if best == "cut" else best


def margin_lost(prompt: Prompt, winner: int, rival: int) -> np.ndarray:
    """Return the margin minus what is left of it when each token is hidden; not a number where none can be.

    Shapes:
        returns: (pos,), in logits
    """
    encoding = prompt.encoding
    lost, substitute = np.full(len(encoding), np.nan), hiding_token(prompt.bundle)
    if substitute is not None:
        places, logits = hidden_logits(prompt.bundle, encoding, substitute)
        left = (logits[:, winner] - logits[:, rival]).cpu().double().numpy()  # (copy,)
        lost[places] = left[0] - left[1:]
    return lost


def values_of(
    prompt: Prompt, *, steps: int, baseline: Baseline, between: tuple[int, int] | None = None
) -> tuple[np.ndarray, Saliency]:
    """Return all measures of a text, (measure, pos), and the gradients with their check.

    Args:
        between: the classes whose margin is meant; winner and rival where None.
    """
    found = saliency(prompt=prompt, steps=steps, baseline=baseline, between=between)
    flow = attention_flow(prompt=prompt)
    lost = margin_lost(prompt, found.winner, found.rival)
    rows = (found.norms, found.products, found.integrated, lost, flow.verdict_rollout, flow.verdict_last)
    return np.stack([np.asarray(row, dtype=np.float64) for row in rows]), found


def rank_matrix(values: np.ndarray) -> np.ndarray:
    """Return the rank correlations of the sizes of several measures of the same words; nan where there is none.

    Shapes:
        values: (measure, word); returns: (measure, measure)
    """
    sizes = np.abs(values)
    found = np.full((len(sizes), len(sizes)), np.nan)
    usable = [place for place, row in enumerate(sizes) if np.isfinite(row).all() and np.ptp(row) > 0]
    if sizes.shape[1] >= FEWEST and usable:
        found[np.ix_(usable, usable)] = np.corrcoef(np.stack([ranks(sizes[place]) for place in usable]))
    return found


def pairs_of(rho: np.ndarray) -> np.ndarray:
    """Return the correlations of two different measures, each pair once: (..., pair) of (..., measure, measure)."""
    rows, cols = np.triu_indices(rho.shape[-1], 1)
    return rho[..., rows, cols]


def measures(*, prompt: Prompt, steps: int = 32, baseline: Baseline = "mask") -> Measures:
    """Measure in six ways what a verdict is based on, and how far any two agree.

    Args:
        prompt: to a classifier.
        steps, baseline: of integrated gradients, see saliency.

    Raises:
        ValueError: as saliency.
    """
    values, found = values_of(prompt, steps=steps, baseline=baseline)
    words = ~np.array(prompt.encoding.special)
    sizes = np.abs(values[:, words])  # (measure, word)
    rho = np.full((len(MEASURES), len(MEASURES)), np.nan)
    chance = np.full_like(rho, np.nan)
    for row in range(len(MEASURES)):
        for col in range(row, len(MEASURES)):
            agreed = rank_correlation(sizes[row], sizes[col])
            rho[row, col] = rho[col, row] = agreed.rho
            chance[row, col] = chance[col, row] = agreed.chance
    pairs = pairs_of(rho)
    return Measures(
        MEASURES,
        values,
        words,
        rho,
        chance,
        first_words(values, words),
        found,
        int(words.sum()),
        float(np.nanmean(pairs)) if np.isfinite(pairs).any() else float("nan"),
    )


def first_words(values: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return the position of the word that each measure puts first by size, -1 where it ranks none.

    Shapes:
        values: (measure, pos); words: (pos,); returns: (measure,)
    """
    sizes = np.where(words & np.isfinite(values), np.abs(values), -1.0)
    return np.where(sizes.max(-1) >= 0, sizes.argmax(-1), -1)


MOST_REVIEWS = 60
STEPS = 8  # of integrated gradients, where there are many texts


def held_out_reviews(bundle: Bundle, count: int) -> tuple[Language, list[Prompt]]:
    """Return the language that a classifier knows best, and the first held-out built-in reviews in it.

    Raises:
        ValueError: count is not from 1 to MOST_REVIEWS.
    """
    require_range("count", count, 1, MOST_REVIEWS)
    language = best_language(bundle.tokenizer)
    examples = reviews(language, train=0, held_out=count + count % 2)[1][:count]  # as many of either label are made
    return language, [Prompt(bundle, example.text, bundle.config.max_len) for example in examples]


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far the measures agree on held-out reviews of the built-in corpus.

    Shapes:
        rho: (measure, measure), the mean over reviews; spread: the standard deviation over reviews
        same_first: (measure, measure), the share of reviews of which both put the same word first
        mean_by_review: (review,), the mean over pairs

    Args:
        names: of the measures.
        language: of the reviews, the one that the model knows best.
        reviews: how many.
        mean_rho: over pairs and reviews.
    """

    names: tuple[str, ...]
    rho: np.ndarray
    spread: np.ndarray
    same_first: np.ndarray
    mean_by_review: np.ndarray
    language: str
    reviews: int
    mean_rho: float


def agreement_on_reviews(*, bundle: Bundle, count: int) -> Agreement:
    """Measure each of the first held-out reviews in six ways and average how far any two measures agree.

    Args:
        bundle: a classifier.
        count: how many reviews, from 1 to 60.

    Raises:
        ValueError: count is outside its range, or the bundle is not a classifier.
    """
    language, prompts = held_out_reviews(bundle, count)
    rhos, same = [], []
    for prompt in counted(prompts):
        values, _ = values_of(prompt, steps=STEPS, baseline=baselines(bundle)[0])
        words = ~np.array(prompt.encoding.special)
        first = first_words(values, words)
        rhos.append(rank_matrix(values[:, words]))
        same.append((first[:, None] == first[None, :]) & (first >= 0))
    stacked = np.stack(rhos)  # (review, measure, measure)
    return Agreement(
        MEASURES,
        _mean(stacked),
        stacked.std(0),
        np.mean(same, axis=0),
        np.array([float(_mean(row)) for row in pairs_of(stacked)]),
        language,
        count,
        float(_mean(pairs_of(stacked).ravel())),
    )


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean over the first axis of what is a number; nan where nothing is."""
    there = np.isfinite(values)
    return np.where(there, values, 0.0).sum(0) / np.where(there.any(0), there.sum(0), np.nan)
