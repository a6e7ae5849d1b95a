"""Classes that cut texts into SentencePiece's unigrams give the ids that theirs give."""

import json
from pathlib import Path

import pytest
import tokenizers
from tokenizers import models

from tests.core.open_checkpoints.test_tokenizers import manners, same_ids, theirs_of
from tests.helpers.open_checkpoints import written
from transformer_core.checkpoints import load

PIECES = ["▁", "▁glass", "▁A", "▁a", "glass", "es", "caf", "cafe", "é", "你好", "!", ",", *"AaGgLlSsefiofuh", "▁you"]
SENTINELS = [f"<extra_id_{place}>" for place in (1, 0)]
T5 = ["<pad>", "</s>", "<unk>", *PIECES, *SENTINELS]
ALBERT = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", *PIECES]


def vocabulary(folder: Path, pieces: list[str], unknown: int, special: int) -> None:
    """Write a tokenizer.json of unigrams, of which the first are special."""
    scored = [(piece, 0.0 if place < special else -1.0 - place) for place, piece in enumerate(pieces)]
    pipeline = tokenizers.Tokenizer(models.Unigram(scored, unknown, False))
    pipeline.add_special_tokens(pieces[:special])
    pipeline.save(str(folder / "tokenizer.json"))


FLAGS = [{}, {"do_lower_case": False}, {"keep_accents": True}, {"do_lower_case": False, "keep_accents": True}]


@pytest.mark.parametrize("flags", FLAGS, ids=json.dumps)
def test_an_albert_cuts_as_its_class_does(flags: dict, tmp_path: Path) -> None:
    written("AlbertForMaskedLM", tmp_path)
    vocabulary(tmp_path, ALBERT, 1, 5)
    (tmp_path / "tokenizer_config.json").unlink()
    if flags:
        manners(tmp_path, tokenizer_class="AlbertTokenizer", **flags)
    same_ids(tmp_path)
    tokenizer = load(tmp_path, device="cpu").tokenizer
    assert (tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id) == (0, 2, 3, 4)
    quoted = "``A glass''"
    assert list(tokenizer.encode(quoted).ids) == theirs_of(tmp_path)(quoted)["input_ids"]
    assert set(tokenizer.encode("A glass", "glasses").segment_ids) == {0, 1}


@pytest.mark.parametrize(
    "settings",
    [{}, {"extra_ids": 2}, {"extra_ids": 2, "additional_special_tokens": SENTINELS}, {"eos_token": "</s>"}],
    ids=json.dumps,
)
def test_a_t5_cuts_as_its_class_does_and_ends_every_text(settings: dict, tmp_path: Path) -> None:
    written("T5ForConditionalGeneration", tmp_path)
    vocabulary(tmp_path, T5, 2, 3)
    (tmp_path / "tokenizer_config.json").unlink()
    if settings:
        manners(tmp_path, tokenizer_class="T5Tokenizer", **settings)
    same_ids(tmp_path)
    tokenizer = load(tmp_path, device="cpu").tokenizer
    assert (tokenizer.pad_id, tokenizer.eos_id, tokenizer.unk_id, tokenizer.bos_id) == (0, 1, 2, 0)
    assert tokenizer.encode("A glass").ids[-1] == 1
    for text in ("a <extra_id_0> glass", "a<extra_id_1>", "<extra_id_0>"):
        assert list(tokenizer.encode(text).ids) == theirs_of(tmp_path)(text)["input_ids"], text
