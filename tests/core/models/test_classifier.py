"""A classifier reads one vector a sentence."""

import pytest
import torch

from tests.core.helpers import close, made, padded_ids
from transformer_core.models import Classifier
from transformer_core.models.classifier import mean_over_real_tokens
from transformer_core.probe import capture


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
