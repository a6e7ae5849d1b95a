"""Where a model's numbers lie: every one is counted once, whatever the kind."""

import pytest
import torch

from tests.helpers.engine import made
from transformer_core.analysis.parameter_counts import PARTS, REST, count_parts
from transformer_core.bundle import CONFIGS, MODELS, Bundle
from transformer_core.config import ModelConfig


@pytest.mark.parametrize("kind", MODELS)
def test_all_parameters_are_counted(kind: str, word_tokenizer) -> None:
    torch.manual_seed(0)
    config = CONFIGS[kind](vocab_size=13) if kind in CONFIGS else ModelConfig(vocab_size=13, d_model=8, n_heads=2)
    bundle = Bundle("x", MODELS[kind](config), word_tokenizer)
    found = count_parts(bundle=bundle)
    assert found.counts.sum() == bundle.n_parameters
    assert set(found.parts) <= {*PARTS, REST}
    assert list(found.counts) == sorted(found.counts, reverse=True)
    assert found.shares.sum() == pytest.approx(1)


def test_the_parts_of_a_gpt(word_tokenizer) -> None:
    from transformer_core.models import Gpt

    model = made(Gpt)
    found = count_parts(bundle=Bundle("x", model, word_tokenizer))
    counts = dict(zip(found.parts, found.counts, strict=True))
    config = model.config
    width = config.n_heads * config.d_head
    per_layer = 4 * config.d_model * width + 3 * width + config.d_model
    assert counts["attention"] == config.n_layers * per_layer
    assert counts["feed_forward"] == config.n_layers * (2 * config.d_model * config.d_ff + config.d_ff + config.d_model)
