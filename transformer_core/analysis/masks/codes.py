"""A mask in a word: presets by name and number, a painted one bit by bit, so that a link can carry it.

Causal: Vaswani et al. 2017, section 3.2.3; window: Beltagy et al. 2020, section 3.1; prefix: Raffel et al. 2020,
section 3.2.1.
"""

import base64
import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from transformer_core.layers.masks import causal_mask

MOST_PAINTED = 64
PAINTED = re.compile(r"([0-9]{1,3})\.([A-Za-z0-9_-]*)")
NUMBERED = re.compile(r"(window|prefix)\.([0-9]{1,4})")


def painted_code(mask: Tensor | np.ndarray) -> str:
    """Write a square mask as "SIZE.BITS": row after row, the first cell in the highest bit, base64url, no padding.

    Shapes:
        mask: (query_pos, key_pos), boolean

    Raises:
        ValueError: it is not square, or larger than 64.
    """
    size = len(mask)
    if tuple(mask.shape) != (size, size) or not 1 <= size <= MOST_PAINTED:
        raise ValueError(f"mask has shape {tuple(mask.shape)}; it must be square, from 1 to {MOST_PAINTED} a side")
    bits = "".join("1" if cell else "0" for cell in mask.flatten().tolist())
    raw = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")
    return f"{size}.{base64.urlsafe_b64encode(raw).decode().rstrip('=')}"


def painted_mask(code: str) -> Tensor:
    """Read what painted_code wrote; for a person's or a link's text.

    Shapes:
        returns: (query_pos, key_pos), boolean

    Raises:
        ValueError: what is wrong with the code.
    """
    found = PAINTED.fullmatch(code)
    size = int(found[1]) if found else 0
    if not found or not 1 <= size <= MOST_PAINTED:
        raise ValueError(f"mask={code[:40]!r} must be SIZE.BITS with a size from 1 to {MOST_PAINTED}")
    needed = -(-size * size // 8)
    letters = -(-needed * 8 // 6)
    if len(found[2]) != letters:
        raise ValueError(f"mask of size {size} has {len(found[2])} letters of bits; it must have {letters}")
    raw = base64.urlsafe_b64decode(found[2] + "=" * (-letters % 4))
    bits = f"{int.from_bytes(raw, 'big'):0{needed * 8}b}"
    return torch.tensor([bit == "1" for bit in bits[: size * size]]).view(size, size)


def mask_from_code(code: str, token_ids: Sequence[int], padding: int) -> Tensor:
    """Return the mask that a code names, for these tokens.

    Shapes:
        returns: (query_pos, key_pos), boolean, True = may attend

    Args:
        code: "everything", "causal", "padding" (hide the padding), "window.N" (at most N positions away), "prefix.N"
            (causal, but all may attend to the first N), or a painted one, "SIZE.BITS".
        padding: what stands for it among the ids.

    Raises:
        ValueError: there is no such mask, or a painted one is of another size.
    """
    size = len(token_ids)
    positions = torch.arange(size)
    named = NUMBERED.fullmatch(code)
    if code == "everything":
        return torch.ones(size, size, dtype=torch.bool)
    if code == "causal":
        return causal_mask(size)
    if code == "padding":
        return torch.tensor([token_id != padding for token_id in token_ids]).expand(size, size).clone()
    if named and named[1] == "window":
        return (positions[:, None] - positions).abs() <= int(named[2])
    if named:
        return causal_mask(size) | (positions < int(named[2]))
    painted = painted_mask(code)
    if len(painted) != size:
        raise ValueError(f"mask of size {len(painted)} was painted for {len(painted)} tokens; there are {size}")
    return painted
