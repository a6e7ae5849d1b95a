"""Lexicon: what each vocabulary entry spells, in bytes and as a readable label.

Source: Radford et al. 2019, section 2.2 (byte-level BPE) with the byte alphabet of GPT-2's published encoder.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from transformer_core.text.characters import visible

CONTINUATION = "·"  # shown where a WordPiece continues a word: ·ing for ##ing
UNUSED = "<unused>"
FALLBACK_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: the bytes that print in Latin-1 stand for themselves, the others for characters from 256 on."""
    printing = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printing]
    return {chr(byte): byte for byte in printing} | {chr(256 + place): byte for place, byte in enumerate(others)}


BYTE_OF = _byte_alphabet()


@dataclass(frozen=True)
class Spelling:
    """How the entries of one vocabulary are written.

    Args:
        byte_level: Entries are written in GPT-2's byte alphabet.
        byte_fallback: Entries such as `<0xE4>` stand for one byte.
        metaspace: `▁` stands for a space, as in SentencePiece.
        continuation: Prefix of an entry that continues a word (`##`), or the empty text.
        word_end: Suffix of an entry that ends a word (`</w>`), or the empty text.
    """

    byte_level: bool = False
    byte_fallback: bool = False
    metaspace: bool = False
    continuation: str = ""
    word_end: str = ""

    def spell(self, token: str) -> bytes:
        """Return the UTF-8 bytes that a vocabulary entry stands for; not always whole characters.

        Args:
            token: The entry as the vocabulary writes it.

        Returns:
            Its bytes; a continuation begins with the mark `·`.
        """
        if self.word_end and token != self.word_end:
            token = token.removesuffix(self.word_end)
        if self.byte_level and all(char in BYTE_OF for char in token):
            return bytes(BYTE_OF[char] for char in token)
        if self.byte_fallback and (match := FALLBACK_BYTE.fullmatch(token)):
            return bytes.fromhex(match[1])
        if self.continuation and token.startswith(self.continuation) and token != self.continuation:
            token = CONTINUATION + token.removeprefix(self.continuation)
        return (token.replace("▁", " ") if self.metaspace else token).encode()


@dataclass(frozen=True)
class Lexicon:
    """The entries of a vocabulary, by id.

    Args:
        tokens: Each entry as the vocabulary writes it; None where an id has no entry.
        pieces: The bytes each entry stands for.
        labels: Each entry made readable, out of context.
        fragments: Ids of the entries that hold a part of a character.
    """

    tokens: tuple[str | None, ...]
    pieces: tuple[bytes, ...]
    labels: tuple[str, ...]
    fragments: frozenset[int]

    def labels_of(self, ids: Sequence[int]) -> list[str]:
        """Label the tokens of one sequence, each character that several tokens share by its part: `你 1/3`.

        Args:
            ids: Token ids, in the order of the text.

        Returns:
            One label a token.
        """
        labels: list[str] = []
        # A piece that is valid on its own begins and ends between characters, so only a run of fragments has a context.
        for broken, group in groupby(ids, self.fragments.__contains__):
            run = list(group)
            labels += label_pieces([self.pieces[id_] for id_ in run]) if broken else [self.labels[id_] for id_ in run]
        return labels

    def widened(self, size: int) -> "Lexicon":
        """Return the same entries and, up to `size` in all, unused ones."""
        more = max(0, size - len(self.tokens))
        unused = (None,) * more, (b"",) * more, (UNUSED,) * more
        return Lexicon(self.tokens + unused[0], self.pieces + unused[1], self.labels + unused[2], self.fragments)


def build_lexicon(vocabulary: Mapping[str, int], literal: Collection[int], spelling: Spelling) -> Lexicon:
    """Spell and label every entry of a vocabulary.

    Args:
        vocabulary: Entry to id.
        literal: Ids of the entries written as plain text whatever the spelling: special and added tokens.
        spelling: How the other entries are written.

    Returns:
        The lexicon, as long as the highest id plus one.
    """
    tokens: list[str | None] = [None] * (max(vocabulary.values(), default=-1) + 1)
    for token, id_ in vocabulary.items():
        tokens[id_] = token
    pieces = tuple(
        b"" if token is None else token.encode() if id_ in literal else spelling.spell(token)
        for id_, token in enumerate(tokens)
    )
    fragments = frozenset(id_ for id_, piece in enumerate(pieces) if not _is_whole(piece))
    labels = tuple(
        UNUSED if token is None else label_pieces([piece])[0] if id_ in fragments else visible(piece.decode())
        for id_, (token, piece) in enumerate(zip(tokens, pieces, strict=True))
    )
    return Lexicon(tuple(tokens), pieces, labels, fragments)


def label_pieces(pieces: Sequence[bytes]) -> list[str]:
    """Label consecutive pieces of UTF-8, whose boundaries may fall inside characters.

    Args:
        pieces: The pieces in order.

    Returns:
        One label a piece: whole characters as they are, a shared one with its part (`你 2/3`), and bytes that belong to
        no character in hexadecimal (`<E4 BD>`).
    """
    starts = list(accumulate(map(len, pieces), initial=0))
    parts: list[list[tuple[str, int, int]]] = [[] for _ in pieces]
    start = 0
    for char in b"".join(pieces).decode("utf-8", "surrogateescape"):
        end = start + (1 if _is_stray_byte(char) else len(char.encode()))
        first, last = bisect_right(starts, start) - 1, bisect_left(starts, end) - 1
        for place in range(first, last + 1):
            parts[place].append((char, place - first + 1, last - first + 1))
        start = end
    return [_label_parts(part) for part in parts]


def _label_parts(parts: Iterable[tuple[str, int, int]]) -> str:
    """Join (character, part, parts) triples: whole characters run on, everything else is set apart by spaces."""
    words = []
    for (stray, whole), group in groupby(parts, lambda part: (_is_stray_byte(part[0]), part[2] == 1)):
        chars = list(group)
        if stray:
            words.append("<" + " ".join(f"{ord(char) & 0xFF:02X}" for char, _, _ in chars) + ">")
        elif whole:
            words.append(visible("".join(char for char, _, _ in chars)))
        else:
            words += [f"{visible(char)} {part}/{total}" for char, part, total in chars]
    return " ".join(words) or visible("")


def _is_stray_byte(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"


def _is_whole(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True
