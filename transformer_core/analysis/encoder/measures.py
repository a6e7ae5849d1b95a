"""Six measures of what a verdict rests on, and whether they agree.

Three by gradients, occlusion, rollout and the last layer's weights; that such measures part: Jain and Wallace 2019,
Bastings and Filippova 2020. Read next: agreement.py.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.attention.flow import attention_flow
from transformer_core.analysis.attention.occlusion import Substitute, hidden_logits
from transformer_core.analysis.attention.ranking import FEWEST, rank_correlation, ranks
from transformer_core.analysis.encoder.saliency import Baseline, Saliency, saliency
from transformer_core.bundle import Bundle

MEASURES: tuple[str, ...] = ("gradient", "product", "integrated", "occlusion", "rollout", "last")


@dataclass(frozen=True, eq=False)
class Measures:
    """What each measure says of each token, and how far any two agree on the order of the words.

    Shapes:
        values: (measure, pos), in the order of MEASURES: length of the gradient; gradient . embedding; integrated
            gradients; the margin lost when the token is hidden; rollout; the last layer's weights. The second to fourth
            are in logits of the margin, above 0 where the token speaks for the verdict. Not a number where a measure
            says nothing of a token
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
    tokenizer = bundle.tokenizer
    return "mask" if tokenizer.mask_id is not None else "unk" if tokenizer.unk_id is not None else None


def margin_lost(bundle: Bundle, text: str, n_tokens: int, winner: int, rival: int) -> np.ndarray:
    """Return the margin minus what is left of it when each token is hidden; not a number where none can be.

    Shapes:
        returns: (pos,), in logits
    """
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    lost, substitute = np.full(len(encoding), np.nan), hiding_token(bundle)
    if substitute is not None:
        places, logits = hidden_logits(bundle, encoding, substitute)
        left = (logits[:, winner] - logits[:, rival]).double().cpu().numpy()  # (copy,)
        lost[places] = left[0] - left[1:]
    return lost


def values_of(
    bundle: Bundle, text: str, n_tokens: int, *, steps: int, baseline: Baseline, between: tuple[int, int] | None = None
) -> tuple[np.ndarray, Saliency]:
    """Return all measures of a text, (measure, pos), and the gradients with their check.

    Args:
        between: the classes whose margin is meant; winner and rival where None.
    """
    found = saliency(bundle=bundle, text=text, n_tokens=n_tokens, steps=steps, baseline=baseline, between=between)
    flow = attention_flow(bundle=bundle, text=text, n_tokens=n_tokens)
    lost = margin_lost(bundle, text, n_tokens, found.winner, found.rival)
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


def measures(*, bundle: Bundle, text: str, n_tokens: int, steps: int = 32, baseline: Baseline = "mask") -> Measures:
    """Measure in six ways what a verdict rests on, and how far any two agree.

    Args:
        bundle: a classifier.
        n_tokens: how many tokens of the text are read at most.
        steps, baseline: of integrated gradients, see saliency.

    Raises:
        ValueError: as saliency.
    """
    values, found = values_of(bundle, text, n_tokens, steps=steps, baseline=baseline)
    words = ~np.array(bundle.tokenizer.encode(text, max_len=n_tokens).special)
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
