"""A classifier reads one vector a sentence."""

import pytest
import torch

from tests.helpers.engine import close, made, padded_ids
from transformer_core.models import Classifier
from transformer_core.models.output import mean_over_real_tokens
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
