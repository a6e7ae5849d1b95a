"""The whole Transformer and the heads on it: each is its formula."""

import pytest
import torch

from tests.helpers.engine import close, exactly, inputs, made, padded_ids
from transformer_core.analysis.parts import reading_part
from transformer_core.config import ModelConfig
from transformer_core.layers.feed_forward import gelu
from transformer_core.layers.masks import padding_mask
from transformer_core.layers.positions import sinusoidal_table
from transformer_core.models import Bert, BertOutput, Classifier, Decoder, SentenceEncoder, Translation
from transformer_core.models.output import mean_over_real_tokens
from transformer_core.probe import Probe, capture


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


def test_the_padding_of_the_source_is_never_read():
    model, (source, target) = made(Translation), inputs(Translation)
    _, trace = capture(model, source, target, sites=("*.cross_attention.weights",))
    hidden = (source == 0)[:, None, None].expand(3, 2, 5, 6)
    for weights in trace.values():
        assert not weights[hidden].any()


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


def test_a_memory_of_another_batch_is_named():
    with pytest.raises(ValueError, match=exactly("memory has a batch of 2; token_ids has 3")):
        made(Decoder)(padded_ids(3, 5), torch.randn(2, 6, 16))


CHANGES = {"positions": "learned", "n_segments": 2, "embedding_norm": True, "norm_order": "post"}


@torch.no_grad()
@pytest.mark.parametrize("tied", [True, False])
def test_both_heads_are_their_formulas(tied):
    model, ids = made(Bert, tied_output=tied, **CHANGES), padded_ids(3, 5)
    output, trace = capture(model, ids, segment_ids=torch.tensor([[0, 0, 1, 1, 1]] * 3))
    assert isinstance(output, BertOutput)
    stream = trace["encoder.layer1.residual"]
    close(output.pooled, torch.tanh(stream[:, 0] @ model.pooler_proj.weight.T + model.pooler_proj.bias))
    nsp = model.nsp_head.class_proj
    close(output.nsp_logits, output.pooled @ nsp.weight.T + nsp.bias)
    head = model.mlm_head
    transformed = head.norm(gelu(stream @ head.transform_proj.weight.T + head.transform_proj.bias))
    matrix = model.encoder.embedding.token.weight if tied else head.output.proj.weight
    assert (head.output.proj.weight is model.encoder.embedding.token.weight) == tied
    close(output.mlm_logits, transformed @ matrix.T + head.output.proj.bias)
    assert output.mlm_logits.shape == (3, 5, 13)
    assert output.nsp_logits.shape == (3, 2)


def test_segments_are_told_apart():
    model, ids = made(Bert, **CHANGES), padded_ids(3, 5)
    first, second = (model(ids, segment_ids=torch.full_like(ids, segment)) for segment in (0, 1))
    assert not torch.allclose(first.mlm_logits, second.mlm_logits, atol=1e-3)
    assert torch.equal(model(ids).mlm_logits, first.mlm_logits)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_logits_come_from_the_pooled_vector(pooling):
    model, ids = made(Classifier, pooling=pooling, n_classes=4), padded_ids(3, 5)
    logits, trace = capture(model, ids)
    stream = trace["encoder.final_norm.normalized"]
    real = [stream[row][ids[row] != 0] for row in range(3)]
    expected = torch.stack([vectors[0] if pooling == "cls" else vectors.mean(0) for vectors in real])
    close(trace["cls_embedding" if pooling == "cls" else "mean_embedding"], expected)
    close(logits, expected @ model.class_proj.weight.T + model.class_proj.bias)
    assert logits.shape == (3, 4)


def test_a_sentence_of_padding_alone_has_the_mean_0():
    x, ids = torch.randn(2, 4, 3), torch.tensor([[0, 0, 0, 0], [5, 0, 0, 0]])
    assert torch.equal(mean_over_real_tokens(x, ids, 0), torch.stack([torch.zeros(3), x[1, 0]]))
    close(mean_over_real_tokens(x, ids, None), x.mean(1))


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


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_sentence_is_its_first_vector_or_the_mean_of_the_real_ones(pooling: str) -> None:
    model, ids = made(SentenceEncoder, pooling=pooling), padded_ids(3, 5)
    vectors, trace = capture(model, ids)
    stream = trace["encoder.final_norm.normalized"]
    real = [stream[row][ids[row] != 0] for row in range(3)]
    close(vectors, torch.stack([own[0] if pooling == "cls" else own.mean(0) for own in real]))
    assert reading_part(model) is model.encoder


@torch.no_grad()
@pytest.mark.parametrize(("pooler", "function"), [("tanh", torch.tanh), ("relu", torch.relu)])
def test_a_pooler_stands_between_the_vector_and_the_classes(pooler: str, function) -> None:
    model, ids = made(Classifier, pooler=pooler), padded_ids(3, 5)
    logits, trace = capture(model, ids)
    pooled = function(trace["cls_embedding"] @ model.pooler_proj.weight.T + model.pooler_proj.bias)
    close(trace["pooled"], pooled)
    close(logits, pooled @ model.class_proj.weight.T + model.class_proj.bias)
    close(model(ids), logits)


def test_a_bert_without_pairs_scores_words_alone() -> None:
    model, ids = made(Bert, pair_head=False), padded_ids(3, 5)
    output = model(ids)
    assert (output.nsp_logits.shape, output.pooled.shape) == ((3, 0), (3, 0))
    whole = made(Bert)
    whole.load_state_dict(whole.state_dict() | model.state_dict())
    close(output.mlm_logits, whole(ids).mlm_logits)


def test_halves_are_the_waves_in_another_order() -> None:
    table = sinusoidal_table(9, 8)
    assert torch.equal(sinusoidal_table(9, 8, halves=True), torch.cat((table[:, 0::2], table[:, 1::2]), 1))


def test_a_target_that_begins_with_padding_sees_its_beginning() -> None:
    ids = torch.tensor([[0, 5, 6, 0]])
    mask = padding_mask(ids, 0, first_is_real=True)
    assert mask is not None
    assert mask[0, 0, 0].tolist() == [True, True, True, False]
    assert padding_mask(ids[:, :3], 0, first_is_real=True) is None
    model = made(Translation, starts_with_pad=True, output_bias=True)
    logits, trace = capture(model, padded_ids(1, 4), ids)
    assert trace["decoder.layer0.self_attention.weights"][0, :, 1:3, 0].min() > 0
    assert logits.isfinite().all()
    assert model.output.proj.bias.shape == (13,)
