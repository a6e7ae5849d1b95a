"""The whole Transformer: the published toy call, and how its two halves meet."""

import pytest
import torch

from tests.helpers.engine import close, exactly, inputs, made, padded_ids
from transformer_core.config import ModelConfig
from transformer_core.layers.masks import padding_mask
from transformer_core.models import Decoder, Translation
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
