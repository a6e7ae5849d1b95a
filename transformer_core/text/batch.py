"""Batch: encodings of different lengths as one rectangle of ids, with a mask that distinguishes tokens from padding.

Source: Vaswani et al. 2017, section 5.1 (sentences are batched by approximate length).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.config import PADDED
from transformer_core.text.encoding import Encoding


@dataclass(frozen=True, eq=False)
class Batch:
    """Encodings as tensors.

    Args:
        token_ids: Token ids. # (batch, pos), long
        segment_ids: 0 or 1; 0 for padding. # (batch, pos), long
        mask: True for a token, False for padding. # (batch, pos), bool
        encodings: What the rows were made from.
    """

    token_ids: Tensor
    segment_ids: Tensor
    mask: Tensor
    encodings: tuple[Encoding, ...]

    def __len__(self) -> int:
        return len(self.encodings)


def make_batch(encodings: Sequence[Encoding], *, padding: int) -> Batch:
    """Pad encodings on the right to the length of the longest.

    Args:
        encodings: At least one encoding.
        padding: Id to pad with, usually the config's `padding`.

    Returns:
        The batch. # (batch, pos)

    Raises:
        ValueError: There are no encodings, or padding is no id and not PADDED.
    """
    if not encodings:
        raise ValueError(f"encodings={encodings!r} must hold at least one encoding")
    if padding < PADDED:
        raise ValueError(f"padding={padding} must be a token id, or {PADDED}")
    shape = (len(encodings), max(map(len, encodings)))
    token_ids = torch.full(shape, padding)  # (batch, pos)
    segment_ids = torch.zeros(shape, dtype=torch.long)  # (batch, pos)
    mask = torch.zeros(shape, dtype=torch.bool)  # (batch, pos)
    for row, encoding in enumerate(encodings):
        token_ids[row, : len(encoding)] = torch.tensor(encoding.ids, dtype=torch.long)
        segment_ids[row, : len(encoding)] = torch.tensor(encoding.segment_ids, dtype=torch.long)
        mask[row, : len(encoding)] = True
    return Batch(token_ids, segment_ids, mask, tuple(encodings))
