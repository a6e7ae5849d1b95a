"""Evaluate: one line of JSON, the same numbers however examples are batched, for each kind and by length."""

import gzip
import json
import math
import runpy
import sys
from pathlib import Path

import pytest
import sacrebleu
import torch

from tests.helpers import ROOT, nightly_but
from tests.helpers.engine import exactly, made, separable
from transformer_core.analysis.before.by_length import Bin, read_by_length
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.bert import (
    SentencePair,
    measure_hidden_words,
    measure_sentence_pairs,
    read_sentence_pairs,
    write_sentence_pairs,
)
from transformer_core.evaluation.by_length import main as main_by_length
from transformer_core.evaluation.by_length import measure_by_length, places_by_length, resampled_bleu
from transformer_core.evaluation.classifier import measure_classifier
from transformer_core.evaluation.evaluate import evaluate, main
from transformer_core.evaluation.translation import bleu_tokenizer, measure_translation, read_lines, read_parallel
from transformer_core.generation import translate
from transformer_core.models import Bert, Classifier, Translation
from transformer_core.models.recurrent import RecurrentLm, Seq2Seq
from transformer_core.text import Tokenizer
from transformer_core.untrusted.tables.labelled import write_labelled

EXAMPLES = separable(101)
LABELS = ("negative", "positive")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with two untrained bundles, and the same examples in four forms."""
    folder = tmp_path_factory.mktemp("evaluate")
    tokenizer = Tokenizer.train("word", [example.text for example in EXAMPLES], vocab_size=60)
    config = ModelConfig(vocab_size=tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=32, n_layers=2, max_len=12)
    torch.manual_seed(0)
    save(Bundle("tiny", Classifier(config), tokenizer, LABELS), folder / "tiny")
    save(Bundle("hidden", Bert(config), tokenizer), folder / "hidden")
    write_labelled(folder / "a.csv", EXAMPLES)
    lines = (json.dumps({"text": example.text, "label": LABELS[example.label]}) for example in EXAMPLES)
    (folder / "a.jsonl").write_text("\n".join(lines))
    for name in ("a.csv", "a.jsonl"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    return folder


def test_the_command_line_prints_one_line_of_json_or_fails_in_one_line_with_code_2(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def command_line(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["evaluation", *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("transformer_core.evaluation", run_name="__main__")
        return ended.value.code, *capsys.readouterr()

    code, said, errors = command_line("tiny", "a.csv", "--device", "cpu", "--batch-size", "7")
    assert (code, errors, said.count("\n")) == (0, "", 1)
    measures = json.loads(said)
    assert list(measures) == ["bundle", "kind", "accuracy", "loss_nats", "truncated", "examples", "seconds"]
    assert (measures["bundle"], measures["kind"], measures["examples"]) == ("tiny", "classifier", 101)
    assert measures["truncated"] > 0
    why = "evaluate: nowhere: there is no such folder; a bundle is a folder with config.json in it\n"
    assert command_line("nowhere", "a.csv") == (2, "", why)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tiny", "a.txt"], "a.txt must end in one of .csv, .jsonl, or in one of these with .gz after it"),
        (["tiny", "no.csv"], "No such file or directory"),
        (["hidden", "a.csv"], "a.csv, line 1 has no 'first'; it has 'text', 'label'"),
        (["tiny", "a.csv", "a.csv"], "files=2 for a classifier; needed: text and label in .csv or .jsonl"),
        (["tiny", "a.csv", "--device", "abacus"], "device='abacus' is unknown"),
        (["tiny", "broken.csv"], "broken.csv, line 2: label='9' is unknown"),
        (["tiny", "."], "must end in one of"),
    ],
)
def test_errors_name_what_is_wrong(folder, arguments, message, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    Path("broken.csv").write_text("text,label\nx,9\n")
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.startswith("evaluate: ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["tiny"], ["tiny", "a.csv", "--batch-size", "0"], ["tiny", "a.csv", "--batch-size", "x"]]
)
def test_wrong_arguments_are_one_line_and_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_every_form_and_batch_size_gives_the_same_numbers(folder):
    def numbers(name, batch_size):
        measures = evaluate(folder / "tiny", folder / name, batch_size=batch_size)
        return {key: value for key, value in measures.items() if key != "seconds"}

    expected = numbers("a.csv", 32)
    assert all(numbers(name, 32) == expected for name in ("a.csv.gz", "a.jsonl", "a.jsonl.gz"))
    assert all(numbers("a.csv", batch_size) == expected for batch_size in (1, 2, 13, 500))


MEASURED_FILES = [
    ("sentiment", {"a.csv": "text,label\nA good film.,positive\nA bad film.,negative\n"}),
    ("bert", {"a.txt": "A man is riding a horse.\nTwo dogs play in the snow.\n"}),
    ("bert", {"a.csv": "first,second,label\nA man is here.,He rides a horse.,1\nA dog.,It is cold.,0\n"}),
    ("gpt", {"a.txt": "Once upon a time there was a little dog. It was red.\n"}),
    ("lm-gru", {"a.txt": "To be, or not to be: that is the question.\n"}),
    ("translation-en-fr", {"a.en": "A man is riding a horse.\n", "a.fr": "Un homme monte à cheval.\n"}),
    ("seq2seq-en-fr", {"a.en": "A man is riding a horse.\n", "a.fr": "Un homme monte à cheval.\n"}),
]


@pytest.mark.parametrize(
    ("name", "files"), nightly_but(MEASURED_FILES, lambda case: case[0] in ("gpt", "seq2seq-en-fr"))
)
def test_a_device_measures_the_same(device, name, files, tmp_path):
    for file, lines in files.items():
        (tmp_path / file).write_text(lines, encoding="utf-8")
    here, there = (
        evaluate(ROOT / "assets" / "checkpoints" / name, *(tmp_path / file for file in files), device=place)
        for place in ("cpu", str(device))
    )
    for measures in (here, there):
        measures.pop("seconds")
    assert there == pytest.approx(here, abs=2e-4)


def test_the_measures_are_those_of_texts_judged_one_by_one(folder):
    bundle = load(folder / "tiny")
    correct, loss = 0, 0.0
    for example in EXAMPLES:
        ids = bundle.tokenizer.encode(example.text, max_len=12).ids
        with torch.inference_mode():
            logits = bundle.model(torch.tensor([ids]))[0].double()
        correct += int(logits.argmax()) == example.label
        loss -= math.log(logits.softmax(-1)[example.label])
    measures = measure_classifier(bundle, EXAMPLES)
    assert measures["accuracy"] == pytest.approx(correct / 101, abs=1e-6)
    assert measures["loss_nats"] == pytest.approx(loss / 101, abs=1e-4)


def test_nothing_to_measure_is_refused(folder):
    with pytest.raises(ValueError, match="examples are none; at least one is needed"):
        measure_classifier(load(folder / "tiny"), [])


SENTENCES = [f"the {size} {animal} sleeps" for size in ("small", "big", "old") for animal in ("dog", "cat", "bird")]
SENTENCE_PAIRS = [SentencePair(a, b, a[4:7] == b[4:7]) for a in SENTENCES for b in SENTENCES[:4]]


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
    for pair in SENTENCE_PAIRS:
        encoding = bert.tokenizer.encode(pair.first, pair.second)
        with torch.inference_mode():
            output = bert.model(torch.tensor([encoding.ids]), segment_ids=torch.tensor([encoding.segment_ids]))
        right += (int(output.nsp_logits.argmax()) == 0) == pair.together
    measured = measure_sentence_pairs(bert, SENTENCE_PAIRS, batch_size=5)
    assert measured["accuracy"] == pytest.approx(right / len(SENTENCE_PAIRS), abs=1e-6)
    assert measured == measure_sentence_pairs(bert, SENTENCE_PAIRS, batch_size=64)


def test_a_bert_is_evaluated_on_sentences_or_on_pairs_by_the_name_of_the_file(bert, tmp_path) -> None:
    save(bert, tmp_path / "bert")
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES) + "\n\n")
    write_sentence_pairs(tmp_path / "a.jsonl", SENTENCE_PAIRS)
    assert read_sentence_pairs(tmp_path / "a.jsonl") == SENTENCE_PAIRS
    words = evaluate(tmp_path / "bert", tmp_path / "a.txt", device="cpu")
    assert words["sentences"] == len(SENTENCES)
    assert evaluate(tmp_path / "bert", tmp_path / "a.jsonl", device="cpu")["pairs"] == len(SENTENCE_PAIRS)
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
            measure(bundle, SENTENCE_PAIRS)


SOURCES = ["a cat", "a cat sat", "a cat sat on the mat and a dog sat on it too", "the mat"]
REFERENCES = ["le chat", "le chat dort", "le chat dort sur le tapis", "le tapis"]
PAIRS = list(zip(SOURCES, REFERENCES, strict=True))


@pytest.fixture
def bundle() -> Bundle:
    tokenizer = Tokenizer.train("word", [*SOURCES, *REFERENCES], min_frequency=1, template="bos_eos")
    model = made(Seq2Seq, vocab_size=tokenizer.vocab_size, attention=None)
    return Bundle("old", model.requires_grad_(False), tokenizer)


def test_every_sentence_is_in_the_bin_of_its_length() -> None:
    assert places_by_length(SOURCES, (2, 5)) == [[0, 3], [1], [2]]
    assert places_by_length(SOURCES, (2, 3, 5)) == [[0, 3], [1], [2]]  # a bin without sentences is left out


def test_an_interval_is_about_the_score_of_all() -> None:
    written = [*REFERENCES[:3], "un chien"]
    metric = sacrebleu.BLEU(tokenize="13a")
    score, low, high = resampled_bleu(metric, written * 20, REFERENCES * 20, times=200)
    assert score == pytest.approx(metric.corpus_score(written * 20, [REFERENCES * 20]).score)
    assert 0 < low < score < high <= 100
    assert (score, low, high) == resampled_bleu(metric, written * 20, REFERENCES * 20, times=200)


def test_all_sentences_score_as_evaluate_says(bundle: Bundle) -> None:
    found = measure_by_length([bundle], PAIRS, files=("s", "r"), command="c", times=10)
    assert found.models[0].overall == measure_translation(bundle, PAIRS)["bleu"]
    assert found.bins == (Bin(2, 3, 3), Bin(13, 13, 1))


def test_the_command_writes_what_it_measured_and_names_no_folder_of_the_data(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    save(bundle, tmp_path / "old")
    for name, lines in (("s.en", SOURCES), ("s.fr", REFERENCES)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = ["--sources", str(tmp_path / "s.en"), "--references", str(tmp_path / "s.fr"), "--out", "out.json"]
    assert main_by_length(["old", *files]) == 0
    found = read_by_length(tmp_path / "out.json")
    assert found.models == ("old",)
    assert found.command == (
        "python -m transformer_core.evaluation.by_length old --sources s.en --references s.fr --out out.json"
    )
    capsys.readouterr()
    assert main_by_length(["nothing", *files]) == 2
    assert capsys.readouterr().err.startswith("by_length: ")


def test_other_kinds_are_refused() -> None:
    tokenizer = Tokenizer.train("character", SOURCES, min_frequency=1, template="none")
    model = made(RecurrentLm, vocab_size=tokenizer.vocab_size)
    message = "bundle='lm' is a lm; it must be one of translation, seq2seq"
    with pytest.raises(ValueError, match=exactly(message)):
        measure_by_length([Bundle("lm", model, tokenizer)], PAIRS, files=("s", "r"), command="c")
    with pytest.raises(ValueError, match="at least one of each"):
        measure_by_length([], PAIRS, files=("s", "r"), command="c")
