"""Masks: which position may attend to which. True = may attend, as in scaled_dot_product_attention.

Vaswani et al. 2017, section 3.2.3. torch.nn.MultiheadAttention's boolean masks are the opposite.
Read next: transformer_core/layers/cache.py
"""

from functools import lru_cache

import torch
from torch import Tensor

from transformer_core.config import ModelConfig

HIDDEN = float("-inf")  # the score of what a query may not attend to
LARGE_HIDDEN = -1e20  # where padding hides queries, too: a wholly masked row then averages over all


def real_tokens(token_ids: Tensor, padding: int) -> Tensor | None:
    """Return which tokens are not padding, None where all are.

    Shapes:
        token_ids, returns: (batch, pos)

    Args:
        padding: what stands for it, as the config's `padding`.
    """
    real = token_ids != padding
    return None if bool(real.all()) else real


def padding_mask(token_ids: Tensor, padding: int) -> Tensor | None:
    """Hide padding from every query; arguments as of real_tokens.

    Shapes:
        token_ids: (batch, key_pos)
        returns: (batch, 1, 1, key_pos), or None where there is no padding to hide
    """
    real = real_tokens(token_ids, padding)
    return None if real is None else real[:, None, None, :]


def repeated_by_head(mask: Tensor, n_heads: int) -> Tensor:
    """Repeat a batch's masks as a whole, once for each head, and read the rows sentence by sentence: a common slip.

    Scores of shape (batch, head) are laid out sentence by sentence, this repetition head by head. Both have
    batch * head rows, so that nothing fails: row b * n_heads + h gets the mask of sentence (b * n_heads + h) % batch.

    Shapes:
        mask: (batch, query_pos or 1, key_pos); returns: (batch, head, query_pos or 1, key_pos)
    """
    return mask.repeat(n_heads, 1, 1).view(len(mask), n_heads, *mask.shape[1:])


def both_real(real: Tensor) -> Tensor:
    """Hide padding's queries as well as its keys: the mask AND its transpose.

    Shapes:
        real: (batch, pos); returns: (batch, query_pos, key_pos)
    """
    return real[:, :, None] & real[:, None, :]


def encoder_mask(token_ids: Tensor, config: ModelConfig) -> tuple[Tensor | None, float]:
    """Return an encoder's own mask, as config.padding_mask has it, and the score of what it hides.

    Shapes:
        token_ids: (batch, pos)
        returns: broadcastable to (batch, head, query_pos, key_pos), or None where there is no padding to hide
    """
    hidden = padding_mask(token_ids, config.padding)
    if hidden is None or config.padding_mask == "keys":
        return hidden, HIDDEN
    square = both_real(hidden[:, 0, 0])  # (batch, query_pos, key_pos)
    mixed = config.padding_mask == "mixed_heads"
    return repeated_by_head(square, config.n_heads) if mixed else square[:, None], LARGE_HIDDEN


def causal_mask(query_pos: int, key_pos: int | None = None, *, device: torch.device | str = "cpu") -> Tensor:
    """Hide what comes later: position i attends to 0 ... i.

    With more keys than queries (a cache), the queries are the last positions.

    Shapes:
        returns: (query_pos, key_pos)
    """
    key_pos = query_pos if key_pos is None else key_pos
    return torch.ones(query_pos, key_pos, dtype=torch.bool, device=device).tril(key_pos - query_pos)


def window_mask(
    query_pos: int, key_pos: int | None = None, window: int = 1, *, device: torch.device | str = "cpu"
) -> Tensor:
    """Hide what is `window` positions away or more, on both sides (Beltagy et al. 2020, section 3.1).

    With more keys than queries (a cache), the queries are the last positions.

    Shapes:
        returns: (query_pos, key_pos)
    """
    key_pos = query_pos if key_pos is None else key_pos
    near = torch.ones(query_pos, key_pos, dtype=torch.bool, device=device)
    return near.tril(key_pos - query_pos + window - 1).triu(key_pos - query_pos - window + 1)


def combined_mask(*masks: Tensor | None) -> Tensor | None:
    """Attend only where every mask allows it; None allows everything.

    Shapes:
        masks: each broadcastable to (batch, head, query_pos, key_pos)
        returns: their broadcast, or None where all are None
    """
    combined = None
    for mask in masks:
        if mask is not None:
            combined = mask if combined is None else combined & mask
    return combined


def additive_mask(mask: Tensor, dtype: torch.dtype = torch.float32, *, hidden_score: float = HIDDEN) -> Tensor:
    """Write a boolean mask in the form that is added to scores: 0 where it may attend, minus infinity elsewhere.

    Shapes:
        mask: any; returns: the same

    Args:
        hidden_score: in place of minus infinity; beside a number as large as LARGE_HIDDEN no score is left.
    """
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, hidden_score)


@lru_cache(maxsize=8)
def additive_causal_mask(query_pos: int, key_pos: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the causal mask in additive form, made once a size and shared: for reading only.

    Shapes:
        returns: (query_pos, key_pos)
    """
    with torch.inference_mode(False):
        return additive_mask(causal_mask(query_pos, key_pos, device=device), dtype)


def check_mask(mask: Tensor, scores_shape: tuple[int, int, int, int]) -> None:
    """Raise ValueError unless the mask is boolean and broadcasts to (batch, head, query_pos, key_pos)."""
    if mask.dtype != torch.bool:
        raise ValueError(f"mask has dtype {mask.dtype}; it must be torch.bool, True where a query may attend")
    try:
        fits = torch.broadcast_shapes(mask.shape, scores_shape) == torch.Size(scores_shape)
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; "
            f"it must broadcast to (batch, head, query_pos, key_pos) = {tuple(scores_shape)}"
        )
