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


def read_as(name: str, architecture: str, pieces: list[str], unknown: int, special: int, settings: dict, folder: Path):
    """Write a checkpoint with unigrams, of which the first are special, and return its tokenizer, which agrees with
    that of a class of theirs."""
    written(architecture, folder)
    scored = [(piece, 0.0 if place < special else -1.0 - place) for place, piece in enumerate(pieces)]
    pipeline = tokenizers.Tokenizer(models.Unigram(scored, unknown, False))
    pipeline.add_special_tokens(pieces[:special])
    pipeline.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").unlink()
    if settings:
        manners(folder, tokenizer_class=name, **settings)
    same_ids(folder)
    return load(folder, device="cpu").tokenizer


FLAGS = [{}, {"do_lower_case": False}, {"keep_accents": True}, {"do_lower_case": False, "keep_accents": True}]


@pytest.mark.parametrize("flags", FLAGS, ids=json.dumps)
def test_an_albert_cuts_as_its_class_does(flags: dict, tmp_path: Path) -> None:
    tokenizer = read_as("AlbertTokenizer", "AlbertForMaskedLM", ALBERT, 1, 5, flags, tmp_path)
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
    tokenizer = read_as("T5Tokenizer", "T5ForConditionalGeneration", T5, 2, 3, settings, tmp_path)
    assert (tokenizer.pad_id, tokenizer.eos_id, tokenizer.unk_id, tokenizer.bos_id) == (0, 1, 2, 0)
    assert tokenizer.encode("A glass").ids[-1] == 1
    for text in ("a <extra_id_0> glass", "a<extra_id_1>", "<extra_id_0>"):
        assert list(tokenizer.encode(text).ids) == theirs_of(tmp_path)(text)["input_ids"], text
