"""Tasks and specs: batches repeat with their seed, measures are what they say, what cannot be is refused by name."""

import dataclasses
import json
import math
from itertools import product
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import nightly_but
from transformer_core.bundle import MODELS
from transformer_core.config import PADDED, ModelConfig
from transformer_core.text import MASK, PAD_ID
from transformer_core.training.batching import in_turn
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Run
from transformer_core.training.objectives import next_target_words
from transformer_core.training.spec import BOUNDS, KIND_OF_SOURCE, DataSpec, Given, NetworkSpec, Origin, RunSpec
from transformer_core.training.tasks.make import held_out_of, make_task
from transformer_core.training.tasks.sequences import PairPart
from transformer_core.training.tasks.task import sample_size, word_measures
from transformer_core.untrusted.tables.pairs import write_pairs

SMALL = ModelConfig(vocab_size=16, d_model=16, n_heads=2, d_ff=16, n_layers=1, max_len=32, dropout=0.0)
SOURCES = ("reviews", "copy", "reverse", "sort", "pairs", "characters", "masked_words")


def spec_of(source: str, **data: object) -> RunSpec:
    """Return a spec whose data are made in no time."""
    sizes = {"examples": 96, "held_out": 32, "length": 5, **data}
    training = TrainConfig(batch_size=16, learning_rate=1e-2)
    return RunSpec(data=DataSpec(source=source, **sizes), model=SMALL, training=training, points=40)


def fresh_model(task) -> torch.nn.Module:
    """Return an untrained model of a task, the same each time."""
    torch.manual_seed(0)
    return MODELS[task.kind](task.config).eval()


def tensors(batch) -> list[torch.Tensor]:
    """Return what a batch is made of."""
    return [batch] if isinstance(batch, torch.Tensor) else list(vars(batch).values())


@pytest.mark.parametrize("source", nightly_but(SOURCES, set(SOURCES) - {"copy", "sort"}))
def test_a_task_trains_repeats_itself_and_measures_both_parts(source: str) -> None:
    task, again = make_task(spec_of(source), None), make_task(spec_of(source), None)
    batches = list(task.batches(0))
    assert len(batches) == task.steps_per_epoch
    for one, other in zip(batches, again.batches(0), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(other), strict=True))
    model = fresh_model(task)
    before = task.measure(model, True)
    assert before.keys() == {"train_loss", "train_accuracy", "held_out_loss", "held_out_accuracy"}
    assert before == task.measure(model, True)
    training = TrainConfig(batch_size=16, learning_rate=1e-2, epochs=2)
    run = Run(model, task.objective, task.batches, steps_per_epoch=task.steps_per_epoch, config=training)
    for _ in run.steps():
        pass
    assert task.measure(model.eval(), True)["train_loss"] < before["train_loss"]


@pytest.mark.parametrize("source", nightly_but(SOURCES, {"masked_words"}))
def test_a_step_and_the_measures_before_it_come_out_alike_on_a_device(device: torch.device, source: str) -> None:
    config, found = TrainConfig(batch_size=16, learning_rate=1e-2, epochs=1), []
    for place in (torch.device("cpu"), device):
        task = make_task(spec_of(source), None, place)
        model = fresh_model(task).to(place)
        measured = task.measure(model, True)
        run = Run(model, task.objective, task.batches, steps_per_epoch=task.steps_per_epoch, config=config)
        step = next(run.steps())
        found.append([measured["train_loss"], measured["held_out_loss"], step.loss, step.gradient_norm])
    assert run.device.type == device.type
    assert found[1] == pytest.approx(found[0], rel=1e-4)


def test_pairs_are_padded_with_what_their_model_takes_for_padding() -> None:
    task = make_task(spec_of("pairs"), None)
    config = dataclasses.replace(task.config, pad_is_read=True)
    assert config.padding == PADDED
    model, reads_pads = fresh_model(task), MODELS[task.kind](config).eval()
    reads_pads.load_state_dict(model.state_dict())
    pairs = [("The dog sleeps.", "a"), ("A dog", "The dog sleeps in a house.")]
    batch, other = (
        PairPart(pairs, task.tokenizer, torch.device("cpu"), padding=padding).batch([0, 1])
        for padding in (PAD_ID, PADDED)
    )
    assert (other.source_ids == PADDED).any()
    assert (other.target_ids == PADDED).any()
    loss = next_target_words(model, batch)
    assert next_target_words(reads_pads, other, padding=PADDED).item() == pytest.approx(loss.item(), rel=1e-5)


@pytest.mark.parametrize("source", SOURCES)
def test_measuring_draws_no_random_numbers(source: str) -> None:
    task = make_task(spec_of(source), None)
    model = fresh_model(task)
    state = torch.get_rng_state()
    task.measure(model, False)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("source", ["reviews", "pairs", "copy", "characters", "masked_words"])
def test_what_a_run_holds_out_is_read_again_without_its_task(source: str, tmp_path: Path) -> None:
    spec = spec_of(source)
    task, found = make_task(spec, None), held_out_of(spec, tmp_path)
    assert len(found) == task.counts.get("held_out", len(found)) > 1
    if task.points is not None:
        of_points = zip(task.points.texts, task.points.labels, task.points.held_out, strict=True)
        assert {(text, label) for text, label, held_out in of_points if held_out} <= set(found)
    elif source in ("pairs", "copy"):
        assert found[0][0] == task.prompt
        assert all(answer for _, answer in found)
    else:
        assert all(answer is None and text for text, answer in found)


def test_points_are_of_both_parts_and_marked() -> None:
    task = make_task(spec_of("reviews"), None)
    points = task.points
    assert points is not None
    assert len(points) == len(points.labels) == len(points.held_out) == len(points.token_ids) == 40
    assert sum(points.held_out) == 20
    trained_on = {tuple(row[row != PAD_ID].tolist()) for batch in task.batches(0) for row in batch.token_ids}
    for row, held_out in zip(points.token_ids, points.held_out, strict=True):
        assert (tuple(row[row != PAD_ID].tolist()) in trained_on) == (not held_out)
    assert task.baselines.keys() == {"majority", "bag_of_words"}


def test_a_table_brings_its_own_classes(tmp_path) -> None:
    rows = [{"text": f"{word} {number}", "label": label} for number in range(60) for label, word in enumerate("abc")]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    data = {"file": "data.jsonl", "labels": ("x", "y", "z"), "vocab_size": 64, "held_out": 32}
    task = make_task(spec_of("table", **data), tmp_path)
    assert (task.kind, task.labels, task.config.n_classes) == ("classifier", ("x", "y", "z"), 3)
    with pytest.raises(ValueError, match=r"file='data.jsonl' must name the data"):
        make_task(spec_of("table", **data), None)


def test_text_of_ones_own_is_learned_from(tmp_path) -> None:
    (tmp_path / "text.txt").write_text("abcdefgh " * 200, encoding="utf-8")
    task = make_task(spec_of("characters", file="text.txt"), tmp_path)
    assert set(task.prompt) <= set("abcdefgh ")
    (tmp_path / "short.txt").write_text("abc", encoding="utf-8")
    with pytest.raises(ValueError, match="3 characters is too short"):
        make_task(spec_of("characters", file="short.txt"), tmp_path)
    with pytest.raises(ValueError, match="1 different sentences"):
        make_task(spec_of("masked_words", file="short.txt"), tmp_path)


def test_masked_words_begin_with_a_hidden_word() -> None:
    assert MASK in make_task(spec_of("masked_words"), None).prompt


def test_sequences_need_room() -> None:
    spec = dataclasses.replace(spec_of("reverse"), model=dataclasses.replace(SMALL, max_len=8))
    with pytest.raises(ValueError, match="max_len=8 must be at least 12"):
        make_task(dataclasses.replace(spec, data=dataclasses.replace(spec.data, length=10)), None)


def test_measures_count_real_words_and_whole_rows() -> None:
    logits = torch.full((2, 3, 4), -50.0)
    words = torch.tensor([[1, 2, 0], [3, 1, 2]])
    for row, place, guess in ((0, 0, 1), (0, 1, 2), (0, 2, 3), (1, 0, 3), (1, 1, 1), (1, 2, 1)):
        logits[row, place, guess] = 50.0
    loss, right, rows = word_measures(iter([(logits, words)]))
    assert (right, rows) == (pytest.approx(4 / 5), pytest.approx(1 / 2))
    assert loss == pytest.approx(100 / 5)


def test_all_examples_come_in_turn_and_a_sample_is_bounded() -> None:
    lengths = [5, 900, 3, 3, 40, 20_000]
    assert sorted(place for places in in_turn(lengths) for place in places) == list(range(6))
    assert sample_size([16] * 5_000) == 256
    assert sample_size([400] * 5_000) == 64
    assert sample_size([16] * 10) == 10


RECURRENT = list(product(("reviews", "reverse", "characters"), ("rnn", "gru", "lstm")))


@pytest.mark.parametrize(
    ("source", "network"), nightly_but(RECURRENT, [("reviews", "gru"), ("reverse", "lstm"), ("characters", "rnn")])
)
def test_a_recurrent_network_takes_the_place_of_the_transformer_and_the_data_stay(source: str, network: str) -> None:
    usual = spec_of(source)
    spec = dataclasses.replace(usual, network=NetworkSpec(network=network))
    task, other = make_task(spec, None), make_task(usual, None)
    assert task.kind == spec.kind == {"reviews": "recurrent_classifier", "reverse": "seq2seq"}.get(source, "lm")
    assert task.config.unit == {"rnn": "tanh"}.get(network, network)
    assert task.config.d_hidden == task.config.d_model == SMALL.d_model
    for one, same in zip(task.batches(0), other.batches(0), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(same), strict=True))
    model = fresh_model(task)
    before = task.measure(model, True)["train_loss"]
    training = TrainConfig(batch_size=16, learning_rate=1e-2, epochs=2)
    run = Run(model, task.objective, task.batches, steps_per_epoch=task.steps_per_epoch, config=training)
    for _ in run.steps():
        pass
    assert task.measure(model.eval(), True)["train_loss"] < before


@pytest.mark.parametrize("network", nightly_but(["rnn", "gru", "lstm"], ["gru"]))
def test_weights_of_deviation_one_hundredth_start_a_language_model_at_the_logarithm_of_its_vocabulary(network) -> None:
    spec = dataclasses.replace(spec_of("characters"), network=NetworkSpec(network=network, initial="normal"))
    task = make_task(spec, None)
    model = fresh_model(task)
    assert task.measure(model, True)["held_out_loss"] == pytest.approx(math.log(task.config.vocab_size), abs=2e-3)
    for name, parameter in model.named_parameters():
        expected = 0.0 if parameter.dim() == 1 else 0.01
        assert float(parameter.detach().std()) == pytest.approx(expected, rel=0.15), name


def test_own_pairs_are_learned_from_and_a_quarter_at_most_is_held_out(tmp_path) -> None:
    pairs = [(f"the {word} {n}", f"le {word} {n}") for n in range(20) for word in ("cat", "dog")]
    (tmp_path / "pairs.tsv").write_bytes(write_pairs(pairs))
    task = make_task(spec_of("pairs", file="pairs.tsv", held_out=30, vocab_size=64), tmp_path)
    assert task.kind == "translation"
    train = {tuple(row[row != PAD_ID].tolist()) for batch in task.batches(0) for row in batch.source_ids}
    assert len(train) == 30
    assert tuple(task.tokenizer.encode(task.prompt).ids) not in train
    with pytest.raises(ValueError, match=r"which counts 40$"):
        make_task(spec_of("pairs", file="pairs.tsv", given=Given(name="", count=9), held_out=30), tmp_path)


def test_a_translation_counts_words_and_letters_count_whole_rows() -> None:
    for source in ("pairs", "reverse"):
        task = make_task(spec_of(source), None)
        found = task.measure(fresh_model(task), True)["held_out_accuracy"]
        assert 0 <= found < 0.3
    assert "le" in make_task(spec_of("pairs"), None).tokenizer.vocabulary()


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
