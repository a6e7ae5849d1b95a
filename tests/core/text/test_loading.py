import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.text import Tokenizer, TokenizerError
from transformer_core.text.loading import MAX_BYTES


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
