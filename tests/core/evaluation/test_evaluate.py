"""`python -m transformer_core.evaluation`: one line of JSON, the same numbers however examples are batched."""

import gzip
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.helpers.engine import separable
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.classifier import measure_classifier
from transformer_core.evaluation.evaluate import evaluate, main
from transformer_core.models import Bert, Classifier
from transformer_core.text import Tokenizer
from transformer_core.training.intake.labelled import write_labelled

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


def command_line(folder, *arguments):
    command = [sys.executable, "-m", "transformer_core.evaluation", *arguments]
    root = str(Path(__file__).parents[3])
    return subprocess.run(
        command,
        cwd=folder,
        env={"PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_command_line_prints_one_line_of_json(folder):
    done = command_line(folder, "tiny", "a.csv", "--device", "cpu", "--batch-size", "7")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    measures = json.loads(done.stdout)
    assert list(measures) == ["bundle", "kind", "accuracy", "loss_nats", "truncated", "examples", "seconds"]
    assert (measures["bundle"], measures["kind"], measures["examples"]) == ("tiny", "classifier", 101)
    assert measures["truncated"] > 0


def test_the_command_line_fails_in_one_line_with_code_2(folder):
    done = command_line(folder, "nowhere", "a.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "evaluate: nowhere: there is no such folder; a bundle is a folder with config.json in it\n"


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
