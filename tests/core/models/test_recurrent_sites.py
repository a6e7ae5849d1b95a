"""What a recurrent model records is what SITES says of it: its axes, its scale, its formula."""

from functools import cache

import pytest
import torch

from tests.helpers.engine import close, inputs, made
from transformer_core.models.recurrent import Seq2Seq
from transformer_core.probe import capture
from transformer_core.sites import RECURRENT_SITES, site_of
from transformer_core.trace import Trace

CHANGES = {
    "gru": {},
    "lstm": {"unit": "lstm", "attention": "dot_product"},
    "plain": {"unit": "tanh", "attention": None, "bidirectional": False},
}
each = pytest.mark.parametrize("variant", CHANGES)


@cache
def recorded(variant: str) -> tuple[Seq2Seq, Trace]:
    """Capture everything that a tiny model computes."""
    model = made(Seq2Seq, **CHANGES[variant])
    return model, capture(model, *inputs(Seq2Seq))[1]


@each
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


@torch.no_grad()
def test_a_grus_tensors_are_its_formulas() -> None:
    model, trace = recorded("gru")
    cell, scope = model.encoder.forward_layer.cell, "encoder.forward"
    real = inputs(Seq2Seq)[0] != 0
    hidden = trace[f"{scope}.hidden"]
    before = torch.cat((torch.zeros(3, 1, 10), hidden[:, :-1]), 1)
    from_input = cell.input_proj(trace["encoder.scaled_embedding"]).chunk(3, -1)
    from_hidden = cell.hidden_proj(before).chunk(3, -1)
    reset, update = (torch.sigmoid(from_input[part] + from_hidden[part]) for part in (0, 1))
    candidate = torch.tanh(from_input[2] + reset * from_hidden[2])
    for leaf, expected in (("reset_gate", reset), ("update_gate", update), ("candidate", candidate)):
        close(trace[f"{scope}.{leaf}"], expected)
    close(hidden[real], ((1 - update) * candidate + update * before)[real])
    close(hidden[~real], before[~real])


@torch.no_grad()
def test_an_lstms_tensors_are_its_formulas() -> None:
    model, trace = recorded("lstm")
    cell, scope = model.encoder.backward_layer.cell, "encoder.backward"
    full = 0  # the first row has no padding
    hidden, memory = (trace[f"{scope}.{leaf}"][full].flip(0) for leaf in ("hidden", "cell"))
    before, kept = (torch.cat((torch.zeros(1, 10), tensor[:-1])) for tensor in (hidden, memory))
    parts = cell.input_proj(trace["encoder.scaled_embedding"][full].flip(0)) + cell.hidden_proj(before)
    into, forget, candidate, out = parts.chunk(4, -1)
    into, forget, out = (torch.sigmoid(part) for part in (into, forget, out))
    for leaf, expected in (("input_gate", into), ("forget_gate", forget), ("output_gate", out)):
        close(trace[f"{scope}.{leaf}"][full].flip(0), expected)
    close(memory, forget * kept + into * torch.tanh(candidate))
    close(hidden, out * torch.tanh(memory))


@each
@torch.no_grad()
def test_the_decoders_ends_are_their_formulas(variant: str) -> None:
    model, trace = recorded(variant)
    decoder = model.decoder
    close(trace["decoder.start"], torch.tanh(decoder.start_proj(trace["encoder.summary"])))
    parts = (trace["decoder.hidden"], trace["decoder.context"], trace["decoder.scaled_embedding"])
    close(trace["decoder.readout"], torch.tanh(decoder.readout_proj(torch.cat(parts, -1))))
    close(trace["logits"], trace["decoder.readout"] @ model.embedding.weight.T)
    if model.config.attention is not None:
        queries = torch.cat((trace["decoder.start"][:, None], trace["decoder.hidden"][:, :-1]), 1)
        query, key = decoder.alignment.query_proj(queries), decoder.alignment.key_proj(trace["encoder.annotations"])
        if model.config.attention == "additive":
            scores = torch.tanh(query[:, :, None] + key[:, None]) @ decoder.alignment.additive_scores.weight[0]
        else:
            scores = query @ key.mT / 10**0.5
        close(trace["decoder.alignment.scores"][:, 0], scores)
