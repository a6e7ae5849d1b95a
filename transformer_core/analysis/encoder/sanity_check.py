"""A sanity check: do the measures change when the trained weights are shuffled, part by part from the top?

Adebayo et al. 2018, section 3.1 (cascading randomisation). One change: each weight matrix is shuffled, entry by entry,
not drawn again, so that its entries stay as large as training made them.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from transformer_core.analysis.encoder.layers import classifier_of, winner_and_rival
from transformer_core.analysis.encoder.measures import MEASURES, rank_matrix, values_of
from transformer_core.analysis.encoder.saliency import Baseline
from transformer_core.analysis.outcome import one_text
from transformer_core.bundle import Bundle

MOST_SHUFFLES = 8
STEPS = 8


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
            part is shuffled and all above it.
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
    return ("trained", "class_map", *(f"layer{i}" for i in reversed(range(bundle.config.n_layers))), "embedding")


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
    top = [part for part in (model.class_proj, model.pooler_proj, stack.final_norm) if part is not None]
    for parts in (top, *([layer] for layer in reversed(stack.layers)), [model.encoder.embedding]):
        for part in parts:
            shuffle(part, generator)
        yield replace(bundle, model=model)


def sanity_check(*, bundle: Bundle, text: str, n_tokens: int, shuffles: int, seed: int = 0) -> SanityCheck:
    """Shuffle a model's weights from the top down and compare each measure with that of the trained model.

    Args:
        bundle: a classifier; it is not changed.
        n_tokens: most tokens of the text to read.
        shuffles: how many times, each with a seed of its own; from 1 to 8.
        seed: of the first.

    Raises:
        ValueError: shuffles is outside its range, or the bundle is not a classifier.
    """
    if not 1 <= shuffles <= MOST_SHUFFLES:
        raise ValueError(f"shuffles={shuffles} must be from 1 to {MOST_SHUFFLES}")
    classifier_of(bundle)
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    token_ids, words = one_text(bundle, encoding), ~np.array(encoding.special)
    baseline: Baseline = "zero" if bundle.tokenizer.mask_id is None else "mask"
    with torch.no_grad():
        between = winner_and_rival(bundle.model(token_ids)[0])

    def maps_of(some: Bundle) -> np.ndarray:
        return values_of(some, text, n_tokens, steps=STEPS, baseline=baseline, between=between)[0]

    def chance_of(some: Bundle) -> float:
        with torch.no_grad():
            return float(some.model(token_ids)[0].softmax(-1)[between[0]])

    trained = maps_of(bundle)
    maps, rho, chances = [], [], []
    for number in range(shuffles):
        rows = []
        for some in cascade(bundle, seed + number):
            found = trained if some is bundle else maps_of(some)
            both = rank_matrix(np.concatenate([trained, found])[:, words])
            rows.append(both.diagonal(len(MEASURES)))
            if number == 0:
                maps.append(found)
                chances.append(chance_of(some))
        rho.append(np.stack(rows))
    stacked = np.stack(rho)  # (shuffle, stage, measure)
    return SanityCheck(
        MEASURES,
        stages_of(bundle),
        stacked,
        stacked.mean(0),
        stacked.std(0),
        np.stack(maps),
        np.array(chances),
        words,
        shuffles,
        seed,
    )
