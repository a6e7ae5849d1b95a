"""A pass that goes on from the stream of another one ends as that did, and some positions alone as all together."""

import pytest
import torch

from tests.helpers.engine import close, made, padded_ids
from transformer_core.layers.blocks import Stream
from transformer_core.models import Bert, Classifier, Gpt
from transformer_core.probe import SILENT, Probe, capture

every_model = pytest.mark.parametrize("kind", [Classifier, Bert, Gpt])
every_order = pytest.mark.parametrize("norm_order", ["pre", "post"])
every_position = pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])


def logits(output) -> torch.Tensor:
    return getattr(output, "mlm_logits", output)


def streams(trace, scope: str) -> list[Stream]:
    entering = [trace[f"{scope}.embedding.residual"], trace[f"{scope}.layer0.residual"]]
    after = [trace[f"{scope}.layer{layer}.self_attention.residual"] for layer in range(2)]
    return [
        *(Stream(layer, residual) for layer, residual in enumerate(entering)),
        *(Stream(layer, residual, attended=True) for layer, residual in enumerate(after)),
    ]


@every_model
@every_order
@pytest.mark.parametrize("residual", [True, False])
def test_a_pass_goes_on_from_any_layer_and_from_its_middle(kind, norm_order, residual):
    model, ids = made(kind, norm_order=norm_order, residual=residual), padded_ids(3, 5)
    whole, trace = capture(model, ids)
    for stream in streams(trace, "decoder" if kind is Gpt else "encoder"):
        again, rest = capture(model, ids, stream=stream)
        close(logits(again), logits(whole))
        assert set(rest) < set(trace)
        for name, tensor in rest.items():
            close(tensor, trace[name])


@every_model
@every_order
def test_an_edit_above_the_stream_does_what_it_does_in_a_whole_pass(kind, norm_order):
    model, ids, scope = made(kind, norm_order=norm_order), padded_ids(2, 5), "decoder" if kind is Gpt else "encoder"
    edits = {f"{scope}.layer1.self_attention.heads": lambda heads: 0.5 * heads}
    _, trace = capture(model, ids, sites=(f"{scope}.layer0.residual",))
    stream = Stream(1, trace[f"{scope}.layer0.residual"])
    close(logits(capture(model, ids, edits=edits, stream=stream)[0]), logits(capture(model, ids, edits=edits)[0]))
    below = {f"{scope}.layer0.self_attention.heads": lambda heads: 0 * heads}
    with pytest.raises(ValueError, match=r"layer0.* matches no tensor"):
        capture(model, ids, edits=below, stream=stream)


@pytest.mark.parametrize("kind", [Bert, Gpt])
@pytest.mark.parametrize("probe", [lambda: SILENT, Probe], ids=["fused", "explicit"])
@pytest.mark.parametrize("masked", [False, True])
@every_order
@every_position
def test_wanted_positions_are_those_of_all(kind, probe, masked, norm_order, positions):
    model, ids = made(kind, norm_order=norm_order, positions=positions), padded_ids(3, 6)
    mask = torch.rand(6, 6, generator=torch.Generator().manual_seed(1)) > 0.3 if masked else None
    whole = logits(model(ids, mask=mask))
    for wanted in (slice(0, 1), slice(3, 4), slice(2, 5)):
        close(logits(model(ids, mask=mask, wanted=wanted, probe=probe())), whole[:, wanted])


@every_model
def test_a_stream_that_does_not_fit_is_refused(kind):
    model, ids = made(kind), padded_ids(2, 5)
    with pytest.raises(ValueError, match=r"stream.layer=2 must be from 0 to 1"):
        model(ids, stream=Stream(2, torch.zeros(2, 5, 16)))
    with pytest.raises(ValueError, match=r"stream.residual has shape \(2, 4, 16\); it must have \(2, 5, 16\)"):
        model(ids, stream=Stream(0, torch.zeros(2, 4, 16)))
