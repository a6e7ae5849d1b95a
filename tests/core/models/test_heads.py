"""The whole Transformer and the heads on it: each is its formula."""

import pytest
import torch

from tests.helpers.engine import close, exactly, inputs, made, padded_ids
from transformer_core.config import ModelConfig
from transformer_core.layers.masks import padding_mask
from transformer_core.models import Bert, Classifier, Decoder, Translation
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


def test_segments_are_told_apart():
    model, ids = made(Bert, **CHANGES), padded_ids(3, 5)
    first, second = (model(ids, segment_ids=torch.full_like(ids, segment)) for segment in (0, 1))
    assert not torch.allclose(first.mlm_logits, second.mlm_logits, atol=1e-3)
    assert torch.equal(model(ids).mlm_logits, first.mlm_logits)


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
