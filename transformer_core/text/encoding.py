"""Encoding: what a text became, token by token, with the way back to its characters and to its words.

Source: Devlin et al. 2019, figure 2 (token and segment ids of a packed pair) and appendix A.2 (a packed pair is cut to
fit); which of the two texts is cut first is our choice.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TypeVar

import tokenizers

from transformer_core.text.characters import visible
from transformer_core.text.lexicon import Lexicon

T = TypeVar("T")
# letters and digits, with apostrophes between them; each sign from CJK on is a word, as no blanks separate words there
WORD = re.compile(r"[^\W_\u2e80-\U0010ffff]+(?:['’][^\W_\u2e80-\U0010ffff]+)*")


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
        add_special: Whether the template added special tokens.

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
    add_special: bool = True

    def __post_init__(self) -> None:
        for name in ("tokens", "labels", "offsets", "segment_ids", "special", "unknown"):
            if len(getattr(self, name)) != len(self.ids):
                raise ValueError(f"len({name})={len(getattr(self, name))} must equal len(ids)={len(self.ids)}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def own(self) -> tuple[int, ...]:
        """Places of the tokens that stand for a piece of the source, a spelled out "[MASK]" among them."""
        return tuple(place for place, (_, end) in enumerate(self.offsets) if end)

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


def room_for_text(max_len: int, n_special: int, n_texts: int) -> int:
    """Return how many tokens of text fit beside the special tokens.

    Args:
        max_len: Number of tokens allowed in all.
        n_special: Number of tokens that the template adds.
        n_texts: 1, or 2 for a pair.

    Returns:
        max_len - n_special.

    Raises:
        ValueError: That is less than one token a text.
    """
    if max_len < n_special + n_texts:
        raise ValueError(
            f"max_len={max_len} must be at least {n_special + n_texts}: {n_special} special and {n_texts} others"
        )
    return max_len - n_special


def shares(room: int, n_first: int, n_second: int) -> tuple[int, int]:
    """Divide the room between two texts so that the longer one is cut first.

    Args:
        room: Number of tokens that fit.
        n_first: Tokens of the first text.
        n_second: Tokens of the second text.

    Returns:
        How many tokens of each to keep.
    """
    if n_first + n_second <= room:
        return n_first, n_second
    if n_first < n_second:
        first = min(n_first, room // 2)
        return first, room - first
    second = min(n_second, room // 2)
    return room - second, second


def assemble(
    raw: tokenizers.Encoding,
    text: str,
    pair: str | None,
    *,
    room: int | None,
    lexicon: Lexicon,
    special_ids: Set[int],
    unk_id: int | None,
) -> Encoding:
    """Turn an encoding of the `tokenizers` package into an Encoding.

    Args:
        raw: What the package returned for text and pair, not truncated.
        text: The source text.
        pair: The second source text, or None.
        room: Number of tokens of text to keep, or None for all.
        lexicon: The vocabulary's labels.
        special_ids: Ids of the special tokens.
        unk_id: Id of the unknown token, or None.

    Returns:
        The encoding, always with the special tokens of the template.
    """
    ids = raw.ids
    tokens = [lexicon.tokens[id_] or token for id_, token in zip(ids, raw.tokens, strict=True)]
    added = [mark == 1 for mark in raw.special_tokens_mask]
    offsets = [(0, 0) if extra else span for extra, span in zip(added, raw.offsets, strict=True)]
    segments = [0] * len(ids) if pair is None else _segments(raw)
    labels = lexicon.labels_of(ids)
    special = [extra or id_ in special_ids for extra, id_ in zip(added, ids, strict=True)]
    unknown = [False] * len(ids)
    for position in [place for place, id_ in enumerate(ids) if id_ == unk_id and not added[place]]:
        start, end = offsets[position]
        surface = (text if pair is None or segments[position] == 0 else pair)[start:end]
        if surface != tokens[position]:  # "[UNK]" spelled out in the text is the special token itself
            labels[position], special[position], unknown[position] = visible(surface or tokens[position]), False, True
    kept = _kept(raw, room)
    return Encoding(
        ids=_at(ids, kept),
        tokens=_at(tokens, kept),
        labels=_at(labels, kept),
        offsets=_at(offsets, kept),
        segment_ids=_at(segments, kept),
        special=_at(special, kept),
        unknown=_at(unknown, kept),
        text=text,
        pair=pair,
        truncated=len(ids) - len(kept),
    )


def _at(column: Sequence[T], positions: Sequence[int]) -> tuple[T, ...]:
    return tuple([column[position] for position in positions])


def _segments(raw: tokenizers.Encoding) -> list[int]:
    """Departure from RoBERTa: a pair's tokens are in segment 1 even where its template puts everything in segment 0."""
    return [
        min(type_id, 1) if sequence is None else sequence
        for type_id, sequence in zip(raw.type_ids, raw.sequence_ids, strict=True)
    ]


def ids_within(raw: tokenizers.Encoding, room: int | None) -> tuple[int, ...]:
    """Return the ids that assemble keeps."""
    return _at(raw.ids, _kept(raw, room))


def _kept(raw: tokenizers.Encoding, room: int | None) -> Sequence[int]:
    added = raw.special_tokens_mask
    if room is None or len(added) - sum(added) <= room:
        return range(len(added))
    content = [(place, sequence) for place, sequence in enumerate(raw.sequence_ids) if not added[place]]
    firsts = [place for place, sequence in content if sequence == 0]
    seconds = [place for place, sequence in content if sequence == 1]
    n_first, n_second = shares(room, len(firsts), len(seconds))
    dropped = {*firsts[n_first:], *seconds[n_second:]}
    return [position for position in range(len(raw.ids)) if position not in dropped]


@dataclass(frozen=True)
class Word:
    """A word or a punctuation mark of a text, and its tokens.

    Args:
        start, end: in characters of the text.
        places: positions of its tokens, in order.
        unknown: whether the vocabulary lacks a part of it.
    """

    start: int
    end: int
    places: tuple[int, ...]
    unknown: bool


def words_of(encoding: Encoding) -> tuple[Word, ...]:
    """Return the words of an encoding's first text, in order, without special tokens and blanks.

    Tokens that share a character, such as its bytes, are one word.
    """
    spans = [match.span() for match in WORD.finditer(encoding.text)]
    around = {place: span for span in spans for place in range(*span)}
    found: list[tuple[int, int, list[int]]] = []
    for place, (start, end) in enumerate(encoding.offsets):
        surface = encoding.text[start:end]
        if encoding.special[place] or encoding.segment_ids[place] or not surface.strip():
            continue
        start += len(surface) - len(surface.lstrip())
        end -= len(surface) - len(surface.rstrip())
        start, end = around.get(start, (start, end))
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]), [*found[-1][2], place])
        else:
            found.append((start, end, [place]))
    return tuple(
        Word(start, end, tuple(places), any(encoding.unknown[place] for place in places))
        for start, end, places in found
    )
