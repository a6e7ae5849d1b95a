"""A sentence's vector, and the small choices that other libraries' checkpoints need."""

import pytest
import torch

from tests.helpers.engine import close, made, padded_ids
from transformer_core.analysis.parts import reading_part
from transformer_core.layers.masks import padding_mask
from transformer_core.layers.positions import sinusoidal_table
from transformer_core.models import Bert, Classifier, SentenceEncoder, Translation
from transformer_core.probe import capture


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
