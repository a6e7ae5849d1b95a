"""The recipe writes a bundle whose card says what `evaluate` measures, and goes on where it was stopped."""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.core.separable import separable, write_separable
from tests.paths import ROOT
from transformer_core.checkpoints import load
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.recipes import command, sentiment
from transformer_core.recipes.reviews import FULL, Crops, describe, set_aside
from transformer_core.recipes.sentiment import EVERYDAY
from transformer_core.training.examples import Example


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of one quick run of the recipe on a tiny separable world."""
    folder = tmp_path_factory.mktemp("recipe")
    write_separable(folder / "train.csv", 300)
    arguments = ["--data", ".", "--out", "bundle", "--work", "work", "--held-out", "aside.csv", "--quick"]
    line = [sys.executable, "-m", "transformer_core.recipes.sentiment", *arguments]
    root = str(sentiment.__file__).rsplit("/transformer_core/", 1)[0]
    done = subprocess.run(
        line,
        cwd=folder,
        env={"PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_card_says_what_evaluate_measures(made):
    card = load(made / "bundle").card
    measured = evaluate(made / "bundle", made / "aside.csv")
    said = re.search(r"On the (\d+) reviews set aside: accuracy ([\d.]+), cross entropy ([\d.]+) nats", card)
    assert said is not None
    assert int(said[1]) == measured["examples"] == 20
    assert float(said[2]) == measured["accuracy"] >= 0.9
    assert float(said[3]) == measured["loss_nats"]


def test_the_card_names_data_licence_command_and_all_sentences(made):
    card = load(made / "bundle").card
    for words in ("Maas et al. 2011", "research", "recipes.sentiment --data DIR --quick --seed 0", "What it cannot do"):
        assert words in card
    assert all(f"| {sentence} |" in card for sentence, _ in EVERYDAY)
    assert load(made / "bundle").labels == ("negative", "positive")


def test_what_is_set_aside_is_balanced_and_not_trained_on():
    examples = separable(100)
    twice = [*examples, *(Example(f"  {example.text.upper()} ", example.label) for example in examples)]
    train, aside = set_aside(twice, 10, seed=3)
    assert Counter(example.label for example in aside) == {0: 10, 1: 10}
    assert sorted([*train, *aside], key=str) == sorted(examples, key=str)
    assert (train, aside) == set_aside(twice, 10, seed=3) != set_aside(twice, 10, seed=4)


def test_what_recipes_set_aside_is_as_it_was_when_they_were_run():
    train, aside = set_aside([Example(f"text {n}", n % 2) for n in range(12)], 2, seed=0)
    assert [example.text for example in aside] == ["text 9", "text 2", "text 7", "text 4"]
    assert len(train) == 8


def test_too_few_reviews_are_refused(tmp_path, capsys):
    write_separable(tmp_path / "train.csv", 12)
    with pytest.raises(ValueError, match="label 0 has 6 different reviews; to set 6 aside, more are needed"):
        set_aside(separable(12), 6, seed=0)
    assert sentiment.main(["--data", str(tmp_path / "nowhere")]) == 2
    assert "nowhere holds none of train25k.csv.gz, train.csv.gz, train.csv" in capsys.readouterr().err


def test_crops_are_stretches_of_the_review():
    rng = np.random.default_rng(0)
    ids, ends = np.arange(100), np.array([10, 30, 31, 90])
    for crops in (Crops(1.0, 0.0), Crops(0.0, 1.0), Crops(0.0, 0.0)):
        for _ in range(50):
            crop = crops.cut(ids, ends, 40, rng)
            assert 1 <= len(crop) <= 40
            assert crop.tolist() == list(range(crop[0], crop[0] + len(crop)))
    assert Crops(1.0, 0.0).cut(ids, ends, 40, rng).tolist() == list(range(40))
    starts = {int(Crops(0.0, 0.0).cut(ids, ends, 40, rng)[0]) for _ in range(200)}
    assert starts == {0, 10, 30, 31, 90}


def test_an_interrupted_recipe_ends_in_the_same_weights(made, tmp_path, monkeypatch):
    class InterruptionError(Exception):
        pass

    def arguments(name):
        return ["--data", str(made), "--out", str(tmp_path / name), "--work", str(tmp_path / f"{name}-work"), "--quick"]

    def save_and_stop(run, folder, save=command.save_run):
        save(run, folder)
        raise InterruptionError

    monkeypatch.setattr(command, "STEPS_BETWEEN_SAVES", 30)
    assert sentiment.main(arguments("whole")) == 0
    with monkeypatch.context() as patch:
        patch.setattr(command, "save_run", save_and_stop)
        with pytest.raises(InterruptionError):
            sentiment.main(arguments("parts"))
    assert sentiment.main([*arguments("parts"), "--resume"]) == 0
    whole, parts = load(tmp_path / "whole"), load(tmp_path / "parts")
    for name, parameter in whole.model.named_parameters():
        assert torch.equal(parameter, parts.model.get_parameter(name)), name


def test_the_shipped_bundle_is_what_the_recipe_makes():
    shipped = load(ROOT / "assets" / "checkpoints" / "sentiment")
    vocabulary = {"vocab_size": shipped.config.vocab_size, "target_vocab_size": shipped.config.vocab_size}
    assert shipped.config == replace(FULL.model, **vocabulary)
    assert describe(FULL) in shipped.card
