"""Layer normalisation beside batch normalisation: what a sentence becomes when other sentences share its batch.

Ba et al. 2016, eq. 4; Ioffe and Szegedy 2015, algorithm 1. Both without gain and bias, which follow and change nothing.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.parts import reading_part
from transformer_core.analysis.positions.order_cases import best_language
from transformer_core.probe import Probe
from transformer_core.prompt import Prompt
from transformer_core.text import make_batch
from transformer_core.training.corpora.reviews import reviews

EPS = 1e-5


@dataclass(frozen=True, eq=False)
class BatchNorms:
    """How far each token of a sentence moves when its batch grows, under layer norm and under batch norm.

    Shapes:
        layer_moves, batch_moves: (pos,), length of the difference over that of the vector in a batch of one
        real_moves: (pos,), as batch_moves, with padding left out of the statistics

    Args:
        labels: of the sentence's tokens.
        padding: share of padding in the batch.
    """

    labels: tuple[str, ...]
    layer_moves: np.ndarray
    batch_moves: np.ndarray
    real_moves: np.ndarray
    padding: float


def over_dimensions(x: Tensor) -> Tensor:
    """Normalise every position by its own mean and variance; x, returns: (batch, pos, d_model)."""
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + EPS).sqrt()


def over_batch(x: Tensor, counted: Tensor) -> Tensor:
    """Normalise every dimension by its mean and variance over positions of all sentences, as in training.

    Shapes:
        x, returns: (batch, pos, d_model); counted: (batch, pos), booleans, the positions that the statistics are of
    """
    own = x[counted]  # (position, d_model)
    return (x - own.mean(0)) / (own.var(0, correction=0) + EPS).sqrt()


@torch.inference_mode()
def batch_norms(*, prompt: Prompt, others: int) -> BatchNorms:
    """Normalise what a model's first layer reads of a text, by itself and in one batch with built-in reviews.

    Args:
        prompt: to a model of a kind that reads one text, with a padding token.
        others: how many of the built-in held-out reviews share the batch.

    Raises:
        ValueError: there are no others, or the model has no padding token.
    """
    bundle = prompt.bundle
    if bundle.config.pad_id is None:
        raise ValueError(f"bundle={bundle.name!r} has no padding token")
    if others < 1:
        raise ValueError(f"others={others} must be at least 1")
    mates = [review.text for review in reviews(best_language(bundle.tokenizer), train=0, held_out=others)[1]]
    own = prompt.encoding
    batch = make_batch(
        [own, *bundle.tokenizer.encode_batch(mates, max_len=bundle.config.max_len)], padding=bundle.config.padding
    )
    part, site = reading_part(bundle.model), bundle.reader.stages[0]
    device = next(part.parameters()).device
    probe = Probe((site,))
    part(batch.token_ids.to(device), probe=probe.at(bundle.reader.stack))
    x, real = probe.trace[site].cpu().double(), batch.mask  # (batch, pos, d_model), (batch, pos)
    everywhere = torch.ones_like(real)
    size = len(batch.encodings[0])
    alone, whole = x[:1, :size], everywhere[:1, :size]

    def moved(shared: Tensor, own: Tensor) -> np.ndarray:
        return ((shared[0, :size] - own[0]).norm(dim=-1) / own[0].norm(dim=-1).clamp(min=1e-12)).numpy()

    by_itself = over_batch(alone, whole)
    return BatchNorms(
        labels=batch.encodings[0].labels,
        layer_moves=moved(over_dimensions(x), over_dimensions(alone)),
        batch_moves=moved(over_batch(x, everywhere), by_itself),
        real_moves=moved(over_batch(x, real), by_itself),
        padding=float(1 - real.double().mean()),
    )
