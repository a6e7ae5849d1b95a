"""Evaluate on each kind: hidden words, sentence pairs, translations; what is measured is what one counts by hand."""

import json

import pytest
import torch

from transformer_core.bundle import Bundle, save
from transformer_core.config import ModelConfig
from transformer_core.evaluation.bert import (
    SentencePair,
    measure_hidden_words,
    measure_sentence_pairs,
    read_sentence_pairs,
    write_sentence_pairs,
)
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.evaluation.translation import bleu_tokenizer, measure_translation, read_lines, read_parallel
from transformer_core.generation import translate
from transformer_core.models import Bert, Translation
from transformer_core.text import Tokenizer

SENTENCES = [f"the {size} {animal} sleeps" for size in ("small", "big", "old") for animal in ("dog", "cat", "bird")]
PAIRS = [SentencePair(a, b, a[4:7] == b[4:7]) for a in SENTENCES for b in SENTENCES[:4]]


def sizes(tokenizer: Tokenizer, **more) -> ModelConfig:
    return ModelConfig(vocab_size=tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=16, n_layers=1, max_len=24, **more)


@pytest.fixture(scope="module")
def bert() -> Bundle:
    tokenizer = Tokenizer.train("word", SENTENCES, min_frequency=1)
    torch.manual_seed(1)
    return Bundle("bert", Bert(sizes(tokenizer, n_segments=2)).eval(), tokenizer)


@pytest.fixture(scope="module")
def translation() -> Bundle:
    tokenizer = Tokenizer.train("word", SENTENCES, min_frequency=1, template="bos_eos")
    torch.manual_seed(2)
    return Bundle("translation", Translation(sizes(tokenizer, share_embeddings=True)).eval(), tokenizer)


@pytest.mark.parametrize("share", [0.15, 0.5, 1.0])
def test_hidden_words_are_the_same_however_they_are_batched(bert, share) -> None:
    one = measure_hidden_words(bert, SENTENCES, share=share, batch_size=1)
    assert one == measure_hidden_words(bert, SENTENCES, share=share, batch_size=4)
    assert 0 <= one["top1"] <= one["top5"] <= 1
    assert one["sentences"] == len(SENTENCES)


def test_all_hidden_words_are_counted_as_by_hand(bert) -> None:
    mask, right, five = bert.tokenizer.mask_id, 0, 0
    for sentence in SENTENCES:
        ids = list(bert.tokenizer.encode(sentence).ids)
        with torch.inference_mode():
            logits = bert.model(torch.tensor([[ids[0], *[mask] * (len(ids) - 2), ids[-1]]])).mlm_logits[0]
        for place in range(1, len(ids) - 1):
            right += int(logits[place].argmax()) == ids[place]
            five += ids[place] in logits[place].topk(5).indices.tolist()
    measured = measure_hidden_words(bert, SENTENCES, share=1.0)
    assert measured["hidden"] == 4 * len(SENTENCES)
    assert measured["top1"] == pytest.approx(right / measured["hidden"], abs=1e-6)
    assert measured["top5"] == pytest.approx(five / measured["hidden"], abs=1e-6)


def test_pairs_are_counted_as_by_hand_and_class_0_means_together(bert) -> None:
    right = 0
    for pair in PAIRS:
        encoding = bert.tokenizer.encode(pair.first, pair.second)
        with torch.inference_mode():
            output = bert.model(torch.tensor([encoding.ids]), segment_ids=torch.tensor([encoding.segment_ids]))
        right += (int(output.nsp_logits.argmax()) == 0) == pair.together
    measured = measure_sentence_pairs(bert, PAIRS, batch_size=5)
    assert measured["accuracy"] == pytest.approx(right / len(PAIRS), abs=1e-6)
    assert measured == measure_sentence_pairs(bert, PAIRS, batch_size=64)


def test_a_bert_is_evaluated_on_sentences_or_on_pairs_by_the_name_of_the_file(bert, tmp_path) -> None:
    save(bert, tmp_path / "bert")
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES) + "\n\n")
    write_sentence_pairs(tmp_path / "a.jsonl", PAIRS)
    assert read_sentence_pairs(tmp_path / "a.jsonl") == PAIRS
    words = evaluate(tmp_path / "bert", tmp_path / "a.txt", device="cpu")
    assert words["sentences"] == len(SENTENCES)
    assert evaluate(tmp_path / "bert", tmp_path / "a.jsonl", device="cpu")["pairs"] == len(PAIRS)
    (tmp_path / "b.csv").write_text("first,second,label\na,b,2\n")
    with pytest.raises(ValueError, match=r"b.csv, line 2: label='2' is unknown; it must be one of 0, 1"):
        read_sentence_pairs(tmp_path / "b.csv")


def test_a_translation_that_is_its_own_reference_has_bleu_100(translation, tmp_path) -> None:
    own = translate(translation, SENTENCES, width=4)
    measured = measure_translation(translation, list(zip(SENTENCES, own, strict=True)))
    if all(own):
        assert measured["bleu"] == pytest.approx(100)
    assert measured == measure_translation(translation, list(zip(SENTENCES, own, strict=True)), batch_size=1)
    assert measured["sentences"] == len(SENTENCES)
    assert "tok:13a" in measured["bleu_signature"]
    save(translation, tmp_path / "translation")
    for name, lines in (("a.en", SENTENCES), ("a.fr", SENTENCES)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    evaluated = evaluate(tmp_path / "translation", tmp_path / "a.en", tmp_path / "a.fr", device="cpu")
    assert json.loads(json.dumps(evaluated))["beam"] == 4
    with pytest.raises(ValueError, match="files=1 for a translation; needed: sources, a line each; references"):
        evaluate(tmp_path / "translation", tmp_path / "a.en")


def test_files_that_are_not_parallel_are_refused(tmp_path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo\n")
    (tmp_path / "b").write_text("un\n\u2028deux\ntrois")
    assert read_lines(tmp_path / "a") == ["one", "two"]
    with pytest.raises(ValueError, match="a has 2 lines, b 3; they must be parallel"):
        read_parallel(tmp_path / "a", tmp_path / "b")


def test_chinese_is_cut_into_characters_before_it_is_compared() -> None:
    assert bleu_tokenizer(["我喜欢 TV。", "你好"]) == "zh"
    assert bleu_tokenizer(["Le chat dort."]) == bleu_tokenizer(["..."]) == "13a"


def test_other_kinds_are_refused_by_name(bert, translation) -> None:
    for measure, bundle in (
        (measure_hidden_words, translation),
        (measure_sentence_pairs, translation),
        (measure_translation, bert),
    ):
        with pytest.raises(ValueError, match=f"bundle='{bundle.name}' is a {bundle.kind}; it must be"):
            measure(bundle, PAIRS)
