"""Presets and settings: every preset is a sound spec, and a flat table of settings says all that fixes a run."""

import dataclasses
import math

import pytest

from transformer_core.training.runs.presets import ARTICLE, IMDB, PRESETS, QUICK, REVERSE, fitted
from transformer_core.training.runs.settings import NAMES, called, change, differences, numbered, obstacles, settings
from transformer_core.training.spec import LONGEST_NAME, Given, Origin, RunSpec


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_named_after_its_key_and_survives_json(name: str) -> None:
    spec = PRESETS[name]
    assert spec.name == name
    assert RunSpec.from_json(spec.to_json()) == spec


def test_the_article_is_the_articles_own() -> None:
    values = settings(ARTICLE)
    asked = {
        "d_model": 256,
        "n_heads": 4,
        "n_layers": 4,
        "d_ff": 512,
        "max_len": 256,
        "dropout": 0.4,
        "dropout_at": "sublayers",
        "padding_mask": "mixed_heads",
        "initial": "unit",
        "norm_order": "post",
        "examples": 1_200,
        "held_out": 200,
        "optimizer": "adam",
        "learning_rate": 1e-4,
        "batch_size": 32,
        "epochs": 20,
        "softmax_before_loss": True,
    }
    assert {name: values[name] for name in asked} == asked


def test_imdb_is_the_measured_recipe() -> None:
    values = settings(IMDB)
    asked = {
        "source": "imdb",
        "examples": 8_000,
        "d_model": 64,
        "n_layers": 2,
        "max_len": 192,
        "epochs": 2,
        "tokenizer": "wordpiece",
        "vocab_size": 8_000,
        "pooling": "mean",
    }
    assert {name: values[name] for name in asked} == asked


@pytest.mark.parametrize("name", PRESETS)
def test_settings_are_enough_to_make_the_spec_again(name: str) -> None:
    values = settings(PRESETS[name])
    assert tuple(values) == NAMES
    rebuilt = change(QUICK, **values)
    assert differences(rebuilt, PRESETS[name]) == {}


def test_a_change_changes_that_and_nothing_else() -> None:
    assert differences(QUICK, change(QUICK, activation="relu")) == {"activation": ("gelu", "relu")}
    assert differences(QUICK, QUICK) == {}


def test_the_width_of_a_head_follows_that_of_the_model() -> None:
    wider = change(QUICK, d_model=128)
    assert wider.model.d_head == 32
    assert change(QUICK, n_heads=8).model.d_head == 8
    assert differences(QUICK, wider).keys() == {"d_model"}
    assert change(QUICK, d_head=8).model.d_head == 8
    assert settings(change(change(QUICK, d_head=8), n_heads=2))["d_head"] == 8


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"d_model": 66, "n_heads": 4}, "divisible"),
        ({"epochs": 0}, "epochs=0"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0"),
        ({"colour": "red"}, "no setting"),
        ({"examples": 10**9}, "examples=1000000000"),
        ({"softmax_before_loss": "yes"}, "softmax_before_loss='yes'"),
    ],
)
def test_what_cannot_be_is_said(values: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        change(QUICK, **values)


ELSEWHERE = {
    "activation": "relu",
    "dropout": 0.3,
    "residual": False,
    "scale_scores": False,
    "norm_order": "post",
    "positions": "alibi",
    "pooling": "mean",
    "learning_rate": 1e-2,
    "epochs": 9,
    "batch_size": 16,
    "n_layers": 3,
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_leaves_the_vocabulary_alone_may_change_on_the_way(name: str) -> None:
    assert obstacles(QUICK, change(QUICK, **{name: ELSEWHERE[name]})) == []


@pytest.mark.parametrize("name", ["seed", "examples", "symbols", "length"])
def test_other_data_may_not(name: str) -> None:
    assert obstacles(REVERSE, change(REVERSE, **{name: settings(REVERSE)[name] + 5})) == [name]


def test_a_run_is_called_after_what_was_changed() -> None:
    assert called(QUICK, QUICK, QUICK) == "quick"
    deeper = change(QUICK, n_layers=3, learning_rate=2e-3)
    assert called(QUICK, QUICK, deeper) == "quick · 3 layers · lr 0.002"
    assert called(QUICK, QUICK, change(QUICK, activation="relu", n_layers=1)) == "quick · 1 layer · relu"
    assert called(QUICK, QUICK, change(QUICK, residual=False)) == "quick · no residual"
    again = dataclasses.replace(QUICK, name="quick (2)")
    assert called(again, again, change(again, clip_norm=None)) == "quick · clip off"
    branch = dataclasses.replace(QUICK, origin=Origin(run="abcdefgh12", frame=3))
    assert called(QUICK, QUICK, branch) == "quick · from frame 3"
    every = change(QUICK, **ELSEWHERE, seed=7)
    assert len(called(QUICK, QUICK, every)) <= LONGEST_NAME
    dataclasses.replace(every, name=called(QUICK, QUICK, every))


def test_a_run_of_data_of_ones_own_is_called_after_them() -> None:
    fit = fitted(REVERSE, "table", there=120)
    given = Given(name="my.csv", count=120)
    mine = dataclasses.replace(fit, data=dataclasses.replace(fit.data, file="rows.jsonl", given=given))
    assert called(REVERSE, mine, mine) == "my.csv · reverse"
    assert called(REVERSE, mine, change(mine, epochs=2)) == "my.csv · reverse · 2 epochs"
    named = dataclasses.replace(mine, name="my.csv · reverse")
    others = dataclasses.replace(mine, data=dataclasses.replace(mine.data, given=Given(name="yours.csv", count=80)))
    assert called(named, others, others) == "yours.csv"
    assert called(QUICK, fitted(QUICK, "copy"), fitted(QUICK, "copy")) == "copy · quick"


def test_names_that_are_taken_get_a_number() -> None:
    assert numbered("quick", ["reverse"]) == "quick"
    assert numbered("quick", ["quick"]) == "quick (2)"
    assert numbered("quick", ["quick", "quick (2)", "quick (4)"]) == "quick (3)"
    assert len(numbered("x" * LONGEST_NAME, ["x" * LONGEST_NAME])) <= LONGEST_NAME


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("there", [12, 120, 60_000])
def test_every_preset_fits_a_table_of_any_size(name: str, there: int) -> None:
    spec = fitted(PRESETS[name], "table", there=there)
    assert spec.data.source == "table"
    assert spec.data.tokenizer != "character"
    assert spec.data.examples + spec.data.held_out <= there
    steps = spec.training.epochs * math.ceil(spec.data.examples / spec.training.batch_size)
    assert steps >= 100


def test_what_was_set_by_hand_stays_with_another_source_of_the_same_kind() -> None:
    assert settings(fitted(QUICK, "table", there=60_000)) == settings(QUICK) | {"source": "table"}
    assert fitted(QUICK, "reviews") == QUICK
