"""BERT's two heads."""

import pytest
import torch

from tests.helpers.engine import close, made, padded_ids
from transformer_core.layers.feed_forward import gelu
from transformer_core.models import Bert, BertOutput
from transformer_core.probe import capture

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
