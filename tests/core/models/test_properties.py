"""What holds for every model, whatever its config: probed equals unprobed, causality, padding changes nothing."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import MODELS, close, first_of, inputs, made, padded_ids
from transformer_core.models import Bert, Classifier, Decoder, Encoder, Gpt, MaskedDecoder, Translation
from transformer_core.probe import Probe, capture

POSITIONS = ("sinusoidal", "sinusoidal_doubled", "learned", "rotary", "alibi", "none")
CHANGES = {
    **{positions: {"positions": positions} for positions in POSITIONS},
    **{f"additive_{positions}": {"scoring": "additive", "positions": positions} for positions in ("alibi", "rotary")},
    "additive": {"scoring": "additive"},
    "unscaled": {"scale_scores": False},
    "shared": {"share_query_key": True, "share_key_value": True},
    "shared_query_key": {"share_query_key": True},
    "shared_key_value": {"share_key_value": True},
    "no_projections": {"projections": False},
    "no_residual": {"residual": False},
    "no_bias": {"bias": False},
    "wide_heads": {"d_head": 10},
    "unbiased_norm": {"norm": "unbiased"},
    "bert": {"positions": "learned", "embedding_norm": True, "n_segments": 2},
    "free_output": {"tied_output": False, "scale_embeddings": True},
}
CAUSAL = (Decoder, MaskedDecoder, Translation, Gpt)
each_model = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
each_causal_model = pytest.mark.parametrize("kind", CAUSAL, ids=lambda kind: kind.__name__)


@each_model
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_probed_equals_unprobed(kind, changes, norm_order):
    model, given_inputs = made(kind, norm_order=norm_order, **changes), inputs(kind)
    plain = first_of(model(*given_inputs)).detach()
    with torch.inference_mode():
        silent = first_of(model(*given_inputs))
    everything, trace = capture(model, *given_inputs)
    one_site, _ = capture(model, *given_inputs, sites=("*layer1.self_attention.weights",))
    close(silent, plain)
    close(first_of(everything), plain)
    close(first_of(one_site), plain)
    weights = trace.select("*.weights")
    assert len(weights) == (6 if kind is Translation else 4 if kind is Decoder else 2)
    for tensor in weights.values():
        close(tensor.sum(-1), torch.ones(tensor.shape[:-1]))


@given(st.integers(1, 4), st.integers(1, 12), st.integers(1, 12), st.sampled_from(MODELS), st.sampled_from(POSITIONS))
def test_probed_equals_unprobed_at_every_size(batch, source, target, kind, positions):
    model = made(kind, positions=positions)
    given_inputs = inputs(kind, batch=batch, source=source, target=target)
    with torch.inference_mode():
        silent = first_of(model(*given_inputs))
    close(first_of(capture(model, *given_inputs)[0]), silent)


@each_causal_model
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("path", [dict, lambda: {"probe": Probe()}], ids=["silent", "probed"])
def test_later_tokens_leave_earlier_outputs_the_same(kind, positions, path):
    *before, last = inputs(kind, batch=2) if kind is not Decoder else reversed(inputs(kind, batch=2))
    last = torch.randint(1, 13, last.shape)
    changed = last.clone()
    changed[:, 3:] = last[:, 3:] % 12 + 1

    def first_positions(model, ids) -> torch.Tensor:
        return model(*((ids, *before) if kind is Decoder else (*before, ids)), **path())[:, :3]

    honest, cheat = made(kind, positions=positions), made(kind, positions=positions, causal=False)
    close(first_positions(honest, changed), first_positions(honest, last), atol=1e-6)
    assert not torch.allclose(first_positions(cheat, changed), first_positions(cheat, last), atol=1e-2)


def alone(model, given_inputs, row: int) -> torch.Tensor:
    """Run one sentence without its padding."""
    parts = [part[row : row + 1] for part in given_inputs]
    cut = [part[:, part[0] != 0] if part.dim() == 2 else part for part in parts]
    return first_of(model(*cut))


@pytest.mark.parametrize(("kind", "pooling"), [*((kind, "cls") for kind in MODELS), (Classifier, "mean")])
@pytest.mark.parametrize("positions", POSITIONS)
def test_padding_and_batch_mates_change_nothing(kind, pooling, positions):
    model, given_inputs = made(kind, positions=positions, pooling=pooling), inputs(kind)
    together = first_of(model(*given_inputs))
    for row in range(3):
        expected = alone(model, given_inputs, row)
        got = together[row : row + 1]
        close(got[:, : expected.shape[1]] if got.dim() == 3 else got, expected)
    order = [2, 0, 1]
    close(first_of(model(*(part[order] for part in given_inputs))), together[order])


@each_model
def test_a_batch_with_a_sentence_of_padding_alone_is_finite(kind):
    model, given_inputs = made(kind), tuple(part.clone() for part in inputs(kind))
    for part in given_inputs:
        if not part.is_floating_point():
            part[0] = 0
    plain = first_of(model(*given_inputs))
    assert plain.isfinite().all()
    output, trace = capture(model, *given_inputs)
    close(first_of(output), plain)
    assert all(tensor.isfinite().all() for name, tensor in trace.items() if not name.endswith("masked_scores"))
    (plain.square().sum()).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("kind", [Encoder, MaskedDecoder, Classifier, Bert, Gpt])
@pytest.mark.parametrize("path", [dict, lambda: {"probe": Probe()}], ids=["silent", "probed"])
def test_a_given_mask_replaces_padding_and_causal_masks(kind, path):
    model, ids = made(kind), padded_ids(3, 5)
    everything = torch.ones(5, 5, dtype=torch.bool)
    open_model = made(kind, pad_id=None, causal=False)
    close(first_of(model(ids, mask=everything, **path())), first_of(open_model(ids)))
    both = (ids != 0)[:, None, None] & (everything.tril() if kind in CAUSAL else everything)
    close(first_of(model(ids, mask=both, **path())), first_of(model(ids)))


@each_model
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("embedding_norm", [True, False])
def test_a_pre_norm_stream_is_the_embedding_and_every_output(kind, scale, embedding_norm):
    changes = {"norm_order": "pre", "scale_embeddings": scale, "embedding_norm": embedding_norm}
    trace = capture(made(kind, **changes), *inputs(kind))[1]
    start = "embedding.norm.normalized" if embedding_norm else "embedding.residual"
    sides = {name.partition("layer0")[0] for name in trace if "layer0" in name}
    assert len(sides) == (2 if kind is Translation else 1)
    for side in sides:
        outputs = [tensor for name, tensor in trace.items() if name.startswith(side) and name.endswith(".output")]
        assert len(outputs) == (6 if "cross_attention" in "".join(trace.select(f"{side}*")) else 4)
        close(trace[side + start] + sum(outputs), trace[f"{side}layer1.residual"])
