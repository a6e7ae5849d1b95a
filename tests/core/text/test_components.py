"""What a stranger's tokenizer.json may be made of: attacks are refused at once, what published models have is read."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors

from tests.helpers import ROOT
from transformer_core.text import Tokenizer, TokenizerError
from transformer_core.text.components import KNOWN_PATTERNS

PLAIN: dict[str, Any] = {
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "z": 2}, "unk_token": "[UNK]"},
    "pre_tokenizer": {"type": "WhitespaceSplit"},
}
LONGER = {"type": "Replace", "pattern": {"String": "z"}, "content": "z" * 100}


@contextmanager
def refused(words: str) -> Iterator[None]:
    """Expect a refusal with these words within 5 s of computing: files of 10 MB are read, no attack is tried."""
    began = time.thread_time()
    with pytest.raises(TokenizerError, match=words) as caught:
        yield
    assert time.thread_time() - began < 5
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
def test_a_regular_expression_of_published_models_is_read_and_quick(regex: str) -> None:
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    tokenizer = made(pre_tokenizer=split)
    began = time.thread_time()
    for text in ("a" * 20_000, " " * 20_000 + "a", "\n" * 20_000, "'" * 20_000, "7" * 20_000, "a 你" * 7_000):
        tokenizer.encode(text)
    assert time.thread_time() - began < 10


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
    with refused("added_tokens has 50,000 tokens, must have at most 1,024"):
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
