"""Our tokenizer gives the ids that theirs gives, from every kind of file."""

import json
import struct
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from tests.helpers.bundles import refused
from tests.helpers.open_checkpoints import (
    PIECES,
    TEXTS,
    byte_files,
    change_settings,
    packed,
    padded,
    pieces_pipeline,
    written,
)
from transformer_core.analysis.translation.teacher_forcing import forced_target
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints import check_against_reference, save_hf
from transformer_core.open_checkpoints.sentencepiece import fields, pipeline_of, read_pieces
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer, TokenizerError
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.user_models.store import unpack

BYTES = 300


def theirs_of(folder: Path):
    """Return their quick tokenizer of a folder."""
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def same_ids(folder: Path, *, pairs: bool = True) -> None:
    """Assert equal ids of every text, alone and in pairs, and of the segments where theirs have them."""
    ours, theirs = load(folder, device="cpu").tokenizer, theirs_of(folder)
    for text in TEXTS:
        assert list(ours.encode(text).ids) == theirs(text)["input_ids"], text
    for first, second in pairwise(TEXTS) if pairs else ():
        found, expected = ours.encode(first, second), theirs(first, second)
        assert list(found.ids) == expected["input_ids"]
        assert list(found.segment_ids) == expected.get("token_type_ids", list(found.segment_ids))


def manners(folder: Path, **values) -> None:
    """Write tokenizer_config.json."""
    (folder / "tokenizer_config.json").write_text(json.dumps(values), encoding="utf-8")


@pytest.mark.parametrize("lowercase", [True, False, None])
def test_vocab_txt_alone(lowercase: bool | None, tmp_path: Path) -> None:
    written("BertModel", tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    if lowercase is not None:
        manners(tmp_path, tokenizer_class="BertTokenizer", do_lower_case=lowercase)
    same_ids(tmp_path)
    tokenizer = load(tmp_path, device="cpu").tokenizer
    assert (tokenizer.kind, tokenizer.mask_id, tokenizer.pad_id) == ("wordpiece", 4, 0)
    assert ("café" in tokenizer.encode("CAFÉ café").tokens) == (lowercase is False)


def test_tokenizer_json_of_bert(tmp_path: Path) -> None:
    written("DistilBertModel", tmp_path)
    same_ids(tmp_path)


BERT_FLAGS = (
    {},
    {"tokenizer_class": "BertTokenizer", "do_lower_case": False},
    {"tokenizer_class": "BertTokenizerFast", "strip_accents": False},
    {"tokenizer_class": "DistilBertTokenizer", "tokenize_chinese_chars": False, "strip_accents": True},
    {"tokenizer_class": "BertTokenizer", "mask_token": "glass", "pad_token": "!"},
    {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False},
)


@pytest.mark.parametrize("flags", BERT_FLAGS)
def test_what_stands_beside_tokenizer_json_is_read_as_its_class_reads_it(flags: dict, tmp_path: Path) -> None:
    written("BertModel", tmp_path)
    pipeline = pieces_pipeline()
    pipeline.normalizer = normalizers.Lowercase()  # the class has one of its own
    pipeline.post_processor = processors.ByteLevel()  # which adds nothing
    pipeline.save(str(tmp_path / "tokenizer.json"))
    if flags:
        manners(tmp_path, **flags)
    same_ids(tmp_path)
    bundle = load(tmp_path, device="cpu")
    if "mask_token" in flags:
        assert bundle.tokenizer.mask_id == PIECES.index("glass")
    trust = check_against_reference(bundle)
    assert trust.n_texts >= 100
    assert trust.other_ids is None


@pytest.mark.parametrize(
    ("architecture", "flags"),
    [
        ("RobertaForMaskedLM", {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True}),
        ("RobertaForMaskedLM", {}),
        ("GPT2LMHeadModel", {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}),
        ("GPT2LMHeadModel", {"tokenizer_class": "GPT2TokenizerFast", "add_bos_token": True, "bos_token": "<s>"}),
    ],
)
def test_bytes_in_tokenizer_json_are_read_as_their_class_reads_them(
    architecture: str, flags: dict, tmp_path: Path
) -> None:
    written(architecture, tmp_path, vocab_size=BYTES)
    byte_files(tmp_path, special=("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    pipeline = tokenizers.Tokenizer(models.BPE.from_file(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")))
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pipeline.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    pipeline.save(str(tmp_path / "tokenizer.json"))
    manners(tmp_path, **flags)
    same_ids(tmp_path, pairs=architecture != "GPT2LMHeadModel")


@pytest.mark.parametrize(("spaced", "begun"), [(False, False), (True, False), (False, True)])
def test_vocab_json_and_merges_of_gpt_2(spaced: bool, begun: bool, tmp_path: Path) -> None:
    written("GPT2LMHeadModel", tmp_path, vocab_size=BYTES)
    (tmp_path / "tokenizer.json").unlink()
    byte_files(tmp_path, special=("<|endoftext|>",))
    manners(tmp_path, tokenizer_class="GPT2Tokenizer", add_prefix_space=spaced, add_bos_token=begun)
    assert (load(tmp_path, device="cpu").tokenizer.encode("a").ids[0] == 0) is begun
    same_ids(tmp_path, pairs=False)
    tokenizer = load(tmp_path, device="cpu").tokenizer
    assert tokenizer.decode(tokenizer.encode(TEXTS[4]).ids).strip() == TEXTS[4]
    assert tokenizer.bos_id == tokenizer.eos_id == 0


def test_vocab_json_and_merges_of_roberta(tmp_path: Path) -> None:
    written("RobertaForMaskedLM", tmp_path, vocab_size=BYTES)
    (tmp_path / "tokenizer.json").unlink()
    byte_files(tmp_path, special=("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    manners(tmp_path, tokenizer_class="RobertaTokenizer")
    same_ids(tmp_path)
    tokenizer = load(tmp_path, device="cpu").tokenizer
    assert (tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id, tokenizer.mask_id) == (0, 1, 2, 4)
    mask = {"__type": "AddedToken", "content": "<mask>", "lstrip": True}
    manners(tmp_path, tokenizer_class="RobertaTokenizer", mask_token=mask)
    tokenizer = load(tmp_path, device="cpu").tokenizer
    assert tokenizer.encode("a <mask>").ids == (0, tokenizer.id_of("a"), 4, 2)


def test_tokens_that_were_added_later(tmp_path: Path) -> None:
    written("BertModel", tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    new = {str(len(PIECES)): {"content": "[NEW]", "special": True, "lstrip": False, "rstrip": False}}
    manners(tmp_path, tokenizer_class="BertTokenizer", added_tokens_decoder=new)
    assert load(tmp_path, device="cpu").tokenizer.encode("a [NEW]").ids == (2, 5, len(PIECES), 3)
    manners(tmp_path, added_tokens_decoder={"40": {"content": "[NEW]", "special": True}})
    with pytest.raises(BundleError, match="cannot have id 40: the vocabulary differs"):
        load(tmp_path)


def test_what_lies_beside_tokenizer_json_counts(tmp_path: Path) -> None:
    """The expected tokens are those of AutoTokenizer of transformers 5.23 on the same folders."""
    written("BertForMaskedLM", tmp_path)
    pipeline = pieces_pipeline()
    pipeline.post_processor = None
    pipeline.save(str(tmp_path / "tokenizer.json"))
    assert load(tmp_path, device="cpu").tokenizer.encode("A Café").tokens == ("[CLS]", "a", "cafe", "[SEP]")
    new = len(PIECES)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<ent>": new, "qovid": new + 1}))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"mask_token": "<MASKED>"}))
    manners(tmp_path, tokenizer_class="BertTokenizerFast", do_lower_case=False)
    same_ids(tmp_path)
    tokenizer = load(tmp_path, device="cpu").tokenizer
    assert tokenizer.encode("a <ent>qovid Café <MASKED>").ids == (2, 5, new, new + 1, 1, new + 2, 3)
    assert tokenizer.token_of(tokenizer.mask_id or 0) == "<MASKED>"
    manners(tmp_path, tokenizer_class="PreTrainedTokenizerFast", added_tokens_decoder={})
    assert load(tmp_path, device="cpu").tokenizer.encode("A Café <ent>").tokens == ("a", "cafe", *["[UNK]"] * 3)
    trust = check_against_reference(load(tmp_path, device="cpu"), "a glass")
    assert (trust.n_texts > 100, trust.other_ids) == (True, None)
    bundle = replace(load(tmp_path, device="cpu"), tokenizer=Tokenizer(pieces_pipeline()))
    other = check_against_reference(bundle, "a glass").other_ids
    assert other is not None
    assert (other.text, other.ours, other.theirs) == ("", ("[CLS]", "[SEP]"), ())
    manners(tmp_path, tokenizer_class="BertJapaneseTokenizer", word_tokenizer_type="mecab")
    refused(tmp_path, "tokenizer_class='BertJapaneseTokenizer' cannot be rebuilt here; supported: BertTokenizer, ")


@pytest.mark.parametrize("architecture", ["RobertaForMaskedLM", "GPT2LMHeadModel"])
def test_flags_of_byte_pairs_count_beside_tokenizer_json(architecture: str, tmp_path: Path) -> None:
    special = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>")
    written(architecture, tmp_path, vocab_size=BYTES)
    byte_files(tmp_path, special=special)
    family = architecture.removesuffix("ForMaskedLM").removesuffix("LMHeadModel")
    manners(tmp_path, tokenizer_class=f"{family}Tokenizer", add_prefix_space=True, pad_token="<pad>")
    (tmp_path / "tokenizer.json").unlink()
    whole = (
        load(tmp_path, device="cpu").tokenizer.to_json().replace('"add_prefix_space":true', '"add_prefix_space":false')
    )
    (tmp_path / "tokenizer.json").write_text(whole, encoding="utf-8")
    same_ids(tmp_path)
    tokenizer = load(tmp_path, device="cpu").tokenizer
    assert tokenizer.encode("a").ids == tokenizer.encode(" a").ids
    assert tokenizer.pad_id == 1


def test_special_tokens_without_end_are_refused_at_once(tmp_path: Path) -> None:
    written("BertModel", tmp_path)
    manners(tmp_path, **{f"a{number}_token": f"<{number}>" for number in range(9_000)})
    refused(tmp_path, "special tokens has 9,005 tokens, must have at most 8,192")


DAMAGED = {
    "no vocabulary at all": ({}, "has no vocabulary that can be read; supported: tokenizer.json or vocab.txt"),
    "no [CLS]": ({"vocab.txt": "[PAD]\n[UNK]\n[SEP]\na\n"}, "vocab.txt lacks '[CLS]', which begins or ends every text"),
    "not UTF-8": ({"vocab.txt": b"\xff\xfe\x00a"}, "vocab.txt must be UTF-8: byte 0 is not"),
    "no JSON": ({"tokenizer.json": "{"}, "text must be complete JSON"),
    "another's file": ({"vocab.json": '{"a": 0}', "merges.txt": ""}, "has no vocabulary that can be read"),
    "manners of a list": ({"vocab.txt": "a\n", "tokenizer_config.json": "[1]"}, "must hold an object; it holds a list"),
}


MERGED = {
    "three tokens": ({"merges.txt": "#version: 0.2\na b c\n"}, "merges.txt: 'a b c' must be two tokens and a blank"),
    "an unknown token": ({"merges.txt": "zz yy\n"}, "the vocabulary makes no tokenizer"),
    "a text for an id": ({"vocab.json": '{"a": "0"}'}, "vocab.json must give each token a whole number"),
    "an id past all bounds": ({"vocab.json": '{"a": 9999999}', "merges.txt": ""}, "must be at most"),
}


def test_more_tokens_than_rows_are_refused(tmp_path: Path) -> None:
    written("BertModel", tmp_path, vocab_size=8, pad_token_id=0)
    with pytest.raises(BundleError, match=f"the tokenizer has {len(PIECES)} tokens; the model reads 8"):
        load(tmp_path)
    change_settings(tmp_path, vocab_size=9)
    with pytest.raises(BundleError, match="has shape"):
        load(tmp_path)


def test_an_xlm_roberta_cuts_by_its_own_pieces_and_names_what_it_needs(tmp_path: Path) -> None:
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [*special, "▁", "▁glass", "▁A", "glass", "es", "caf", "é", "你好", "!", ",", *"AaGgLlSs", "<mask>"]
    pipeline = tokenizers.Tokenizer(models.Unigram([(piece, -float(k)) for k, piece in enumerate(pieces)], 3, False))
    pipeline.normalizer = normalizers.NFKC()
    pipeline.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    pipeline.decoder = decoders.Metaspace()
    pipeline.add_special_tokens([*special, tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    pipeline.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    written("XLMRobertaForMaskedLM", tmp_path, type_vocab_size=1)
    pipeline.save(str(tmp_path / "tokenizer.json"))
    bundle = load(tmp_path, device="cpu")
    assert (bundle.tokenizer.pad_id, bundle.tokenizer.mask_id) == (1, len(pieces) - 1)
    for text in TEXTS:
        assert list(bundle.tokenizer.encode(text).ids) == pipeline.encode(text).ids, text
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"x")
    refused(tmp_path, "has no vocabulary that can be read; supported: tokenizer.json")


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


def model_file(*, kind: int = 1, special: int = 3, without: tuple[str, ...] = ()) -> bytes:
    """Write a model with the pieces of SCORES but some, three control symbols before them."""
    entries = [
        ("<unk>", 0.0, 2),
        ("<s>", 0.0, special),
        ("</s>", 0.0, 3),
        *((p, s, 1) for p, s in SCORES.items() if p not in without),
    ]
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


def test_names_of_special_tokens_outlive_a_bundle_and_are_theirs_again(tmp_path: Path) -> None:
    written("BertForMaskedLM", tmp_path / "theirs")
    manners(tmp_path / "theirs", mask_token="glass", pad_token="es")
    bundle = load(tmp_path / "theirs", device="cpu")
    save(bundle, tmp_path / "ours")
    again = load(tmp_path / "ours", device="cpu")
    assert (again.tokenizer.mask_id, again.tokenizer.pad_id) == (bundle.tokenizer.mask_id, bundle.tokenizer.pad_id)
    assert again.tokenizer.token_of(again.tokenizer.mask_id or 0) == "glass"
    assert again.tokenizer.to_json() == bundle.tokenizer.to_json()
    save_hf(again, tmp_path / "back")
    assert theirs_of(tmp_path / "back").mask_token == "glass"
    with pytest.raises(TokenizerError, match="must list some of"):
        Tokenizer.from_json(bundle.tokenizer.to_json().replace('["[MASK]"]', '["[GAP]"]'))


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


def test_a_marians_target_is_cut_by_pieces_of_its_own(tmp_path: Path) -> None:
    size = len(VOCABULARY)
    written("MarianMTModel", tmp_path / "m", vocab_size=size, pad_token_id=size - 1, decoder_start_token_id=size - 1)
    (tmp_path / "m" / "tokenizer.json").unlink()
    (tmp_path / "m" / "source.spm").write_bytes(model_file())
    (tmp_path / "m" / "target.spm").write_bytes(model_file(without=("▁glass",)))
    (tmp_path / "m" / "vocab.json").write_text(json.dumps(VOCABULARY), encoding="utf-8")
    bundle = load(tmp_path / "m", device="cpu")
    assert bundle.tokenizer.encode("glass").tokens == ("▁glass", "</s>")
    cut = bundle.of_target.encode("glass")
    assert cut.tokens != ("▁glass", "</s>")
    forced = forced_target(prompt=Prompt(bundle, "glass", 16), target="glass")
    scores = bundle.model(
        torch.tensor([bundle.tokenizer.encode("glass").ids]), torch.tensor([[size - 1, *cut.ids[:-1]]])
    ).log_softmax(-1)
    expected = scores[0, torch.arange(len(cut.ids)), list(cut.ids)]
    np.testing.assert_allclose(forced.log_probs, expected, atol=1e-5)
    (tmp_path / "unpacked").mkdir()
    assert "target.spm" not in unpack(packed(tmp_path / "m"), tmp_path / "unpacked")
    with pytest.raises(BundleError, match="has a tokenizer for its target"):
        save(bundle, tmp_path / "ours")
    pieces_pipeline().save(str(tmp_path / "m" / "tokenizer.json"))  # which their MarianTokenizer passes over
    beside = load(tmp_path / "m", device="cpu")
    assert (beside.tokenizer.encode("glass").tokens, beside.of_target.encode("glass").tokens) == (
        ("▁glass", "</s>"),
        cut.tokens,
    )
    manners(tmp_path / "m", tokenizer_class="PreTrainedTokenizerFast")
    whole = load(tmp_path / "m", device="cpu")
    assert whole.target_tokenizer is None
    assert whole.tokenizer.encode("glass").tokens == ("[CLS]", "glass", "[SEP]")


DAMAGED_PIECES = {
    "cut off": (model_file()[:-3], "is no SentencePiece model: a field is cut off"),
    "a text": (b"hello, this is text", "is no SentencePiece model"),
    "an endless number": (b"\xff" * 30, "is no SentencePiece model: a number has more than ten bytes"),
    "empty": (b"", "must be a unigram model of SentencePiece"),
    "another model": (model_file(kind=2), "must be a unigram model of SentencePiece; no other is supported"),
    "pieces of a user": (model_file(special=4), "has pieces that its user defined, which are not supported"),
    "a number for a piece": (field(1, 7), "is no SentencePiece model: a number stands where bytes must"),
    "a piece without a text": (field(1, field(3, 1)), "is no SentencePiece model"),
}


@pytest.mark.parametrize(("data", "message"), DAMAGED_PIECES.values(), ids=DAMAGED_PIECES)
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


CASES = [("BertModel", *case) for case in DAMAGED.values()] + [("GPT2LMHeadModel", *case) for case in MERGED.values()]


@pytest.mark.parametrize(("architecture", "files", "message"), CASES, ids=[*DAMAGED, *MERGED])
def test_a_damaged_vocabulary_is_told(architecture: str, files: dict, message: str, tmp_path: Path) -> None:
    written(architecture, tmp_path, vocab_size=BYTES)
    (tmp_path / "tokenizer.json").unlink()
    if architecture.startswith("GPT2"):
        byte_files(tmp_path, special=("<|endoftext|>",))
    for name, text in files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BundleError) as caught:
        load(tmp_path)
    assert message in str(caught.value)
