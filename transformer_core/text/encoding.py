"""Encoding: what a text became, token by token, with the way back to the characters it came from.
Source: Devlin et al. 2019, figure 2 (token and segment ids of a packed pair).
Read next: learning.py."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Encoding:
    """One text, or one pair of texts, as tokens.

    Every tuple has one entry a token, special tokens included. # (pos)

    Args:
        ids: Token ids.
        tokens: Entries as the vocabulary writes them.
        labels: The same made readable; an unknown token is labelled with the source text it stands for.
        offsets: (start, end) in characters of the source text; (0, 0) for special tokens that the template added.
        segment_ids: 0 for the text and its special tokens, 1 for the pair's.
        special: True for special tokens, whether the template added them or the text spells them out ("[MASK]").
        unknown: True where the vocabulary had no entry for the source text.
        text: The source text, unaltered.
        pair: The second source text, or None.
        truncated: Number of tokens dropped to satisfy max_len.

    Raises:
        ValueError: The tuples differ in length.
    """

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    segment_ids: tuple[int, ...]
    special: tuple[bool, ...]
    unknown: tuple[bool, ...]
    text: str
    pair: str | None = None
    truncated: int = 0

    def __post_init__(self) -> None:
        for name in ("tokens", "labels", "offsets", "segment_ids", "special", "unknown"):
            if len(getattr(self, name)) != len(self.ids):
                raise ValueError(f"len({name})={len(getattr(self, name))} must equal len(ids)={len(self.ids)}")

    def __len__(self) -> int:
        return len(self.ids)

    def surface(self, position: int) -> str:
        """Return the exact slice of the source that a token stands for.

        Args:
            position: Place of the token, from 0.

        Returns:
            The slice, of the pair where the token's segment is 1; empty for special tokens that the template added.

        Raises:
            ValueError: There is no such position.
        """
        if not 0 <= position < len(self):
            raise ValueError(f"position={position} must be in [0, {len(self)})")
        start, end = self.offsets[position]
        source = self.pair if self.segment_ids[position] and self.pair is not None else self.text
        return source[start:end]
