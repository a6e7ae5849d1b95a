"""Cache: keys and values that a decoder has computed, kept so that the next word costs one position and not all.

Keys and values of a position never change once later positions are hidden (Shazeer 2019, section 2.4, calls this
incremental decoding); those of the encoder's memory never change at all.
Read next: transformer_core/layers/attention.py
"""

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor

MOST_TAKEN_BACK = 64  # positions that a window's cache keeps beyond the window, for words that are not kept after all


class KeptPair:
    """Keys and values of one attention, of every position that it has read.

    Shapes:
        key, value: (batch, kv_head, key_pos, d_head), or None before the first position

    Args:
        grows: self-attention adds what each pass brings; cross-attention keeps what the first pass computed.
        forgotten: how many positions before these are kept no more, as they lie outside the window.
    """

    __slots__ = ("forgotten", "grows", "key", "value")

    def __init__(
        self, key: Tensor | None = None, value: Tensor | None = None, *, grows: bool, forgotten: int = 0
    ) -> None:
        self.key, self.value, self.grows, self.forgotten = key, value, grows, forgotten

    @property
    def length(self) -> int:
        """How many positions were read."""
        return self.forgotten + (0 if self.key is None else self.key.shape[2])

    def whole(self) -> tuple[Tensor, Tensor] | None:
        """Return keys and values where nothing need be computed any more, else None."""
        return None if self.grows or self.key is None or self.value is None else (self.key, self.value)

    def joined(self, key: Tensor, value: Tensor, window: int | None = None) -> tuple[Tensor, Tensor]:
        """Add keys and values of the positions after those that are kept; return all.

        Args:
            window: how many positions a query sees; of those before, so many are kept, and some that may be taken back.
        """
        if self.key is not None and self.value is not None:
            key, value = torch.cat((self.key, key), 2), torch.cat((self.value, value), 2)
        spare = 0 if window is None else max(0, key.shape[2] - window - MOST_TAKEN_BACK)
        self.forgotten += spare
        self.key, self.value = key[:, :, spare:], value[:, :, spare:]
        return key, value

    def picked(self, rows: Tensor | None) -> "KeptPair":
        """Return another pair with these rows of the batch, or with all of them."""
        if rows is None or self.key is None or self.value is None:
            return KeptPair(self.key, self.value, grows=self.grows, forgotten=self.forgotten)
        key, value = self.key.index_select(0, rows), self.value.index_select(0, rows)
        return KeptPair(key, value, grows=self.grows, forgotten=self.forgotten)

    def truncated(self, length: int) -> "KeptPair":
        """Return another pair with the first positions alone, where it grows; the memory stays whole.

        Raises:
            ValueError: more than MOST_TAKEN_BACK positions are taken back where a window has forgotten some.
        """
        if not self.grows or self.key is None or self.value is None:
            return KeptPair(self.key, self.value, grows=self.grows)
        if self.forgotten and self.length - length > MOST_TAKEN_BACK:
            raise ValueError(f"length={length} must be at least {self.length - MOST_TAKEN_BACK}: the rest is forgotten")
        kept = length - self.forgotten
        return KeptPair(self.key[:, :, :kept], self.value[:, :, :kept], grows=True, forgotten=self.forgotten)


class LayerCache:
    """What one block keeps; a block without cross-attention leaves the second pair empty."""

    __slots__ = ("cross_attention", "self_attention")

    def __init__(self) -> None:
        self.self_attention, self.cross_attention = KeptPair(grows=True), KeptPair(grows=False)


class KeyValueCache:
    """What a decoder keeps from pass to pass; a pass adds to it, and never changes a tensor that is in it.

    Hand it to Gpt.forward or Translation.decode with the tokens that come next: the logits are those of the whole
    sequence read at once. Of the probe's sites, `key` and `value` then hold what this pass computed: the new positions,
    and in cross-attention, where nothing is computed after the first pass, nothing.

    Args:
        n_layers: blocks of the decoder.
    """

    def __init__(self, n_layers: int) -> None:
        self.layers = [LayerCache() for _ in range(n_layers)]
        self.token_ids: Tensor | None = None  # (batch, pos)

    @property
    def length(self) -> int:
        """How many positions were read."""
        return 0 if self.token_ids is None else self.token_ids.shape[1]

    def read(self, token_ids: Tensor) -> Tensor:
        """Add the next tokens (batch, pos); return all that were read, (batch, key_pos)."""
        self.token_ids = token_ids if self.token_ids is None else torch.cat((self.token_ids, token_ids), 1)
        return self.token_ids

    def picked(self, rows: Tensor | None = None) -> Self:
        """Return another cache with these rows of the batch, in this order, or with all of them.

        Shapes:
            rows: (new_batch,); a row may be picked more than once
        """
        other = self._with(lambda pair: pair.picked(rows))
        if self.token_ids is not None:
            other.token_ids = self.token_ids if rows is None else self.token_ids.index_select(0, rows)
        return other

    def truncated(self, length: int) -> Self:
        """Return another cache, as it was after its first positions."""
        other = self._with(lambda pair: pair.truncated(length))
        other.token_ids = None if self.token_ids is None else self.token_ids[:, :length]
        return other

    def _with(self, change: Callable[[KeptPair], KeptPair]) -> Self:
        other = type(self)(len(self.layers))
        for ours, theirs in zip(self.layers, other.layers, strict=True):
            theirs.self_attention = change(ours.self_attention)
            theirs.cross_attention = change(ours.cross_attention)
        return other
