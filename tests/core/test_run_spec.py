"""A run's spec: read back it is the same, and what lies outside its range is refused by name."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.config import ModelConfig
from transformer_core.training.config import TrainConfig
from transformer_core.training.runs.spec import BOUNDS, KIND_OF_SOURCE, DataSpec, Origin, RunSpec


@given(
    source=st.sampled_from(sorted(KIND_OF_SOURCE)),
    examples=st.integers(*BOUNDS["examples"]),
    d_model=st.sampled_from([8, 64, 512]),
    rate=st.floats(1e-6, 1.0),
    frames=st.integers(*BOUNDS["frames"]),
    name=st.text(min_size=1, max_size=80).filter(str.strip),
    origin=st.none() | st.builds(Origin, run=st.just("ab12cd34"), frame=st.none() | st.integers(0, 63)),
)
def test_a_spec_survives_json(source, examples, d_model, rate, frames, name, origin) -> None:
    spec = RunSpec(
        name=name,
        data=DataSpec(source=source, examples=examples),
        model=ModelConfig(vocab_size=16, d_model=d_model, n_heads=4),
        training=TrainConfig(learning_rate=rate, clip_norm=None),
        frames=frames,
        origin=origin,
    )
    assert RunSpec.from_json(spec.to_json()) == spec


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
