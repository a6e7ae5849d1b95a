"""Our tokenizer gives the ids that theirs gives, from tokenizer.json and from the older files."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from tests.helpers.bundles import refused
from tests.helpers.open_checkpoints import PIECES, TEXTS, byte_files, change_settings, written
from transformer_core.bundle_files import BundleError
from transformer_core.checkpoints import load

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


@pytest.mark.parametrize("spaced", [False, True])
def test_vocab_json_and_merges_of_gpt_2(spaced: bool, tmp_path: Path) -> None:
    written("GPT2LMHeadModel", tmp_path, vocab_size=BYTES)
    (tmp_path / "tokenizer.json").unlink()
    byte_files(tmp_path, special=("<|endoftext|>",))
    manners(tmp_path, tokenizer_class="GPT2Tokenizer", add_prefix_space=spaced)
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


DAMAGED = {
    "no vocabulary at all": ({}, "has no vocabulary that can be read; supported: tokenizer.json or vocab.txt"),
    "no [CLS]": ({"vocab.txt": "[PAD]\n[UNK]\n[SEP]\na\n"}, "vocab.txt lacks '[CLS]', which begins or ends every text"),
    "not UTF-8": ({"vocab.txt": b"\xff\xfe\x00a"}, "vocab.txt must be UTF-8: byte 0 is not"),
    "no JSON": ({"tokenizer.json": "{"}, "text must be complete JSON"),
    "another's file": ({"vocab.json": '{"a": 0}', "merges.txt": ""}, "has no vocabulary that can be read"),
    "manners of a list": ({"vocab.txt": "a\n", "tokenizer_config.json": "[1]"}, "must hold an object; it holds a list"),
}


@pytest.mark.parametrize(("files", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_vocabulary_is_told(files: dict, message: str, tmp_path: Path) -> None:
    written("BertModel", tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    for name, text in files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BundleError) as caught:
        load(tmp_path)
    assert message in str(caught.value)


MERGED = {
    "three tokens": ({"merges.txt": "#version: 0.2\na b c\n"}, "merges.txt: 'a b c' must be two tokens and a blank"),
    "an unknown token": ({"merges.txt": "zz yy\n"}, "the vocabulary makes no tokenizer"),
    "a text for an id": ({"vocab.json": '{"a": "0"}'}, "vocab.json must give each token a whole number"),
    "an id past all bounds": ({"vocab.json": '{"a": 9999999}', "merges.txt": ""}, "must be at most"),
}


@pytest.mark.parametrize(("files", "message"), MERGED.values(), ids=MERGED)
def test_a_damaged_list_of_merges_is_told(files: dict, message: str, tmp_path: Path) -> None:
    written("GPT2LMHeadModel", tmp_path, vocab_size=BYTES)
    (tmp_path / "tokenizer.json").unlink()
    byte_files(tmp_path, special=("<|endoftext|>",))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(BundleError) as caught:
        load(tmp_path)
    assert message in str(caught.value)


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
