"""Recurrent layers are torch's own, padding or not; models of them are the same step by step as at once."""

from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers import refusals
from tests.helpers.engine import (
    close,
    inputs,
    made,
    padded_ids,
    tiny_recurrent,
    tiny_recurrent_classifier,
    tiny_recurrent_lm,
)
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.evaluation.gpt import measure_text
from transformer_core.generation import beam_search, best_of, greedy, greedy_words, sample, translate
from transformer_core.models.output import sentence_site
from transformer_core.models.recurrent import (
    Bidirectional,
    Gru,
    Lstm,
    RecurrentClassifier,
    RecurrentLm,
    Rnn,
    Seq2Seq,
)
from transformer_core.models.recurrent.cells import initialize_cell
from transformer_core.models.recurrent.layers import Recurrent
from transformer_core.probe import capture
from transformer_core.recipes.lm import d_hidden_of
from transformer_core.sites import RECURRENT_SITES, site_of
from transformer_core.text import Tokenizer
from transformer_core.trace import Trace
from transformer_core.training.objectives import next_words

INPUT, HIDDEN, BATCH, LENGTH = 5, 6, 4, 7
UNITS = {"tanh": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
TWINS = tuple(zip((Rnn, Gru, Lstm), UNITS.values(), strict=True))
each_twin = pytest.mark.parametrize(("ours", "theirs"), TWINS, ids=lambda kind: kind.__name__)


def batch() -> tuple[Tensor, Tensor]:
    """Return inputs (batch, pos, d_input) and which of them are real; row i ends in i positions of padding."""
    x = torch.randn(BATCH, LENGTH, INPUT, generator=torch.Generator().manual_seed(1))
    return x, padded_ids(BATCH, LENGTH) != 0


@torch.no_grad()
def copy(layer: Recurrent, twin: nn.RNNBase, suffix: str = "") -> None:
    """Give torch's layer our weights, which lie in the same order of gates."""
    for which, linear in (("ih", layer.cell.input_proj), ("hh", layer.cell.hidden_proj)):
        getattr(twin, f"weight_{which}_l0{suffix}").copy_(linear.weight)
        getattr(twin, f"bias_{which}_l0{suffix}").copy_(linear.bias)


def packed(twin: nn.RNNBase, x: Tensor, real: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run torch's layer over packed sequences: (batch, pos, ...), and states (direction, batch, d_hidden)."""
    rows = nn.utils.rnn.pack_padded_sequence(x, real.sum(1), batch_first=True, enforce_sorted=False)
    outputs, state = twin(rows)
    outputs, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True, total_length=LENGTH)
    return outputs, state if isinstance(state, tuple) else (state,)


@each_twin
@pytest.mark.parametrize("masked", [True, False])
def test_a_layer_is_torchs(ours, theirs, masked: bool) -> None:
    torch.manual_seed(0)
    layer, twin = ours(INPUT, HIDDEN), theirs(INPUT, HIDDEN, batch_first=True)
    copy(layer, twin)
    x, real = batch()
    real = real if masked else torch.ones_like(real)
    expected, states = packed(twin, x, real)
    outputs, found = layer(x, real=real)
    close(outputs, expected)
    for state, other in zip(found, states, strict=True):
        close(state, other[0])


@each_twin
def test_gradients_are_torchs(ours, theirs) -> None:
    torch.manual_seed(0)
    layer, twin = ours(INPUT, HIDDEN), theirs(INPUT, HIDDEN, batch_first=True)
    copy(layer, twin)
    x, real = batch()
    packed(twin, x, real)[0].square().sum().backward()
    layer(x, real=real)[0].square().sum().backward()
    close(layer.cell.hidden_proj.weight.grad, twin.weight_hh_l0.grad)
    close(layer.cell.input_proj.weight.grad, twin.weight_ih_l0.grad)


@pytest.mark.parametrize("unit", UNITS)
def test_both_directions_are_torchs(unit: str) -> None:
    torch.manual_seed(0)
    layer, twin = Bidirectional(unit, INPUT, HIDDEN), UNITS[unit](INPUT, HIDDEN, batch_first=True, bidirectional=True)
    copy(layer.forward_layer, twin)
    copy(layer.backward_layer, twin, "_reverse")
    x, real = batch()
    expected, states = packed(twin, x, real)
    outputs, found = layer(x, real=real)
    close(outputs, expected)
    for state, other in zip(found, states, strict=True):
        close(state, torch.cat((other[0], other[1]), -1))


@each_twin
def test_a_layer_goes_on_from_a_state(ours, theirs) -> None:
    layer = ours(INPUT, HIDDEN)
    x, _ = batch()
    whole, last = layer(x)
    first, state = layer(x[:, :3])
    second, end = layer(x[:, 3:], state)
    close(torch.cat((first, second), 1), whole)
    close(end[0], last[0])


def test_cells_start_orthogonal_gate_by_gate() -> None:
    layer = Gru(INPUT, HIDDEN)
    initialize_cell(layer.cell, torch.Generator().manual_seed(0))
    for block in layer.cell.hidden_proj.weight.detach().chunk(3):
        close(block @ block.T, torch.eye(HIDDEN))
    assert not layer.cell.input_proj.bias.any()


CASES = [(unit, pooling, both) for unit in UNITS for pooling in ("last", "mean") for both in (False, True)]
each = pytest.mark.parametrize(("unit", "pooling", "both"), CASES)


def copied(unit: str, layer: Any, both: bool) -> nn.RNNBase:
    """Return torch's layer with our weights."""
    theirs = UNITS[unit](16, 10, batch_first=True, bidirectional=both)
    for one, end in [(layer.forward_layer, ""), (layer.backward_layer, "_reverse")] if both else [(layer, "")]:
        copy(one, theirs, end)
    return theirs


@each
@torch.no_grad()
def test_it_is_torchs_layer_and_a_map_to_the_classes(unit: str, pooling: str, both: bool) -> None:
    model = made(RecurrentClassifier, unit=unit, pooling=pooling, bidirectional=both)
    ids = torch.randint(1, 13, (3, 7), generator=torch.Generator().manual_seed(1))
    outputs, ends = copied(unit, model.recurrent, both)(model.embedding(ids) * 4.0)
    last = ends[0] if unit == "lstm" else ends  # (direction, batch, d_hidden)
    vector = torch.cat(tuple(last), -1) if pooling == "last" else outputs.mean(1)
    logits, trace = capture(model, ids)
    close(trace[sentence_site(model)], vector)
    close(logits, model.class_proj(vector))


CHANGES = {
    "gru": {},
    "lstm": {"unit": "lstm", "attention": "dot_product"},
    "plain": {"unit": "tanh", "attention": None, "bidirectional": False},
}
each_site_variant = pytest.mark.parametrize("variant", CHANGES)


@cache
def recorded(variant: str) -> tuple[Seq2Seq, Trace]:
    """Capture everything that a tiny model computes."""
    model = made(Seq2Seq, **CHANGES[variant])
    return model, capture(model, *inputs(Seq2Seq))[1]


@each_site_variant
def test_every_tensor_has_the_shape_and_the_scale_that_its_row_states(variant: str) -> None:
    model, trace = recorded(variant)
    config = model.config
    sizes = {"batch": 3, "head": 1, "d_model": 16, "d_hidden": 10, "d_memory": config.d_memory, "vocab": 13}
    for name, tensor in trace.items():
        row, here = site_of(name), 6 if name.startswith("encoder.") else 5
        expected = sizes | {"pos": here, "query_pos": 5, "key_pos": 6}
        assert tuple(tensor.shape) == tuple(expected[axis] for axis in row.axes), name
        if row.scale == "probability":
            assert 0 <= tensor.min() <= tensor.max() <= 1, name


def test_every_row_is_recorded_somewhere() -> None:
    leaves = {name.rpartition(".")[2] for variant in CHANGES for name in recorded(variant)[1]}
    assert leaves >= set(RECURRENT_SITES)


LEAVES = {
    "tanh": {"hidden"},
    "gru": {"reset_gate", "update_gate", "candidate", "hidden"},
    "lstm": {"input_gate", "forget_gate", "candidate", "output_gate", "cell", "hidden"},
}
TEXT = "to be, or not to be: that is the question\n" * 5
each_unit = pytest.mark.parametrize("unit", UNITS)


def full_ids(length: int = 9) -> torch.Tensor:
    """Return three texts without padding."""
    return torch.randint(1, 13, (3, length), generator=torch.Generator().manual_seed(2))


def bundle_of(unit: str) -> Bundle:
    """Return a bundle of a tiny model with a tokenizer of characters."""
    tokenizer = Tokenizer.train("character", [TEXT], vocab_size=100, min_frequency=1, template="none")
    return Bundle("tiny", made(RecurrentLm, unit=unit, vocab_size=tokenizer.vocab_size), tokenizer)


@each_unit
@torch.no_grad()
def test_scores_are_those_of_torchs_layer_and_a_linear_map(unit: str) -> None:
    model, ids = made(RecurrentLm, unit=unit), full_ids()
    layer, output = copied(unit, model.recurrent, False), nn.Linear(10, 13)
    output.weight.copy_(model.output.weight)
    output.bias.copy_(model.output.bias)
    close(model(ids), output(layer(4.0 * model.embedding.weight[ids])[0]))


@pytest.mark.parametrize("one_hot", [False, True])
@each_unit
def test_probed_equals_unprobed_and_every_tensor_is_as_its_site_says(unit: str, one_hot: bool) -> None:
    model, ids = made(RecurrentLm, unit=unit, one_hot=one_hot), padded_ids(3, 5)
    with torch.inference_mode():
        silent = model(ids)
    logits, trace = capture(model, ids)
    close(logits, silent)
    inputs = ("one_hot",) if one_hot else ("token_embedding", "scaled_embedding")
    before = {f"recurrent.{leaf}" for leaf in ("token_ids", *inputs)}
    assert set(trace) == before | {f"recurrent.{leaf}" for leaf in LEAVES[unit]} | {"logits"}
    sizes = {"batch": 3, "pos": 5, "d_model": 16, "d_hidden": 10, "vocab": 13}
    for name, tensor in trace.items():
        assert tuple(tensor.shape) == tuple(sizes[axis] for axis in site_of(name).axes), name


@each_unit
def test_a_text_is_continued_from_its_state_however_long_it_grows(unit: str) -> None:
    model, ids = made(RecurrentLm, unit=unit), full_ids()[:1]
    written = list(greedy_words(model, ids, most=20))
    text = torch.cat((ids, torch.tensor([[step.token_id for step in written]])), 1)  # past max_len=12
    with torch.inference_mode():
        logits = model(text)[0, 8:-1]
    close(torch.stack([step.logits for step in written]), logits)
    draws = [list(sample(model, ids, most=9, generator=torch.Generator().manual_seed(3))) for _ in range(2)]
    assert [step.token_id for step in draws[0]] == [step.token_id for step in draws[1]]


@each_unit
def test_a_bundle_comes_back_and_is_measured_in_windows_of_max_len(unit: str, tmp_path) -> None:
    bundle = bundle_of(unit)
    save(bundle, tmp_path / "tiny")
    loaded = load(tmp_path / "tiny", device="cpu")
    assert (loaded.kind, loaded.config) == ("lm", bundle.config)
    (tmp_path / "text.txt").write_text(TEXT)
    measured = evaluate(tmp_path / "tiny", tmp_path / "text.txt", device="cpu", batch_size=3)
    assert measured["loss_nats"] == measure_text(bundle, TEXT)["loss_nats"]
    ids = torch.tensor([bundle.tokenizer.encode(TEXT).ids])
    losses = [
        (len(window) - 1) * next_words(bundle.model, window[None]).item()
        for window in (ids[0, start : start + 13] for start in range(0, ids.shape[1] - 1, 12))
    ]
    assert measured["loss_nats"] == pytest.approx(sum(losses) / (ids.shape[1] - 1), abs=1e-4)


@each_unit
@pytest.mark.parametrize("n_parameters", [30_000, 1_818_240])
def test_a_width_is_found_for_a_number_of_parameters(unit: str, n_parameters: int) -> None:
    sizes = {"d_model": 48, "vocab_size": 72}

    def count(d_hidden: int) -> int:
        config = tiny_recurrent_lm(unit=unit, d_hidden=d_hidden, **sizes)
        with torch.device("meta"):
            return sum(parameter.numel() for parameter in RecurrentLm(config).parameters())

    width = d_hidden_of(unit, n_parameters=n_parameters, **sizes)
    assert width % 8 == 0
    away = {other: abs(count(other) - n_parameters) for other in (width - 8, width, width + 8)}
    assert min(away, key=away.__getitem__) == width


ATTENTIONS = (None, "dot_product", "additive")
VARIANTS = [
    {"unit": unit, "attention": attention, "bidirectional": both}
    for unit, attention, both in product(UNITS, ATTENTIONS, (True, False))
]
each_variant = pytest.mark.parametrize("changes", VARIANTS, ids=lambda changes: "-".join(map(str, changes.values())))


@each_variant
def test_the_attention_says_what_reaches_the_decoder(changes: dict) -> None:
    model, (source, target) = made(Seq2Seq, **changes), inputs(Seq2Seq)
    _, trace = capture(model, source, target)
    if changes["attention"] is None:
        assert not trace.select("*.weights")
        expected = trace["encoder.summary"][:, None].expand_as(trace["decoder.context"])
    else:
        weights = trace["decoder.alignment.weights"][:, 0]  # (batch, target_pos, source_pos)
        close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert not weights.transpose(1, 2)[source == 0].any()
        expected = weights @ trace["encoder.annotations"]
    close(trace["decoder.context"], expected)


def test_an_edit_acts_at_every_step() -> None:
    model, given = made(Seq2Seq, bidirectional=False), inputs(Seq2Seq)
    shapes = []

    def shut(gate: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(gate.shape))
        return torch.ones_like(gate)

    _, trace = capture(model, *given, edits={"encoder.update_gate": shut})
    assert shapes == [(3, 1, 10)] * 6
    assert (trace["encoder.update_gate"] == 1).all()
    close(trace["encoder.hidden"], torch.zeros(3, 6, 10))  # a state that is kept whole stays at its beginning


def test_it_writes_by_every_search() -> None:
    tokenizer = Tokenizer.train("word", ["a cat sat on a mat"], min_frequency=1, template="bos_eos")
    bundle = Bundle("glass", made(Seq2Seq, vocab_size=tokenizer.vocab_size), tokenizer)
    texts = ["a cat", "a cat sat on a mat", "mat"]
    ends = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    for text, translation in zip(texts, translate(bundle, texts, width=1), strict=True):
        source = torch.tensor([tokenizer.encode(text).ids])
        written = [step.token_id for step in greedy(bundle.model, source, most=11, **ends)]
        best = best_of(beam_search(bundle.model, source, width=1, most=11, **ends))
        assert list(best.token_ids) == written
        assert translation == tokenizer.decode(written)
    assert len(translate(bundle, texts, width=4)) == 3


def read_by(kind: type, *ids: list) -> Any:
    return made(kind)(*map(torch.tensor, ids))


WHOLE = "must be a whole number from 1 to"
REFUSED = [
    (lambda: tiny_recurrent(d_hidden=0), f"d_hidden=0 {WHOLE} 65536"),
    (lambda: tiny_recurrent(d_model=2.0), f"d_model=2.0 {WHOLE} 65536"),
    (lambda: tiny_recurrent(vocab_size=True), f"vocab_size=True {WHOLE} 1000000"),
    (lambda: tiny_recurrent(pad_id=13), "pad_id=13 must be a whole number from 0 to 12"),
    (lambda: tiny_recurrent(unit="rnn"), "unit='rnn' is unknown; it must be one of 'tanh', 'gru', 'lstm'"),
    (
        lambda: tiny_recurrent(attention="none"),
        "attention='none' is unknown; it must be one of 'dot_product', 'additive'",
    ),
    (lambda: tiny_recurrent(attention=[]), "attention=[] is unknown; it must be one of 'dot_product', 'additive'"),
    (lambda: tiny_recurrent(bidirectional=1), "bidirectional=1 must be True or False"),
    (lambda: tiny_recurrent(dropout=1.0), "dropout=1.0 must be a number, at least 0 and less than 1"),
    (lambda: tiny_recurrent_lm(unit="rnn"), "unit='rnn' is unknown; it must be one of 'tanh', 'gru', 'lstm'"),
    (lambda: tiny_recurrent_classifier(pooling="cls"), "pooling='cls' is unknown"),
    (lambda: tiny_recurrent_classifier(bidirectional="no"), "bidirectional='no' must be True or False"),
    (lambda: tiny_recurrent_classifier(initial_deviation=-1), "initial_deviation=-1 must be None, or more than 0"),
    (lambda: read_by(RecurrentClassifier, [[1] * 13]), "token_ids has 13 positions; max_len=12 is the most"),
    (lambda: read_by(RecurrentLm, [[1, 13]]), "token_ids holds 13, outside the vocabulary: ids run from 0 to 12"),
    (lambda: read_by(Seq2Seq, [[1, 13]], [[1]]), "source_ids holds 13, outside the vocabulary: ids run from 0 to 12"),
    (lambda: read_by(Seq2Seq, [[1]], [[-1]]), "target_ids holds -1, outside the vocabulary"),
    (lambda: read_by(Seq2Seq, [[1] * 13], [[1]]), "source_ids has 13 positions; max_len=12 is the most"),
    (lambda: read_by(Seq2Seq, [[]], [[1]]), "source_ids"),
    (
        lambda: d_hidden_of("gru", n_parameters=500, d_model=16, vocab_size=72),
        "n_parameters=500 must be at least 1,225, more than the embedding has",
    ),
]
test_what_cannot_be_made_or_read_is_refused = refusals(REFUSED)


EVERY = [(RecurrentLm, {"unit": unit}) for unit in UNITS] + [(Seq2Seq, changes) for changes in VARIANTS]
each_model = pytest.mark.parametrize(("kind", "changes"), EVERY, ids=str)


def before_of(kind: type, source: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return what a model reads before the text that it scores."""
    return (source,) if kind is Seq2Seq else ()


@each_model
def test_probed_equals_unprobed_and_later_words_leave_earlier_scores_the_same(kind: type, changes: dict) -> None:
    model, (source, ids) = made(kind, **changes), inputs(Seq2Seq)
    before = before_of(kind, source)
    with torch.inference_mode():
        whole = model(*before, ids)
    close(capture(model, *before, ids)[0], whole)
    changed = ids.clone()
    changed[:, 3:] = ids[:, 3:] % 12 + 1
    close(model(*before, changed)[:, :3], whole[:, :3])
    assert not torch.allclose(model(*before, changed)[:, 3:], whole[:, 3:], atol=1e-2)


POOLED = [(RecurrentClassifier, {"unit": unit, "pooling": how, "bidirectional": both}) for unit, how, both in CASES]


@pytest.mark.parametrize(("kind", "changes"), [*EVERY, *POOLED], ids=str)
def test_padding_and_batch_mates_change_nothing(kind: type, changes: dict) -> None:
    model, given = made(kind, **changes), inputs(kind)
    together = model(*given)
    for row, first in enumerate(given[0]):
        alone = model(first[first != 0][None], *(part[row : row + 1] for part in given[1:]))
        close(together[row : row + 1, : alone.shape[1]], alone)


@each_model
def test_word_by_word_scores_are_those_of_the_whole(kind: type, changes: dict) -> None:
    model, ids, source = made(kind, **changes), full_ids(), inputs(Seq2Seq)[0]
    begun = 0 if kind is Seq2Seq else 2
    whole, state = model(*before_of(kind, source), ids), model.start(source if kind is Seq2Seq else ids[:, :begun])
    first = state
    for place in range(begun, ids.shape[1]):
        logits, state = model.advance(ids[:, place : place + 1], state)
        close(logits, whole[:, place])
    rows = torch.tensor([2, 0, 0, 1])
    close(model.advance(ids[rows, begun : begun + 1], model.reorder(first, rows))[0], whole[rows, begun])
