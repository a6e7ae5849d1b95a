"""A SentencePiece model is read by our own reader: cut by its scores, numbered by the vocabulary of both sides."""

import json
import struct
from pathlib import Path

import pytest

from tests.helpers.bundles import refused
from tests.helpers.open_checkpoints import padded, written
from transformer_core.bundle import Bundle, save
from transformer_core.bundle_files import BundleError
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints.sentencepiece import fields, pipeline_of, read_pieces
from transformer_core.text import Tokenizer

SCORES = {"▁": -3.0, "▁gl": -4.0, "ass": -4.0, "▁glass": -5.0, "es": -3.5, "g": -6.0, "l": -6.0, "a": -6.0, "s": -6.0}
VOCABULARY = {"</s>": 0, "<unk>": 1, "▁verre": 2} | {piece: 3 + place for place, piece in enumerate(SCORES)}
VOCABULARY |= {">>fr<<": len(VOCABULARY), "你": len(VOCABULARY) + 1, "<pad>": len(VOCABULARY) + 2}


def varint(value: int) -> bytes:
    """Write a whole number as protocol buffers do."""
    low = value & 0x7F
    return bytes([low]) if value < 0x80 else bytes([low | 0x80]) + varint(value >> 7)


def field(number: int, value: int | bytes) -> bytes:
    """Write one field."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def model_file(*, kind: int = 1, special: int = 3) -> bytes:
    """Write a model with the pieces of SCORES, three control symbols before them."""
    entries = [("<unk>", 0.0, 2), ("<s>", 0.0, special), ("</s>", 0.0, 3), *((p, s, 1) for p, s in SCORES.items())]
    pieces = [
        field(1, field(1, piece.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + field(3, type_))
        for piece, score, type_ in entries
    ]
    return b"".join(pieces) + field(2, field(3, kind) + field(300, 1)) + field(3, field(1, b"identity"))


def tokenizer_of() -> Tokenizer:
    """Return the tokenizer of that model."""
    pieces = read_pieces(model_file(), "x/source.spm")
    return Tokenizer.from_json(pipeline_of(pieces, VOCABULARY, "x/vocab.json").to_str())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("glass", "▁glass </s>"),
        ("  glass   glasses ", "▁glass ▁glass es </s>"),
        ("lass", "▁ l ass </s>"),
        ("verre", "▁verre </s>"),
        ("a你", "▁ a 你 </s>"),
        (">>fr<< glass", ">>fr<< ▁glass </s>"),
        ("", "</s>"),
        ("gla", "▁gl a </s>"),
    ],
)
def test_the_likeliest_cut_is_taken(text: str, expected: str) -> None:
    assert " ".join(tokenizer_of().encode(text).tokens) == expected


def test_what_no_piece_knows_is_unknown_and_named() -> None:
    tokenizer = tokenizer_of()
    encoding = tokenizer.encode("glass 龘😀")
    assert encoding.labels == ("␣glass", "␣", "龘😀", "</s>")
    assert encoding.ids[2] == tokenizer.unk_id == 1
    assert (tokenizer.pad_id, tokenizer.eos_id, tokenizer.decode(encoding.ids)) == (VOCABULARY["<pad>"], 0, "glass ")
    assert tokenizer.decode(tokenizer.encode("glasses glass").ids) == "glasses glass"


def test_a_marian_with_its_pieces_reads_and_begins_with_padding(tmp_path: Path) -> None:
    size = len(VOCABULARY)
    pad = {"pad_token_id": size - 1, "decoder_start_token_id": size - 1}
    written("MarianMTModel", tmp_path / "marian", vocab_size=size, **pad)
    (tmp_path / "marian" / "tokenizer.json").unlink()
    (tmp_path / "marian" / "source.spm").write_bytes(model_file())
    (tmp_path / "marian" / "vocab.json").write_text(json.dumps(VOCABULARY), encoding="utf-8")
    bundle = load(tmp_path / "marian", device="cpu")
    assert bundle.tokenizer.encode("glasses").tokens == ("▁glass", "es", "</s>")
    assert bundle.tokenizer.bos_id == size - 1
    save(bundle, tmp_path / "ours")
    again = load(tmp_path / "ours", device="cpu")
    assert isinstance(again, Bundle)
    assert again.tokenizer.bos_id == size - 1
    ids = padded(size - 1) % size
    assert again.model(ids, ids).equal(bundle.model(ids, ids))
    (tmp_path / "marian" / "source.spm").unlink()
    refused(tmp_path / "marian", "supported: tokenizer.json or source.spm and vocab.json")


DAMAGED = {
    "cut off": (model_file()[:-3], "is no SentencePiece model: a field is cut off"),
    "a text": (b"hello, this is text", "is no SentencePiece model"),
    "an endless number": (b"\xff" * 30, "is no SentencePiece model: a number has more than ten bytes"),
    "empty": (b"", "must be a unigram model of SentencePiece"),
    "another model": (model_file(kind=2), "must be a unigram model of SentencePiece; no other is supported"),
    "pieces of a user": (model_file(special=4), "has pieces that its user defined, which are not supported"),
    "a number for a piece": (field(1, 7), "is no SentencePiece model: a number stands where bytes must"),
    "a piece without a text": (field(1, field(3, 1)), "is no SentencePiece model"),
}


@pytest.mark.parametrize(("data", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_model_is_told(data: bytes, message: str) -> None:
    with pytest.raises(BundleError) as caught:
        read_pieces(data, "x/source.spm")
    assert str(caught.value).startswith("x/source.spm")
    assert message in str(caught.value)


def test_a_vocabulary_that_does_not_fit_is_told() -> None:
    pieces = read_pieces(model_file(), "x/source.spm")
    with pytest.raises(BundleError, match=r"must number its entries 0, 1, \.\.\. without a gap$"):
        pipeline_of(pieces, VOCABULARY | {"far": 99}, "x/vocab.json")
    with pytest.raises(BundleError, match=r"lacks <pad>, <unk>$"):
        pipeline_of(pieces, {"</s>": 0}, "x/vocab.json")


def test_every_wire_type_is_stepped_over() -> None:
    data = field(1, 300) + varint(2 << 3 | 1) + bytes(8) + varint(3 << 3 | 5) + bytes(4) + field(4, b"ab")
    assert list(fields(data)) == [(1, 300), (2, bytes(8)), (3, bytes(4)), (4, b"ab")]
    with pytest.raises(ValueError, match="wire type 3 is unknown"):
        list(fields(varint(1 << 3 | 3)))
