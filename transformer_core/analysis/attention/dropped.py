"""Dropout on the weights of one head, as in training: draws, the mean over many, and what they do to the outcome.

Srivastava et al. 2014, section 4; on attention weights: the code of Vaswani et al. 2017 (their section 5.4 names the
outputs of sublayers and the embeddings). Here one head alone is dropped; training drops all of them, and more.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.attention.heads import attention_scope
from transformer_core.analysis.outcome import conclude, one_text, read
from transformer_core.config import require_range
from transformer_core.layers.dropout import LEVELS, drop
from transformer_core.probe import Edit
from transformer_core.prompt import Prompt

MOST_DRAWS = 256
DRAWS = (1, 4, 16, 64, 256)


@dataclass(frozen=True, eq=False)
class DroppedWeights:
    """One head's weights with dropout.

    Shapes:
        weights: (query_pos, key_pos), as without dropout; draw: the same of the first draw; mean: over all draws
        row_sums: (query_pos,), of the first draw; counts: (count,), 1, 2, 4, ... up to all draws
        distances: (count,), root of the mean squared difference of the mean over so many draws from the weights
        after: (draw,), the winner's probability with each draw; empty where the model concludes nothing

    Args:
        probability: that was used: on a processor the next 1/256, as in training.
        winner: the likeliest outcome without dropout, -1 where there is none.
        before: its probability; nan where there is none.
        flips: with how many draws another outcome wins.
    """

    weights: np.ndarray
    draw: np.ndarray
    mean: np.ndarray
    row_sums: np.ndarray
    counts: np.ndarray
    distances: np.ndarray
    probability: float
    winner: int
    before: float
    after: np.ndarray
    flips: int


def draw_weights(weights: Tensor, probability: float, draws: int, seed: int) -> Tensor:
    """Drop weights so many times, as training does with `layers.dropout.drop`; the first n draws depend on n alone.

    Shapes:
        weights: (query_pos, key_pos); returns: (draw, query_pos, key_pos)
    """
    weights = weights.float().cpu()
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return torch.stack([drop(weights, probability) for _ in range(draws)])


def put_in(head: int, drawn: Tensor) -> Edit:
    """Return the edit that gives one head, in each copy of a text, weights of its own.

    Shapes:
        drawn: (copy, query_pos, key_pos), for weights (copy, head, query_pos, key_pos)
    """

    def edit(weights: Tensor) -> Tensor:
        weights = weights.clone()
        weights[:, head] = drawn.to(weights)
        return weights

    return edit


@torch.inference_mode()
def dropped_weights(*, prompt: Prompt, layer: int, head: int, percent: int, seed: int, draws: int) -> DroppedWeights:
    """Drop the weights of one head, many times, and read the text with each.

    Args:
        layer, head: from 0.
        percent: of the weights that are dropped, 0 to 95.
        seed: of the draws.
        draws: how many, at most 256.

    Raises:
        ValueError: a number outside its range, or as read.
    """
    bundle = prompt.bundle
    config = bundle.config
    for name, value, least, most in (
        ("layer", layer, 0, config.n_layers - 1),
        ("head", head, 0, config.n_heads - 1),
        ("percent", percent, 0, 95),
        ("draws", draws, 1, MOST_DRAWS),
    ):
        require_range(name, value, least, most)
    encoding = prompt.encoding
    site = f"{attention_scope(bundle, layer)}.weights"
    reading = read(bundle, encoding, sites=(site,))
    weights = reading.trace[site][0, head].float().cpu()  # (query_pos, key_pos)
    drawn = draw_weights(weights, percent / 100, draws, seed)  # (draw, query_pos, key_pos)
    counts = [1 << power for power in range(draws.bit_length())]
    counts += [draws] if counts[-1] != draws else []
    means = drawn.double().cumsum(0)[[count - 1 for count in counts]] / torch.tensor(counts)[:, None, None]
    winner, before, after = -1, float("nan"), torch.empty(0, 0)
    outcome = bundle.reader.outcome(encoding)
    if outcome is not None:
        winner = int(np.argmax(reading.probabilities))
        before = float(reading.probabilities[winner])
        ids = one_text(bundle, encoding)
        parts = drawn.split(bundle.reader.at_once(len(encoding), draws))
        found = [
            conclude(bundle, ids.expand(len(part), -1), outcome, edits={site: put_in(head, part)})[0] for part in parts
        ]
        after = torch.cat(found).cpu()  # (draw, outcome)
    return DroppedWeights(
        weights=weights.numpy(),
        draw=drawn[0].numpy(),
        mean=means[-1].float().numpy(),
        row_sums=drawn[0].sum(-1).numpy(),
        counts=np.array(counts),
        distances=(means - weights).square().mean((1, 2)).sqrt().numpy(),
        probability=round(percent / 100 * LEVELS) / LEVELS,
        winner=winner,
        before=before,
        after=after[:, winner].numpy() if winner >= 0 else np.empty(0),
        flips=int((after.argmax(-1) != winner).sum()) if winner >= 0 else 0,
    )
