"""A recurrent classifier is torch's layer with a map to the classes, whatever stands beside a sentence in its batch."""

from typing import Any

import pytest
import torch
from torch import nn

from tests.helpers.engine import close, inputs, made, tiny_recurrent_classifier
from transformer_core.models.output import sentence_site
from transformer_core.models.recurrent import RecurrentClassifier
from transformer_core.probe import capture

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
