"""The pages on feed-forward, norm and residual read models of other shapes: post-norm, ReLU, without residuals."""

from pathlib import Path

import pytest
import torch

from pages.ui.language import prose
from pages.ui.models import MORE_MODELS
from tests.helpers.pages import asks, run, told
from transformer_core.bundle import Bundle, save
from transformer_core.config import ModelConfig
from transformer_core.models import Classifier
from transformer_core.text import Tokenizer

TEXT = "a glass box a glass bell"
SHAPES = {
    "inside-post": {"norm_order": "post", "activation": "relu", "norm": "unbiased", "pooling": "mean"},
    "inside-bare": {"residual": False, "activation": "gelu_tanh", "embedding_norm": True, "positions": "rotary"},
}


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay two small untrained classifiers where the app looks for more models."""
    tokenizer = Tokenizer.train("word", ["a glass box", "a glass bell", "a box"] * 3, vocab_size=13)
    for name, shape in SHAPES.items():
        torch.manual_seed(0)
        config = ModelConfig(vocab_size=13, d_model=16, n_heads=2, d_ff=24, n_layers=2, max_len=32, **shape)
        save(Bundle(name, Classifier(config).eval(), tokenizer, ("negative", "positive")), tmp_path / name)
    monkeypatch.setenv(MORE_MODELS, str(tmp_path))


@pytest.mark.parametrize("model", list(SHAPES))
@pytest.mark.parametrize("part", ["curves", "neurons", "dead", "swap"])
def test_the_feed_forward_page_reads_them(model: str, part: str) -> None:
    app = run("feed_forward", model=model, text=TEXT, feed_forward_part=part)
    if asks(app):
        asks(app)[0].set_value("none" if part == "dead" else "little").run()
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("model", list(SHAPES))
@pytest.mark.parametrize("part", ["vector", "residual"])
def test_the_norm_page_reads_them(model: str, part: str) -> None:
    app = run("norm", model=model, text=TEXT, norm_part=part)
    assert not app.exception
    assert not app.error
    if part == "residual":
        kind = "post" if model == "inside-post" else "none"
        assert prose("en", "norm")[f"identity_{kind}"] in told(app)
