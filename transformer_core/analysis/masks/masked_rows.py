"""A row that may attend to nothing: three conventions, each computed on that very row.

A softmax over no keys has no value. scaled_dot_product_attention and this project take weights of 0; a softmax over
minus infinities alone gives NaN; a fill of -1e9, as often printed, gives a uniform average over what was to be hidden.
Vaswani et al. 2017, section 3.2.3. Read next: batches.py.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.masks.codes import mask_of
from transformer_core.analysis.masks.masking import HIDDEN, padded_encoding, read_under
from transformer_core.analysis.reading import scope_of
from transformer_core.bundle import Bundle
from transformer_core.layers.attention import masked_softmax

LARGE = -1e9


@dataclass(frozen=True, eq=False)
class MaskedRow:
    """One query's weights and the verdict under each convention.

    Shapes:
        zeros, torch_attention, softmax, large: (key_pos,)

    Args:
        zeros: ours.
        torch_attention: of torch's scaled_dot_product_attention.
        softmax: of torch's softmax over minus infinities.
        large: of torch's softmax where hidden scores are -1e9.
        verdict_zeros, verdict_softmax, verdict_large: the probability of each outcome where every wholly masked row of
            the mask follows that convention.
    """

    zeros: np.ndarray
    torch_attention: np.ndarray
    softmax: np.ndarray
    large: np.ndarray
    verdict_zeros: tuple[float, ...]
    verdict_softmax: tuple[float, ...]
    verdict_large: tuple[float, ...]


def masked_row(
    *,
    bundle: Bundle,
    text: str,
    n_tokens: int,
    pads: int,
    mask: str,
    layer: int,
    head: int,
    row: int,
    everywhere: bool,
) -> MaskedRow:
    """Compute a row's weights under each convention; arguments as of masked_head.

    Raises:
        ValueError: as masked_head, or the row may attend to something.
    """
    encoding = padded_encoding(bundle, text, n_tokens=n_tokens, pads=pads)
    allowed = mask_of(mask, encoding.ids, bundle.config.pad_id)
    empty = ~allowed.any(1)  # (query_pos,)
    if not 0 <= row < len(empty) or not empty[row]:
        raise ValueError(f"row={row} must be a row that is wholly masked, one of {empty.nonzero().flatten().tolist()}")
    where = None if everywhere else layer
    scope = scope_of(bundle, f"layer{layer}.self_attention")
    zeros, trace = read_under(bundle, encoding, allowed, layer=where, sites=(f"{scope}.scores",))
    scores = trace[f"{scope}.scores"][:1, head : head + 1, row : row + 1].float().cpu()  # (1, 1, 1, key_pos)
    hidden = scores.masked_fill(~allowed[row], HIDDEN)

    def as_softmax_has_it(weights: Tensor) -> Tensor:
        weights[:, :, empty.to(weights.device)] = float("nan")
        return weights

    def as_large_has_it(masked_scores: Tensor) -> Tensor:
        return masked_scores.clamp(min=LARGE)

    there = "*" if everywhere else scope_of(bundle, f"layer{layer}.*")
    verdicts = [
        read_under(bundle, encoding, allowed, layer=where, edits={f"{there}.{leaf}": edit})[0]
        for leaf, edit in (("weights", as_softmax_has_it), ("masked_scores", as_large_has_it))
    ]
    return MaskedRow(
        masked_softmax(hidden).flatten().numpy(),
        torch_weights(scores, allowed[row]).numpy(),
        hidden.softmax(-1).flatten().numpy(),
        scores.masked_fill(~allowed[row], LARGE).softmax(-1).flatten().numpy(),
        zeros,
        *verdicts,
    )


def torch_weights(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the weights that scaled_dot_product_attention gives to scores, read off by values that are unit vectors.

    Shapes:
        scores: (1, 1, 1, key_pos); allowed: (key_pos,), boolean; returns: (key_pos,)
    """
    size = scores.shape[-1]
    unit = torch.eye(size)[None, None]  # (1, 1, key_pos, key_pos)
    return F.scaled_dot_product_attention(scores, unit, unit, attn_mask=allowed[None, None, None], scale=1.0).flatten()
