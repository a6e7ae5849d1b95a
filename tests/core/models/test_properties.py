"""What holds for every model, whatever its config: probed or not, padded or not, taken up again; heads and halves."""

from itertools import product

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import nightly_but
from tests.helpers.engine import CROSSING, MODELS, TODAY, close, exactly, first_of, inputs, made, padded_ids, tiny
from transformer_core.config import PADDED, ModelConfig
from transformer_core.layers.blocks import Stream
from transformer_core.layers.masks import padding_mask
from transformer_core.models import Bert, Classifier, Decoder, Encoder, Gpt, MaskedDecoder, Translation
from transformer_core.models.output import mean_over_real_tokens
from transformer_core.probe import SILENT, Probe, capture

POSITIONS = ("sinusoidal", "sinusoidal_doubled", "learned", "rotary", "alibi", "relative", "none")
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
    **TODAY,
}
CAUSAL = (Decoder, MaskedDecoder, Translation, Gpt)
each_model = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
each_causal_model = pytest.mark.parametrize("kind", CAUSAL, ids=lambda kind: kind.__name__)


def fits(kind: type, changes: str) -> bool:
    """Tell whether there is such a model of a kind."""
    return kind not in CROSSING or not CHANGES[changes].get("parallel")


PROBED = [case for case in product(MODELS, CHANGES, ("pre", "post")) if fits(*case[:2])]


def has_every_part(case: tuple) -> bool:
    """Tell whether a case is of a kind with every block, or of a change that meets every kind."""
    return case[0] is Translation or case[1:] in (("sinusoidal", "pre"), ("bert", "post"))


@pytest.mark.parametrize(("kind", "changes", "norm_order"), nightly_but(PROBED, has_every_part))
def test_probed_equals_unprobed(kind, changes, norm_order):
    model, given_inputs = made(kind, **({"norm_order": norm_order} | CHANGES[changes])), inputs(kind)
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
        sums = tensor.sum(-1)  # padding that a window keeps from every real token attends to nothing
        close(sums, sums.round() if "windows" in CHANGES[changes] else torch.ones_like(sums))


@given(st.integers(1, 4), st.integers(1, 12), st.integers(1, 12), st.sampled_from(MODELS), st.sampled_from(POSITIONS))
def test_probed_equals_unprobed_at_every_size(batch, source, target, kind, positions):
    model = made(kind, positions=positions)
    given_inputs = inputs(kind, batch=batch, source=source, target=target)
    with torch.inference_mode():
        silent = first_of(model(*given_inputs))
    close(first_of(capture(model, *given_inputs)[0]), silent)


def of_the_gate(case: tuple) -> bool:
    """Tell whether a case has an option of today on a GPT, or none of them."""
    return case[0] is Gpt or case[-1] not in TODAY


CAUSAL_CASES = [case for case in product(CAUSAL, (*POSITIONS, *TODAY)) if fits(*case)]


@pytest.mark.parametrize(("kind", "changes"), nightly_but(CAUSAL_CASES, of_the_gate))
@pytest.mark.parametrize("path", [dict, lambda: {"probe": Probe()}], ids=["silent", "probed"])
def test_later_tokens_leave_earlier_outputs_the_same(kind, changes, path):
    *before, last = inputs(kind, batch=2) if kind is not Decoder else reversed(inputs(kind, batch=2))
    last = torch.randint(1, 13, last.shape)
    changed = last.clone()
    changed[:, 3:] = last[:, 3:] % 12 + 1

    def first_positions(model, ids) -> torch.Tensor:
        return model(*((ids, *before) if kind is Decoder else (*before, ids)), **path())[:, :3]

    honest, cheat = made(kind, **CHANGES[changes]), made(kind, **CHANGES[changes], causal=False)
    if honest.config.n_experts:  # an expert's products round by how many tokens chose it
        honest, cheat = honest.double(), cheat.double()
        before = [one.double() if one.is_floating_point() else one for one in before]
    close(first_positions(honest, changed), first_positions(honest, last), atol=1e-6)
    assert not torch.allclose(first_positions(cheat, changed), first_positions(cheat, last), atol=1e-2)


def alone(model, given_inputs, row: int) -> torch.Tensor:
    """Run one sentence without its padding."""
    parts = [part[row : row + 1] for part in given_inputs]
    cut = [part[:, part[0] != 0] if part.dim() == 2 else part for part in parts]
    return first_of(model(*cut))


POOLED = [*((kind, "cls") for kind in MODELS), (Classifier, "mean")]
PADDED_CASES = [(*one, changes) for one, changes in product(POOLED, (*POSITIONS, *TODAY)) if fits(one[0], changes)]


@pytest.mark.parametrize(("kind", "pooling", "changes"), nightly_but(PADDED_CASES, of_the_gate))
def test_padding_and_batch_mates_change_nothing(kind, pooling, changes):
    model, given_inputs = made(kind, **CHANGES[changes], pooling=pooling), inputs(kind)
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


SOURCE, TARGET = padded_ids(4, 6, seed=3), padded_ids(4, 5, seed=4)
LABELS = torch.tensor([0, 1, 1, 0])


def next_word_loss(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)


LOSSES = {
    Classifier: lambda model: F.cross_entropy(model(SOURCE), LABELS),
    Gpt: lambda model: next_word_loss(model(SOURCE), SOURCE),
    Translation: lambda model: next_word_loss(model(SOURCE, TARGET), TARGET),
    Bert: lambda model: F.cross_entropy(model(SOURCE).mlm_logits.flatten(0, 1), SOURCE.flatten(), ignore_index=0),
}
each_task = pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)


def curve(kind, seed: int, steps: int, **changes) -> list[float]:
    """Train on one batch; return the loss in nats before each step."""
    torch.manual_seed(seed)
    model = kind(tiny(**changes)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        loss = LOSSES[kind](model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


OVERFITTED = list(product(LOSSES, ("pre", "post"), (0, 3)))


@pytest.mark.parametrize(
    ("kind", "norm_order", "n_experts"),
    nightly_but(OVERFITTED, [(Classifier, "post", 0), (Gpt, "pre", 0), (Gpt, "pre", 3)]),
)
def test_one_batch_can_be_overfitted(kind, norm_order, n_experts):
    losses = curve(kind, 0, 60, norm_order=norm_order, n_experts=n_experts, n_active_experts=min(n_experts, 2))
    assert losses[-1] < 0.1 < 0.3 < losses[0]


@each_task
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"scoring": "additive", "positions": "learned", "n_segments": 2},
        {"n_experts": 3, "n_active_experts": 3, "gated": True, "shared_d_ff": 8, "shared_gate": True},
    ],
)
def test_every_parameter_gets_a_gradient(kind, changes):
    torch.manual_seed(0)
    model = kind(tiny(embedding_norm=True, **changes))
    LOSSES[kind](model).backward()
    idle = {name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()}
    without = ("pooler_proj", "nsp_head") if kind is Bert else ()
    assert {name for name in idle if not name.startswith(without) and "key_proj.bias" not in name} == set()


def test_the_published_toy_call():
    config = ModelConfig(vocab_size=5, d_model=128, d_ff=256, n_heads=8, d_head=64, n_layers=4, pad_id=0)
    model = Translation(config).eval()
    source_ids = torch.randint(1, 5, (4, 6))
    target_ids = torch.tensor([[1, 2, 3, 4, 0], [1, 2, 0, 0, 0], [4, 3, 2, 1, 2], [3, 0, 0, 0, 0]])
    logits, trace = capture(model, source_ids, target_ids, sites=("*.weights",))
    assert logits.shape == (4, 5, 5)
    assert len(trace) == 12
    for layer in range(4):
        encoder_self = trace[f"encoder.layer{layer}.self_attention.weights"]
        decoder_self = trace[f"decoder.layer{layer}.self_attention.weights"]
        cross = trace[f"decoder.layer{layer}.cross_attention.weights"]
        assert encoder_self.shape == (4, 8, 6, 6)
        assert decoder_self.shape == (4, 8, 5, 5)
        assert cross.shape == (4, 8, 5, 6)
        assert not decoder_self.triu(1).any()
        assert not decoder_self[3, :, :, 1:].any()
        for weights in (encoder_self, decoder_self, cross):
            close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    with torch.inference_mode():
        close(model(source_ids, target_ids), logits)


def test_encode_and_decode_make_up_forward():
    model, (source, target) = made(Translation), inputs(Translation)
    memory, memory_mask = model.encode(source)
    assert torch.equal(memory_mask, padding_mask(source, 0))
    close(model.decode(target, memory, memory_mask=memory_mask), model(source, target))
    part = model.decode(target[:, :2], memory, memory_mask=memory_mask)
    close(part, model(source, target)[:, :2])


def test_each_mask_goes_to_its_own_attention():
    model, (source, target) = made(Translation), inputs(Translation)
    masks = {
        "source_mask": torch.eye(6, dtype=torch.bool),
        "target_mask": torch.ones(5, 5, dtype=torch.bool).triu(),
        "memory_mask": torch.rand(5, 6) > 0.5,
    }
    masks["memory_mask"][:, 0] = True
    _, trace = capture(model, source, target, **masks)
    scopes = ("encoder.layer1.self_attention", "decoder.layer1.self_attention", "decoder.layer1.cross_attention")
    for scope, mask in zip(scopes, masks.values(), strict=True):
        assert torch.equal(trace[f"{scope}.weights"] > 0, mask.expand_as(trace[f"{scope}.weights"]))


def test_logits_score_the_target_vocabulary():
    model = made(Translation, target_vocab_size=29)
    target = torch.randint(1, 29, (2, 4))
    assert model(padded_ids(2, 6), target).shape == (2, 4, 29)
    with pytest.raises(ValueError, match=exactly("token_ids holds 29, outside the vocabulary: ids run from 0 to 28")):
        model(padded_ids(2, 6), target * 0 + 29)


@pytest.mark.parametrize("tied", [True, False])
def test_the_output_matrix_is_the_embeddings_where_tied(tied):
    model, probe = made(Translation, tied_output=tied), Probe()
    logits = model(*inputs(Translation), probe=probe)
    weight = model.decoder.embedding.token.weight
    assert (model.output.proj.weight is weight) == tied
    close(logits, probe.trace["decoder.final_norm.normalized"] @ model.output.proj.weight.T)


@pytest.mark.parametrize("kind", [Gpt, Translation])
def test_rows_narrower_than_the_stream_cannot_score_it(kind):
    with pytest.raises(
        ValueError, match=exactly("embedding_width=6 must be 16 with tied_output=True: the same rows score the stream")
    ):
        made(kind, embedding_width=6)


def test_a_factorised_embedding_is_two_matrices_and_scores_words_through_its_own_rows():
    wide, narrow = (made(Bert, **BERT, embedding_width=width) for width in (None, 6))
    parameters = {name: tuple(tensor.shape) for name, tensor in narrow.encoder.embedding.named_parameters()}
    assert parameters["token.weight"] == (13, 6)
    assert parameters["stream_proj.weight"] == (16, 6)
    assert narrow.mlm_head.output.proj.weight is narrow.encoder.embedding.token.weight
    assert narrow(padded_ids(2, 5)).mlm_logits.shape == wide(padded_ids(2, 5)).mlm_logits.shape


def test_a_memory_of_another_batch_is_named():
    with pytest.raises(ValueError, match=exactly("memory has a batch of 2; token_ids has 3")):
        made(Decoder)(padded_ids(3, 5), torch.randn(2, 6, 16))


BERT = {"positions": "learned", "n_segments": 2, "embedding_norm": True, "norm_order": "post"}


def test_segments_are_told_apart():
    model, ids = made(Bert, **BERT), padded_ids(3, 5)
    first, second = (model(ids, segment_ids=torch.full_like(ids, segment)) for segment in (0, 1))
    assert not torch.allclose(first.mlm_logits, second.mlm_logits, atol=1e-3)
    assert torch.equal(model(ids).mlm_logits, first.mlm_logits)


def test_a_sentence_of_padding_alone_has_the_mean_0():
    x, ids = torch.randn(2, 4, 3), torch.tensor([[0, 0, 0, 0], [5, 0, 0, 0]])
    assert torch.equal(mean_over_real_tokens(x, ids, 0), torch.stack([torch.zeros(3), x[1, 0]]))
    close(mean_over_real_tokens(x, ids, PADDED), x.mean(1))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_leaving_out_what_cls_does_not_read_changes_neither_logits_nor_gradients(positions, norm_order):
    model, ids = made(Classifier, positions=positions, norm_order=norm_order, n_classes=3), padded_ids(4, 7)
    whole = model.class_proj(model.encoder(ids)[:, 0])
    spared = model(ids)
    close(spared, whole)
    of_whole = torch.autograd.grad(whole.square().sum(), list(model.parameters()), allow_unused=True)
    of_spared = torch.autograd.grad(spared.square().sum(), list(model.parameters()), allow_unused=True)
    for one, other in zip(of_whole, of_spared, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("choices", [{"positions": "alibi"}, {"pooling": "mean"}])
def test_where_all_positions_count_all_are_computed(choices):
    model, ids = made(Classifier, **choices), padded_ids(3, 6)
    close(model(ids), capture(model, ids)[0])


def test_a_target_that_begins_with_padding_sees_its_beginning() -> None:
    ids = torch.tensor([[0, 5, 6, PADDED]])
    model = made(Translation, starts_with_pad=True, output_bias=True)
    logits, trace = capture(model, padded_ids(1, 4), ids)
    weights = trace["decoder.layer0.self_attention.weights"]  # (batch, head, query_pos, key_pos)
    assert weights[0, :, 1:3, 0].min() > 0
    assert weights[..., 3].max() == 0
    assert logits.isfinite().all()
    assert model.output.proj.bias.shape == (13,)
