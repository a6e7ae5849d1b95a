"""From logits to the chances of each token: temperature, top-k and top-p, in that order.

Ackley et al. 1985 (temperature), Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p). Read next: writer.py.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Written:
    """One step of generation.

    Shapes:
        logits: (vocab,), from which the token was chosen, as the model gave them

    Args:
        token_id: the token that was written.
    """

    token_id: int
    logits: Tensor


def without(logits: Tensor, exclude: tuple[int, ...]) -> Tensor:
    """Return logits (..., vocab) with minus infinity at the tokens that shall never be written."""
    if not exclude:
        return logits
    places = torch.tensor(exclude, device=logits.device)
    if int(places.min()) < 0 or int(places.max()) >= logits.shape[-1]:
        raise ValueError(f"exclude={exclude} must hold ids of the vocabulary, 0 to {logits.shape[-1] - 1}")
    return logits.index_fill(-1, places, float("-inf"))


def chances(
    logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Return the probability of each token: softmax(logits / temperature), cut to the top k, then to the top p.

    What is cut gets 0, and the rest is divided by its sum, so that top-p counts what top-k left.

    Shapes:
        logits: (..., vocab); returns: the same

    Args:
        temperature: above 0; towards 0 the likeliest token wins, above 1 rare ones gain.
        top_k: how many tokens are kept, the likeliest; None, or more than there are, keeps all.
        top_p: the fewest tokens, likeliest first, of which the probabilities reach this sum are kept; None keeps all.

    Raises:
        ValueError: an argument is out of its range.
    """
    if not (temperature > 0 and temperature != float("inf")):
        raise ValueError(f"temperature={temperature} must be more than 0 and finite")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k={top_k} must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p} must be more than 0 and at most 1")
    logits = logits.float()
    probabilities = ((logits - logits.amax(-1, keepdim=True)) / temperature).softmax(-1)
    if top_k is not None and top_k < logits.shape[-1]:
        probabilities = _kept(probabilities, logits.topk(top_k).indices)
    if top_p is not None and top_p < 1:
        ranked, places = torch.sort(probabilities, dim=-1, descending=True, stable=True)
        before = ranked.cumsum(-1) - ranked  # (..., vocab): what likelier tokens add up to
        ranked = ranked.masked_fill(before >= top_p, 0.0)
        cut = torch.zeros_like(probabilities).scatter(-1, places, ranked)
        probabilities = cut / cut.sum(-1, keepdim=True)
    return probabilities


def _kept(probabilities: Tensor, places: Tensor) -> Tensor:
    kept = torch.zeros_like(probabilities).scatter(-1, places, probabilities.gather(-1, places))
    return kept / kept.sum(-1, keepdim=True)
