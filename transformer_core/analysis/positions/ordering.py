"""Order taken away: position vectors shuffled or removed in a trained model, through the probe, whatever its scheme.

Vaswani et al. 2017, section 3.5; Su et al. 2021 (rotary); Press et al. 2022 (ALiBi). Read next: order_worth.py.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from transformer_core.layers.positions import rotate
from transformer_core.probe import Edit

TREATMENTS = ("kept", "positions_shuffled", "positions_removed", "tokens_shuffled")


def turned_back(x: Tensor) -> Tensor:
    """Undo `rotate`: turn each pair of coordinates by minus its position's angle.

    Shapes:
        x: (batch, head, pos, d_head); returns: the same
    """
    mirror = torch.ones(x.shape[-1], device=x.device)
    mirror[1::2] = -1.0
    return rotate(x * mirror) * mirror


def shuffled_order(special: Sequence[bool], seed: int) -> Tensor:
    """Draw which place's position each token shall get; special tokens keep their own.

    Shapes:
        returns: (pos,), a permutation
    """
    own = torch.tensor([place for place, is_special in enumerate(special) if not is_special], dtype=torch.long)
    order = torch.arange(len(special))
    order[own] = own[torch.randperm(len(own), generator=torch.Generator().manual_seed(seed))]
    return order


def order_edits(scheme: str, order: Tensor | None) -> Mapping[str, Edit]:
    """Return the edits after which token i is told that it stands at place order[i], or with None at no place.

    Vectors that are added are permuted, or zero. Rotary queries and keys are turned back and then by their new
    places' angles; ALiBi's penalties take their new places' distances.

    Args:
        scheme: positions of the model's config.
        order: (pos,), a permutation; None takes all positions away.
    """
    back = None if order is None else order.argsort()

    def vectors(x: Tensor) -> Tensor:  # (pos, d_model)
        return torch.zeros_like(x) if order is None else x[order]

    def turns(x: Tensor) -> Tensor:  # (batch, head, pos, d_head)
        plain = turned_back(x)
        return plain if order is None else rotate(plain[:, :, back])[:, :, order]

    def penalties(x: Tensor) -> Tensor:  # (head, query_pos, key_pos)
        return torch.zeros_like(x) if order is None else x[:, order][:, :, order]

    if scheme == "none":
        return {}
    if scheme == "rotary":
        return {"*.rotated_query": turns, "*.rotated_key": turns}
    if scheme == "alibi":
        return {"*.position_bias": penalties}
    return {"*.position_embedding": vectors}
