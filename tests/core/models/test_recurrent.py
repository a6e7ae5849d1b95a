"""Recurrent layers are torch's own, padding or not, and what they record is what SITES says."""

from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.engine import close, exactly, inputs, made, padded_ids, tiny_recurrent, tiny_recurrent_classifier
from transformer_core.models.output import sentence_site
from transformer_core.models.recurrent import Bidirectional, Gru, Lstm, RecurrentClassifier, Rnn, Seq2Seq
from transformer_core.models.recurrent.cells import initialize_cell
from transformer_core.models.recurrent.layers import Recurrent
from transformer_core.probe import capture
from transformer_core.sites import RECURRENT_SITES, site_of
from transformer_core.trace import Trace

INPUT, HIDDEN, BATCH, LENGTH = 5, 6, 4, 7
TWINS = ((Rnn, nn.RNN), (Gru, nn.GRU), (Lstm, nn.LSTM))
UNITS = {"tanh": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
each_twin = pytest.mark.parametrize(("ours", "theirs"), TWINS, ids=lambda kind: kind.__name__)


def batch() -> tuple[Tensor, Tensor]:
    """Return inputs (batch, pos, d_input) and which of them are real; row i ends in i positions of padding."""
    x = torch.randn(BATCH, LENGTH, INPUT, generator=torch.Generator().manual_seed(1))
    return x, padded_ids(BATCH, LENGTH) != 0


@torch.no_grad()
def copy(layer: Recurrent, twin: nn.RNNBase, suffix: str = "") -> None:
    """Give a layer the weights of torch's, which lie in the same order of gates."""
    cell = layer.cell
    cell.input_proj.weight.copy_(getattr(twin, f"weight_ih_l0{suffix}"))
    cell.hidden_proj.weight.copy_(getattr(twin, f"weight_hh_l0{suffix}"))
    cell.input_proj.bias.copy_(getattr(twin, f"bias_ih_l0{suffix}"))
    cell.hidden_proj.bias.copy_(getattr(twin, f"bias_hh_l0{suffix}"))


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_hidden": 0}, "d_hidden=0 must be a whole number from 1 to 65536"),
        ({"d_model": 2.0}, "d_model=2.0 must be a whole number from 1 to 65536"),
        ({"vocab_size": True}, "vocab_size=True must be a whole number from 1 to 1000000"),
        ({"pad_id": 13}, "pad_id=13 must be a whole number from 0 to 12"),
        ({"unit": "rnn"}, "unit='rnn' is unknown; it must be one of 'tanh', 'gru', 'lstm'"),
        ({"attention": "none"}, "attention='none' is unknown; it must be one of 'dot_product', 'additive'"),
        ({"attention": []}, "attention=[] is unknown; it must be one of 'dot_product', 'additive'"),
        ({"bidirectional": 1}, "bidirectional=1 must be True or False"),
        ({"dropout": 1.0}, "dropout=1.0 must be a number, at least 0 and less than 1"),
    ],
)
def test_a_config_outside_its_range_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=exactly(message)):
        tiny_recurrent(**changes)


THEIRS = {"tanh": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
CASES = [(unit, pooling, both) for unit in THEIRS for pooling in ("last", "mean") for both in (False, True)]
each = pytest.mark.parametrize(("unit", "pooling", "both"), CASES)


def copied(unit: str, layer: Any, both: bool) -> nn.RNNBase:
    """Return torch's layer with our weights."""
    theirs = THEIRS[unit](16, 10, batch_first=True, bidirectional=both)
    ours = [(layer.forward_layer, ""), (layer.backward_layer, "_reverse")] if both else [(layer, "")]
    with torch.no_grad():
        for one, end in ours:
            for which, linear in (("ih", one.cell.input_proj), ("hh", one.cell.hidden_proj)):
                getattr(theirs, f"weight_{which}_l0{end}").copy_(linear.weight)
                getattr(theirs, f"bias_{which}_l0{end}").copy_(linear.bias)
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


@each
@torch.no_grad()
def test_padding_and_neighbours_change_nothing(unit: str, pooling: str, both: bool) -> None:
    model = made(RecurrentClassifier, unit=unit, pooling=pooling, bidirectional=both)
    (ids,) = inputs(RecurrentClassifier, batch=4)
    together = model(ids)
    for row, logits in zip(ids, together, strict=True):
        close(model(row[row != 0][None])[0], logits)


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="pooling='cls' is unknown"):
        tiny_recurrent_classifier(pooling="cls")
    with pytest.raises(ValueError, match="bidirectional='no' must be True or False"):
        tiny_recurrent_classifier(bidirectional="no")
    with pytest.raises(ValueError, match="initial_deviation=-1 must be None, or more than 0"):
        tiny_recurrent_classifier(initial_deviation=-1)
    with pytest.raises(ValueError, match="token_ids has 13 positions; max_len=12 is the most"):
        made(RecurrentClassifier)(torch.ones(1, 13, dtype=torch.long))


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
