"""A stranger's tokenizer.json: attacks are refused at once, what published models have is read."""

import base64
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from tests.helpers import ROOT
from transformer_core.text import Tokenizer, TokenizerError
from transformer_core.text.loading import MAX_BYTES
from transformer_core.untrusted.tokenizer_json import KNOWN_PATTERNS


@pytest.fixture(scope="module")
def saved(trained: dict[str, Tokenizer]) -> str:
    return trained["wordpiece"].to_json()


def changed(text: str, **parts: object) -> str:
    """Return a tokenizer.json with some of its parts replaced."""
    return json.dumps({**json.loads(text), **parts})


def test_saved_and_loaded_are_equal(tokenizer: Tokenizer, corpus: tuple[str, ...], tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.to_json() == tokenizer.to_json()
    assert loaded.kind == tokenizer.kind
    assert loaded.vocabulary() == tokenizer.vocabulary()
    assert (loaded.pad_id, loaded.unk_id, loaded.eos_id) == (0, 1, 6)
    for text in (*corpus, "龍 [MASK] 😀"):
        assert loaded.encode(text, "a pair") == tokenizer.encode(text, "a pair")


@given(end=st.integers(0, 10**4))
def test_truncated_files(saved: str, end: int) -> None:
    with pytest.raises(TokenizerError, match="text must be complete JSON"):
        Tokenizer.from_json(saved[: end % len(saved)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "text=None must be a str"),
        ("<html></html>", "text must be complete JSON"),
        ("[" * 100_000, "text must be complete JSON"),
        ("[]", "no tokenizer: must be an object with a 'model' object in it"),
        ('{"model": 3}', "no tokenizer: must be an object with a 'model' object in it"),
        ('{"tokenizer_class": "BertTokenizer"}', "no tokenizer: must be an object with a 'model' object in it"),
        ('{"model": {}}', "no tokenizer that can be loaded"),
    ],
)
def test_texts_that_are_no_tokenizer(text: str, message: str) -> None:
    with pytest.raises(TokenizerError, match=re.escape(message)):
        Tokenizer.from_json(text)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"model": {"type": "WordPiece", "vocab": {"a": 0}}}, "no tokenizer that can be loaded"),
        (
            {"model": {"type": "WordLevel", "vocab": {"a": 1}, "unk_token": "[UNK]"}, "added_tokens": []},
            "cannot encode",
        ),
        (
            {"model": {"type": "WordLevel", "vocab": {"a": 4 * 10**9}, "unk_token": "a"}},
            "id=4000000000 must be at most",
        ),
        ({"model": {"type": "WordLevel", "vocab": {"a": -1}, "unk_token": "a"}}, "no tokenizer that can be loaded"),
        ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}, "`b` out of vocabulary"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "no tokenizer that can be loaded"),
        (
            {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[z-a]"}, "behavior": "Isolated"}},
            "that can be loaded",
        ),
    ],
)
def test_broken_parts(saved: str, parts: dict, message: str) -> None:
    with pytest.raises(TokenizerError, match=re.escape(message)):
        Tokenizer.from_json(changed(saved, **parts))


def test_template_with_ids_of_no_entry(saved: str) -> None:
    with pytest.raises(TokenizerError, match="template uses id=99999, must be an id of its vocabulary"):
        Tokenizer.from_json(saved.replace('"ids":[2]', '"ids":[99999]'))


def test_a_panic_in_the_package_is_a_clear_error(saved: str) -> None:
    template = json.loads(saved)["post_processor"]
    with pytest.raises(TokenizerError, match="the tokenizer cannot encode a short text"):
        Tokenizer.from_json(changed(saved, post_processor={**template, "special_tokens": {}}))


def test_unigram_is_read(saved: str) -> None:
    model = {"type": "Unigram", "unk_id": 1, "vocab": [["[PAD]", 0.0], ["[UNK]", 0.0], ["a", -1.0]]}
    kept = {"normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None}
    tokenizer = Tokenizer.from_json(changed(saved, model=model | {"byte_fallback": False}, added_tokens=[], **kept))
    encoding = tokenizer.encode("aéa")
    assert (tokenizer.kind, encoding.ids, encoding.labels) == ("unigram", (2, 1, 2), ("a", "é", "a"))
    assert (encoding.tokens, encoding.unknown) == (("a", "[UNK]", "a"), (False, True, False))


def test_files_are_checked_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with path.open("wb") as file:
        os.truncate(file.fileno(), MAX_BYTES + 1)
    with pytest.raises(TokenizerError, match=f"has {MAX_BYTES + 1} bytes, must have at most {MAX_BYTES}"):
        Tokenizer.load(path)
    with pytest.raises(TokenizerError, match="must be a regular file"):
        Tokenizer.load(tmp_path)
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(TokenizerError, match="must be UTF-8: byte 7 is not"):
        Tokenizer.load(path)
    with pytest.raises(FileNotFoundError):
        Tokenizer.load(tmp_path / "none.json")


def test_texts_are_bounded_too() -> None:
    with pytest.raises(TokenizerError, match=f"text has {MAX_BYTES + 1} characters"):
        Tokenizer.from_json(" " * (MAX_BYTES + 1))


def test_truncation_and_padding_of_the_file_are_switched_off(saved: str, trained: dict[str, Tokenizer]) -> None:
    truncation = {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    padding = {
        "strategy": {"Fixed": 64},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    loaded = Tokenizer.from_json(changed(saved, truncation=truncation, padding=padding))
    assert loaded.encode("the cat sat") == trained["wordpiece"].encode("the cat sat")


PLAIN: dict[str, Any] = {
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "z": 2}, "unk_token": "[UNK]"},
    "pre_tokenizer": {"type": "WhitespaceSplit"},
}
LONGER = {"type": "Replace", "pattern": {"String": "z"}, "content": "z" * 100}


@contextmanager
def refused(words: str) -> Iterator[None]:
    """Expect a refusal with these words; an attack that is tried takes all memory, or minutes."""
    with pytest.raises(TokenizerError, match=words) as caught:
        yield
    assert len(str(caught.value)) < 600


def sequence(*normalizers: dict) -> dict:
    return {"type": "Sequence", "normalizers": list(normalizers)}


def made(**parts: Any) -> Tokenizer:
    return Tokenizer.from_json(json.dumps(PLAIN | parts))


@pytest.mark.parametrize("k", [1, 4, 5])
def test_replacements_that_make_a_text_a_million_times_as_long_are_refused_at_once(k: int) -> None:
    with refused("Replace, makes texts 100 times as long .* must make them at most 4 times"):
        made(normalizer=sequence(*[LONGER] * k))


def test_small_replacements_are_multiplied_and_nested_ones_are_found() -> None:
    twice = LONGER | {"content": "zz"}
    assert made(normalizer=sequence(twice, sequence(twice))).encode("a z").unknown == (False, True)
    with refused(r"normalizer\.normalizers\[1\]\.normalizers\[1\], a Replace, makes texts 8 times"):
        made(normalizer=sequence(twice, sequence(twice, twice)))
    with refused("8 times"):
        made(decoder={"type": "Sequence", "decoders": [twice] * 3})
    with refused("16 times"):
        made(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 2})


@pytest.mark.parametrize(
    ("normalizer", "words"),
    [
        ({"type": "Prepend", "prepend": "▁" * 1000}, "1,001 times"),
        (LONGER | {"pattern": {"String": ""}, "content": "abcd"}, "5 times"),
        (LONGER | {"pattern": {"Regex": "z*"}, "content": "abcd"}, "5 times"),
        (LONGER | {"content": 3}, "content is 3, must be a text"),
        ({"type": "Sequence"}, "must be a list"),
        ({"type": "Evil"}, "type='Evil', must be one of BertNormalizer"),
        ({"normalizers": []}, "type=None, must be one of"),
        ([LONGER], "type=None, must be one of"),
        (sequence(*[{"type": "Lowercase"}] * 17), "more than 16 components"),
        (sequence(sequence(sequence(sequence()))), None),
        (sequence(sequence(sequence(sequence(sequence())))), "nested more than 4 deep"),
        (sequence(*[{"type": "Precompiled", "precompiled_charsmap": ""}] * 2), "second Precompiled"),
        ({"type": "Precompiled", "precompiled_charsmap": "?"}, "must be base64"),
        (
            {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(bytes(4) + b"a\0" + b"z" * 99).decode()},
            "makes 99 characters of one, must make at most 18",
        ),
    ],
)
def test_a_normalizer_that_is_out_of_bounds_is_refused_with_words(normalizer: Any, words: str | None) -> None:
    if words is None:
        made(normalizer=normalizer)
        return
    with refused(words):
        made(normalizer=normalizer)


@pytest.mark.parametrize(
    "regex", ["(a+)+$", "(a|aa)*b", ".*.*.*x", "(?=(a+))a*b", "a{1,999}", r"(\w+\s?)*$", "a+a+a+b"]
)
@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer", "decoder"])
def test_a_regular_expression_that_may_backtrack_is_refused(regex: str, part: str) -> None:
    kind = {"type": "Split", "behavior": "Isolated", "invert": False} if part == "pre_tokenizer" else LONGER
    with refused("the regular expression .* may take very long on some texts; must be one character or class"):
        made(**{part: kind | {"pattern": {"Regex": regex}, "content": ""}})


@pytest.mark.parametrize(
    "regex", [" {2,}", r"\s+", r"[\s\S]", r"\p{N}{1,3}", "[0-9]", r"\n", "z", *KNOWN_PATTERNS.values()]
)
def test_a_regular_expression_of_published_models_is_read_and_never_backtracks_for_long(regex: str) -> None:
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    tokenizer = made(pre_tokenizer=split)
    for text in ("a" * 20_000, " " * 20_000 + "a", "\n" * 20_000, "'" * 20_000, "7" * 20_000, "a 你" * 7_000):
        assert tokenizer.encode(text).ids


def template(n_special: int, n_ids: int = 1, n_pieces: int = 1) -> dict:
    special = {f"[{k}]": {"id": f"[{k}]", "ids": [1] * n_ids, "tokens": ["a"] * n_ids} for k in range(n_special)}
    single = [{"SpecialToken": {"id": f"[{k % n_special}]", "type_id": 0}} for k in range(n_pieces)]
    return {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": special}


def test_a_template_of_50_000_tokens_is_refused_however_it_is_written() -> None:
    text = json.dumps(PLAIN | {"post_processor": template(50_000, n_pieces=50_000)})
    with refused(r"special_tokens has 50,000 entries, must be an object with at most 16"):
        Tokenizer.from_json(text)
    with refused(r"single has 50,000 tokens and texts, must have at most 16"):
        made(post_processor=template(1, n_ids=50_000))
    with refused(r"single has 50,000 tokens and texts, must have at most 16"):
        made(post_processor=template(1, n_pieces=50_000))
    with refused(r"processors\[2\]\.single has 24 tokens"):
        made(post_processor={"type": "Sequence", "processors": [template(1, n_pieces=8)] * 3})


def test_added_tokens_and_what_a_model_puts_before_its_entries_are_bounded() -> None:
    added = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    with refused("added_tokens has 50,000 tokens, must have at most 8,192"):
        made(added_tokens=[added | {"id": k, "content": f"<{k}>"} for k in range(50_000)])
    with refused("must have texts of at most 256 characters each"):
        made(added_tokens=[added | {"id": 3, "content": "z" * 257}])
    pieces = {"type": "WordPiece", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    with refused("max_input_chars_per_word=1000000, must be at most 200"):
        made(model=pieces | {"max_input_chars_per_word": 1_000_000})
    with refused("continuing_subword_prefix has 1,000,000 characters, must have at most 64"):
        made(model=pieces | {"continuing_subword_prefix": "#" * 1_000_000})
    with refused("must have at most 256"):
        made(model={"type": "Unigram", "unk_id": 0, "vocab": [["[UNK]", 0.0], ["z" * 9_000, -1.0]]})
    with refused("type='Evil', must be one of BPE"):
        made(model=PLAIN["model"] | {"type": "Evil"})


def test_an_entry_that_is_there_twice_is_refused_since_readers_differ_in_which_they_take() -> None:
    with refused("has 2 entries of 1 names, must have each once"):
        Tokenizer.from_json(json.dumps(PLAIN)[:-1] + ', "normalizer": {"type": "NFC", "type": "Lowercase"}}')


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("assets/checkpoints/*/tokenizer.json")), ids=lambda path: path.parent.name
)
def test_every_shipped_tokenizer_is_read(path: Path) -> None:
    assert Tokenizer.load(path).encode("A film 你好 😀").ids


def test_what_models_are_published_with_is_read() -> None:
    """As ALBERT, CLIP, XLM-RoBERTa and Llama 3 have it."""
    albert = [normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    clip = [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    split = pre_tokenizers.Split(Regex(KNOWN_PATTERNS["CLIP"]), behavior="removed", invert=True)
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False)
    spaced = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    llama = pre_tokenizers.Split(Regex(KNOWN_PATTERNS["Llama 3"]), behavior="isolated")
    ways = [
        (normalizers.Sequence(albert), pre_tokenizers.Metaspace()),
        (normalizers.Sequence(clip), pre_tokenizers.Sequence([split, bytewise])),
        (normalizers.Sequence([normalizers.Replace(Regex(" {2,}"), "▁")]), spaced),
        (None, pre_tokenizers.Sequence([llama, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])),
    ]
    for normalizer, pre_tokenizer in ways:
        pipeline = tokenizers.Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        if normalizer is not None:
            pipeline.normalizer = normalizer
        pipeline.pre_tokenizer = pre_tokenizer
        pipeline.post_processor = processors.TemplateProcessing(single="[UNK] $A", special_tokens=[("[UNK]", 0)])
        pipeline.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        assert Tokenizer.from_json(pipeline.to_str()).encode("a b").ids


def loaded(pipeline: tokenizers.Tokenizer) -> Tokenizer:
    return Tokenizer.from_json(pipeline.to_str())


def byte_vocabulary(*words: str) -> dict[str, int]:
    return {token: id_ for id_, token in enumerate([*sorted(pre_tokenizers.ByteLevel.alphabet()), *words])}


def test_like_bert_uncased() -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "##s", "un", "##aff"]
    pipeline = tokenizers.Tokenizer(models.WordPiece({w: 100 + k for k, w in enumerate(words)}, unk_token="[UNK]"))
    pipeline.normalizer = normalizers.BertNormalizer(lowercase=True)
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pipeline.post_processor = processors.BertProcessing(("[SEP]", 103), ("[CLS]", 102))
    pipeline.add_special_tokens(words[:5])
    tokenizer = loaded(pipeline)

    encoding = tokenizer.encode("CAFÉS [MASK] zoo", "Unaff")
    assert tokenizer.kind == "wordpiece"
    assert encoding.labels == ("[CLS]", "cafe", "·s", "[MASK]", "zoo", "[SEP]", "un", "·aff", "[SEP]")
    assert encoding.unknown.index(True) == 4
    assert [encoding.surface(k) for k in (1, 2, 4, 6)] == ["CAFÉ", "S", "zoo", "Un"]
    assert encoding.segment_ids == (0,) * 6 + (1,) * 3
    assert (tokenizer.pad_id, tokenizer.cls_id, tokenizer.mask_id, tokenizer.bos_id) == (100, 102, 104, None)
    assert tokenizer.vocab_size == 109
    assert tokenizer.label_of(0) == "<unused>"


def test_like_gpt_2() -> None:
    vocabulary = byte_vocabulary("Ġc", "Ġca", "Ġcat", "<|endoftext|>")
    pipeline = tokenizers.Tokenizer(models.BPE(vocabulary, [("Ġ", "c"), ("Ġc", "a"), ("Ġca", "t")], dropout=0.5))
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pipeline.post_processor = processors.ByteLevel(trim_offsets=False)
    pipeline.decoder = decoders.ByteLevel()
    pipeline.add_special_tokens(["<|endoftext|>"])
    pipeline.add_tokens(["Ġ龍"])
    tokenizer = loaded(pipeline)

    encoding = tokenizer.encode("a cat你<|endoftext|>Ġ龍")
    assert tokenizer.kind == "bpe"
    assert encoding.labels == ("a", "␣cat", "你 1/3", "你 2/3", "你 3/3", "<|endoftext|>", "Ġ龍")
    assert encoding.special == (False,) * 5 + (True, False)
    assert encoding.surface(1) == " cat"
    assert tokenizer.bos_id == tokenizer.eos_id == 259
    assert tokenizer.pad_id is tokenizer.unk_id is tokenizer.cls_id is None
    assert {tokenizer.encode("a cat").ids for _ in range(20)} == {encoding.ids[:2]}


def test_like_roberta() -> None:
    vocabulary = byte_vocabulary("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    pipeline = tokenizers.Tokenizer(models.BPE(vocabulary, []))
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    pipeline.post_processor = processors.RobertaProcessing(("</s>", 258), ("<s>", 256))
    pipeline.decoder = decoders.ByteLevel()
    mask = AddedToken("<mask>", lstrip=True, special=True)
    pipeline.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", mask])
    tokenizer = loaded(pipeline)

    encoding = tokenizer.encode("a <mask>", "b", max_len=9)
    assert encoding.labels == ("<s>", "␣", "a", "<mask>", "</s>", "</s>", "␣", "b", "</s>")
    assert encoding.segment_ids == (0, 0, 0, 0, 0, 0, 1, 1, 0)
    assert [encoding.surface(k) for k in (1, 2, 3, 7)] == ["", "a", "<mask>", "b"]
    assert (tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id, tokenizer.mask_id) == (256, 257, 258, 260)


def test_like_llama() -> None:
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words += ["▁", "c", "a", "t", "▁c", "at", "▁cat"]
    vocabulary = {word: id_ for id_, word in enumerate(words)}
    merges = [("▁", "c"), ("a", "t"), ("▁c", "at")]
    model = models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    pipeline = tokenizers.Tokenizer(model)
    pipeline.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    pipeline.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    pipeline.decoder = decoders.Sequence(steps)
    pipeline.add_special_tokens(words[:3])
    tokenizer = loaded(pipeline)

    encoding = tokenizer.encode("cat 你")
    assert encoding.labels == ("<s>", "␣cat", "␣", "你 1/3", "你 2/3", "你 3/3")
    assert [encoding.surface(k) for k in (1, 3, 5)] == ["cat", "你", "你"]
    assert tokenizer.decode(encoding.ids) == "cat 你"


def test_characters_by_another_pattern() -> None:
    pipeline = tokenizers.Tokenizer(models.WordLevel({"<unk>": 0, "a": 1, " ": 2}, unk_token="<unk>"))
    pipeline.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = loaded(pipeline)
    assert tokenizer.kind == "character"
    assert tokenizer.encode("a b").labels == ("a", "␣", "b")
    assert tokenizer.encode("a b").unknown == (False, False, True)
