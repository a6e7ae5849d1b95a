"""A SentencePiece model file, read with a protocol-buffer reader of our own into a pipeline of `tokenizers`.

Kudo 2018, section 3.2 (the unigram model); the file format of the SentencePiece project.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from transformer_core.untrusted.bundle_files import BundleError

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
NORMAL, USER_DEFINED, UNIGRAM = 1, 4, 1
FAR_BELOW = -1e5  # of pieces that only the target's side has; any cut of a source word beats one of them
END, UNKNOWN, PADDING, SPACE = "</s>", "<unk>", "<pad>", "▁"


@dataclass(frozen=True)
class Pieces:
    """What a SentencePiece model holds.

    Args:
        scores: log-probability of each piece.
        charsmap: its precompiled normalisation; empty where there is none.
    """

    scores: dict[str, float]
    charsmap: bytes


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("a number has more than ten bytes")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protocol-buffer message in order: number, and a whole number or bytes.

    Raises:
        ValueError: the message is damaged.
        IndexError: it ends too early.
    """
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        if tag & 7 == VARINT:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        if tag & 7 == LENGTH:
            size, place = _varint(data, place)
        elif tag & 7 in (EIGHT_BYTES, FOUR_BYTES):
            size = 8 if tag & 7 == EIGHT_BYTES else 4
        else:
            raise ValueError(f"wire type {tag & 7} is unknown")
        if place + size > len(data):
            raise IndexError("a field is cut off")
        yield tag >> 3, data[place : place + size]
        place += size


def _message(value: int | bytes | None) -> dict[int, int | bytes]:
    return {} if value is None else dict(fields(_bytes(value)))


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where bytes must")
    return value


def read_pieces(data: bytes, where: str) -> Pieces:
    """Read a model file.

    Raises:
        BundleError: it is damaged, or no unigram model.
    """
    scores: dict[str, float] = {}
    parts: dict[int, int | bytes] = {}
    try:
        for number, value in fields(data):
            if number != 1:
                parts[number] = value
                continue
            piece = _message(value)
            kind = piece.get(3, NORMAL)
            if kind == USER_DEFINED:
                raise BundleError(f"{where} has pieces that its user defined, which are not supported")
            if kind == NORMAL:
                (score,) = struct.unpack("<f", _bytes(piece.get(2, bytes(4))))
                scores[_bytes(piece[1]).decode("utf-8")] = score
        trainer, normalizer = _message(parts.get(2)), _message(parts.get(3))
        charsmap = _bytes(normalizer.get(2, b""))
    except (IndexError, KeyError, ValueError, struct.error) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(f"{where} is no SentencePiece model: {error!s:.100}") from error
    if trainer.get(3, UNIGRAM) != UNIGRAM or not scores:
        raise BundleError(f"{where} must be a unigram model of SentencePiece; no other is supported")
    return Pieces(scores, charsmap)


def pipeline_of(pieces: Pieces, vocabulary: Mapping[str, int], where: str) -> tokenizers.Tokenizer:
    """Cut by the scores of the source's pieces, and number by the vocabulary that both sides share.

    Departure from theirs: where the source's model does not know a character, an entry that only the target's side has
    may stand for it and its neighbours; theirs looks up the run of unknown characters as a whole.

    Args:
        vocabulary: entry to id, the ids 0, 1, ... without a gap.

    Raises:
        BundleError: a gap, or no </s>, <unk> or <pad>.
    """
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise BundleError(f"{where} must number its entries 0, 1, ... without a gap")
    if missing := {END, UNKNOWN, PADDING} - vocabulary.keys():
        raise BundleError(f"{where} lacks {', '.join(sorted(missing))}")
    scored = [(entry, pieces.scores.get(entry, FAR_BELOW)) for entry in sorted(vocabulary, key=vocabulary.__getitem__)]
    pipeline = tokenizers.Tokenizer(models.Unigram(scored, vocabulary[UNKNOWN], False))
    steps = [normalizers.Precompiled(pieces.charsmap)] if pieces.charsmap else []
    pipeline.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()])
    pipeline.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    pipeline.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    end = (END, vocabulary[END])
    pipeline.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", pair=f"$A $B {END}", special_tokens=[end]
    )
    codes = [entry for entry in vocabulary if entry.startswith(">>") and entry.endswith("<<")]
    pipeline.add_special_tokens([AddedToken(token, special=True) for token in (END, UNKNOWN, PADDING, *codes)])
    return pipeline
