"""Weights start as documented, tied ones too."""

import math

import pytest
import torch

from tests.helpers.engine import tiny
from transformer_core.layers.initialization import initialize
from transformer_core.models import Bert, Classifier, Gpt, Translation

WIDE = {"vocab_size": 500, "d_model": 64}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_token_embeddings_are_small(tied, scale):
    expected = 64**-0.5 if scale else 0.02
    for kind in (Gpt, Translation, Bert):
        model = kind(tiny(**WIDE, tied_output=tied, scale_embeddings=scale))
        embeddings = {name: p for name, p in model.named_parameters() if name.endswith("token.weight")}
        assert len(embeddings) == (2 if kind is Translation else 1)
        for weight in embeddings.values():
            assert weight.std().item() == pytest.approx(expected, rel=0.05)


def test_linear_maps_start_with_glorots_bound_and_no_bias():
    model = Gpt(tiny(**WIDE))
    layer = model.decoder.stack.layers[0].feed_forward.inner_proj
    bound = math.sqrt(6 / sum(layer.weight.shape))
    assert bound * 0.95 < layer.weight.abs().max().item() <= bound
    assert not layer.bias.any()


def test_every_parameter_starts_anew():
    model = Classifier(tiny(positions="learned", scoring="additive", n_segments=2, embedding_norm=True))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    initialize(model)
    assert all(parameter.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("seeded", [True, False])
def test_the_same_seed_gives_the_same_weights(seeded):
    def start(seed: int) -> torch.Tensor:
        torch.manual_seed(0 if seeded else seed)
        model = Gpt(tiny())
        if seeded:
            initialize(model, torch.Generator().manual_seed(seed))
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    assert torch.equal(start(1), start(1))
    assert not torch.equal(start(1), start(2))
