"""A run's spec: read back it is the same, and what lies outside its range is refused by name."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.config import ModelConfig
from transformer_core.training.config import TrainConfig
from transformer_core.training.spec import BOUNDS, KIND_OF_SOURCE, DataSpec, Given, NetworkSpec, Origin, RunSpec
from transformer_core.training.tasks.make import make_task


@given(
    source=st.sampled_from(sorted(KIND_OF_SOURCE)),
    examples=st.integers(*BOUNDS["examples"]),
    d_model=st.sampled_from([8, 64, 512]),
    rate=st.floats(1e-6, 1.0),
    frames=st.integers(*BOUNDS["frames"]),
    name=st.text(min_size=1, max_size=80).filter(str.strip),
    given=st.none() | st.builds(Given, name=st.text(max_size=80), count=st.integers(1)),
    network=st.builds(
        NetworkSpec,
        network=st.sampled_from(["transformer", "rnn", "gru", "lstm"]),
        alignment=st.sampled_from(["additive", "dot_product", "none"]),
        bidirectional=st.booleans(),
        initial=st.sampled_from(["usual", "normal"]),
    ),
    origin=st.none() | st.builds(Origin, run=st.just("ab12cd34"), frame=st.none() | st.integers(0, 63)),
)
def test_a_spec_survives_json(source, examples, d_model, rate, frames, name, given, network, origin) -> None:
    network = NetworkSpec() if source == "masked_words" else network
    spec = RunSpec(
        name=name,
        data=DataSpec(source=source, examples=examples, given=given),
        model=ModelConfig(vocab_size=16, d_model=d_model, n_heads=4),
        training=TrainConfig(learning_rate=rate, clip_norm=None),
        frames=frames,
        network=network,
        origin=origin,
    )
    assert RunSpec.from_json(spec.to_json()) == spec


def test_a_spec_of_an_earlier_version_is_a_transformers() -> None:
    values = json.loads(RunSpec().to_json())
    del values["network"]
    assert RunSpec.from_json(json.dumps(values)) == RunSpec()
    assert RunSpec().kind == "classifier"


def test_a_recurrent_network_learns_no_hidden_words_and_says_so() -> None:
    with pytest.raises(ValueError, match="network='gru' does not learn source='masked_words'"):
        RunSpec(data=DataSpec(source="masked_words"), network=NetworkSpec(network="gru"))
    with pytest.raises(ValueError, match="network='cnn' is unknown"):
        NetworkSpec(network="cnn")
    with pytest.raises(ValueError, match="bidirectional=1 must be True or False"):
        NetworkSpec(bidirectional=1)


@pytest.mark.parametrize("part", ["data", "run", "model", "training"])
def test_bounds_hold_on_the_server(part: str) -> None:
    owner = {"data": DataSpec, "run": RunSpec, "model": ModelConfig, "training": TrainConfig}[part]
    for name in {field.name for field in dataclasses.fields(owner)} & BOUNDS.keys():
        if part in ("model", "training") and name == "vocab_size":
            continue
        for value in (BOUNDS[name][0] - 1, BOUNDS[name][1] + 1):
            with pytest.raises(ValueError, match=f"{name}={value}"):
                make(part, name, value)


def make(part: str, name: str, value: int) -> RunSpec:
    """Return a spec in which one number differs from the default."""
    if part == "data":
        return RunSpec(data=DataSpec(**{name: value}))
    if part == "run":
        return RunSpec(**{name: value})
    if part == "training":
        return RunSpec(training=TrainConfig(**{name: value}))
    sizes = {"d_head": 8} if name in ("d_model", "n_heads") else {}
    return RunSpec(model=ModelConfig(vocab_size=16, **{name: value, **sizes}))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"source": "film"}, "source='film' is unknown"),
        ({"language": "de"}, "language='de' is unknown"),
        ({"tokenizer": "syllable"}, "tokenizer='syllable' is unknown"),
        ({"labels": ("one",)}, "2 to 20 names"),
        ({"labels": ("a", "a")}, "must differ"),
        ({"file": "../data.jsonl"}, "without a folder"),
        ({"file": ".."}, "without a folder"),
        ({"examples": True}, "examples=True"),
    ],
)
def test_data_that_cannot_be_is_refused(values, words) -> None:
    with pytest.raises(ValueError, match=words):
        DataSpec(**values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"source": "reviews", "file": "rows.jsonl"}, "source='reviews' is generated and learns from no file"),
        ({"source": "copy", "file": "rows.jsonl"}, "source='copy' is generated"),
        ({"source": "reviews", "labels": ("food", "travel")}, "labels=.* are of a table; source='reviews'"),
        ({"source": "imdb", "file": "rows.jsonl", "labels": ("food", "travel")}, "labels=.* are of a table"),
        ({"source": "table"}, "file=None must name the data of source='table'"),
        ({"source": "characters", "given": Given(name="", count=9)}, "given=.* needs the name of its file"),
    ],
)
def test_data_whose_parts_do_not_fit_may_be_looked_at_but_not_learned_from(values, words) -> None:
    spec = RunSpec(data=DataSpec(**values))
    assert RunSpec.from_json(spec.to_json()) == spec
    with pytest.raises(ValueError, match=words):
        spec.data.require_fitting()
    with pytest.raises(ValueError, match=words):
        make_task(spec, None)


def test_data_are_described_by_one_line() -> None:
    mine = DataSpec(
        source="table", file="rows.jsonl", labels=("food", "travel"), given=Given(name="my.csv", count=1_200)
    )
    text = DataSpec(source="characters", file="passage.txt", given=Given(name="", count=3_412))
    assert mine.described == "my.csv, 1,200 rows, food / travel"
    assert text.described == "pasted text, 3,412 characters"
    assert DataSpec().described == "built-in reviews in English, 4,000"
    assert DataSpec(source="imdb", file="rows.jsonl", given=Given(name="", count=8)).described == "IMDB reviews, 8"
    assert DataSpec(source="sort").described == "sort: up to 10 of 12 letters, 4,000 rows"


def test_a_spec_of_an_earlier_version_is_read() -> None:
    values = json.loads(RunSpec(data=DataSpec(source="table", file="rows.jsonl", labels=("food", "travel"))).to_json())
    del values["data"]["given"]
    assert RunSpec.from_json(json.dumps(values)).data.described == "a table, food / travel"


@pytest.mark.parametrize("name", ["", "   ", "x" * 81])
def test_a_run_needs_a_name_that_fits(name: str) -> None:
    with pytest.raises(ValueError, match="name="):
        RunSpec(name=name)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"data": 3}', "null", "[" * 100_000])
def test_what_is_no_spec_is_refused_with_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"settings cannot be read|Expecting"):
        RunSpec.from_json(text)


def test_an_unknown_entry_is_refused() -> None:
    values = json.loads(RunSpec().to_json()) | {"surprise": 1}
    with pytest.raises(ValueError, match="surprise"):
        RunSpec.from_json(json.dumps(values))
