"""The toy batch of tutorials: fixed ids through a small Transformer, with every shape, mask and weight to look at.

The sizes are those of a widely copied listing: vocabulary of 5, 4 layers, 8 heads of 64, d_model 128, d_ff 256.
Vaswani et al. 2017, section 3.1.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from transformer_core.config import ModelConfig, require_choice
from transformer_core.layers.masks import causal_mask, combined_mask, padding_mask
from transformer_core.models import Translation
from transformer_core.probe import capture
from transformer_core.trace import Trace

Source = Literal["random", "ones", "padded", "all_padding"]
CONFIG = ModelConfig(vocab_size=5, d_model=128, d_ff=256, n_heads=8, d_head=64, n_layers=4, max_len=16, pad_id=0)
SENTENCES, LENGTH = 4, 6
TARGET = (1, 2, 3, 4, 0, 0)
LARGE = -1e9
KINDS = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")


@dataclass(frozen=True, eq=False)
class Attended:
    """One head of one attention for one sentence.

    Shapes:
        mask: (query_pos, key_pos), True = may attend; weights, filled: (query_pos, key_pos)

    Args:
        filled: what the same scores give where hidden ones become -1e9, as is often printed.
        on_hidden, filled_on_hidden: the greatest weight on a key that is hidden, in `weights` and in `filled`.
        empty_rows: queries with nothing to attend to.
    """

    mask: np.ndarray
    weights: np.ndarray
    filled: np.ndarray
    on_hidden: float
    filled_on_hidden: float
    empty_rows: int


@dataclass(frozen=True, eq=False)
class ToyBatch:
    """The batch, all that the pass recorded by name and shape, and three attentions of one sentence.

    Shapes:
        source_ids, target_ids: (batch, pos); least, greatest: (tensor,)

    Args:
        names, shapes: of every tensor, in the order computed.
        least, greatest: of the finite values of each.
        finite: whether each tensor has finite values alone; masked scores need not.
        encoder_self, decoder_self, cross: the three attentions.
        row_sums: how far the sum of a row of weights that may attend is from 1, at most, over the whole batch.
        parameters: how many numbers the model has.
    """

    source_ids: np.ndarray
    target_ids: np.ndarray
    names: tuple[str, ...]
    shapes: tuple[str, ...]
    least: np.ndarray
    greatest: np.ndarray
    finite: tuple[bool, ...]
    encoder_self: Attended
    decoder_self: Attended
    cross: Attended
    row_sums: float
    parameters: int


@lru_cache(maxsize=4)
def toy_model(seed: int) -> Translation:
    """Return the listing's model with seeded, untrained weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Translation(CONFIG).eval().requires_grad_(False)


def toy_source(source: Source, seed: int) -> Tensor:
    """Return the source ids.

    Shapes:
        returns: (batch, pos)

    Args:
        source: "random" draws each id from 1 to 4; "ones" is 1 everywhere; "padded" draws, and ends each sentence one
            token earlier than the one before; "all_padding" draws, and leaves nothing but padding in the last one.

    Raises:
        ValueError: source is not one of these.
    """
    require_choice("source", source, get_args(Source))
    drawn = torch.randint(1, CONFIG.vocab_size, (SENTENCES, LENGTH), generator=torch.Generator().manual_seed(seed))
    if source == "ones":
        return torch.ones_like(drawn)
    if source == "padded":
        ends = LENGTH - torch.arange(SENTENCES)
        return drawn.masked_fill(torch.arange(LENGTH) >= ends[:, None], 0)
    if source == "all_padding":
        drawn[-1] = 0
    return drawn


def toy_batch(*, source: Source, seed: int, sentence: int, layer: int, head: int) -> ToyBatch:
    """Run the batch and look at one head of each attention for one sentence.

    Args:
        seed: of the weights and of the drawn ids.
        sentence, layer, head: from 0.

    Raises:
        ValueError: there is no such source, sentence, layer or head.
    """
    for name, value, size in (
        ("sentence", sentence, SENTENCES),
        ("layer", layer, CONFIG.n_layers),
        ("head", head, CONFIG.n_heads),
    ):
        if not 0 <= value < size:
            raise ValueError(f"{name}={value} must be from 0 to {size - 1}")
    model, source_ids = toy_model(seed), toy_source(source, seed)
    target_ids = torch.tensor([TARGET] * SENTENCES)
    _, trace = capture(model, source_ids, target_ids)
    values = [tensor[torch.isfinite(tensor)].float() for tensor in trace.values()]
    real = {"encoder": padding_mask(source_ids, 0), "decoder": padding_mask(target_ids, 0)}
    masks = (real["encoder"], combined_mask(real["decoder"], causal_mask(LENGTH)), real["encoder"])
    seen = [
        _attended(trace, kind.replace(".", f".layer{layer}.", 1), mask, sentence, head)
        for kind, mask in zip(KINDS, masks, strict=True)
    ]
    return ToyBatch(
        source_ids=source_ids.numpy(),
        target_ids=target_ids.numpy(),
        names=tuple(trace),
        shapes=tuple(" × ".join(map(str, tensor.shape)) for tensor in trace.values()),
        least=np.array([float(part.min()) if part.numel() else np.nan for part in values]),
        greatest=np.array([float(part.max()) if part.numel() else np.nan for part in values]),
        finite=tuple(bool(torch.isfinite(tensor).all()) for tensor in trace.values()),
        encoder_self=seen[0],
        decoder_self=seen[1],
        cross=seen[2],
        row_sums=_off_one(trace),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )


def _attended(trace: Trace, scope: str, mask: Tensor | None, sentence: int, head: int) -> Attended:
    weights, scores = (trace[f"{scope}.{leaf}"][sentence, head] for leaf in ("weights", "scores"))
    whole = trace[f"{scope}.weights"].shape
    every = torch.ones(1, dtype=torch.bool) if mask is None else mask
    allowed = every.broadcast_to(whole)[sentence, head]  # (query_pos, key_pos)
    filled = scores.masked_fill(~allowed, LARGE).softmax(-1)
    return Attended(
        mask=allowed.numpy(),
        weights=weights.numpy(),
        filled=filled.numpy(),
        on_hidden=float(weights.masked_fill(allowed, 0.0).max()),
        filled_on_hidden=float(filled.masked_fill(allowed, 0.0).max()),
        empty_rows=int((~allowed.any(-1)).sum()),
    )


def _off_one(trace: Trace) -> float:
    sums = [tensor.sum(-1) for name, tensor in trace.items() if name.endswith(".weights")]
    return max(float((part[part > 0] - 1).abs().max()) for part in sums)
