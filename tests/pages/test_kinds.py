"""Every page of Input and Inside, and Home, with every kind of model: something to see, and never a stack trace."""

from pathlib import Path

import pytest
import torch

from pages.ui.language import words
from pages.ui.models import MORE_MODELS
from tests.pages.running import run, told
from transformer_core.checkpoints import MODELS, Bundle, save
from transformer_core.config import ModelConfig
from transformer_core.text import Tokenizer

TEXTS = ["a glass box rings", "a glass bell rings", "a box of glass"] * 3
TEXT = "a glass box rings"
KINDS = ("classifier", "bert", "gpt", "encoder")
PARTS = {
    "attention": ("heads", "arcs", "flow", "tendencies", "effect"),
    "feed_forward": ("curves", "neurons", "dead", "swap"),
    "norm": ("vector", "residual"),
    "embeddings": ("sentence", "row", "neighbours", "map", "counts"),
    "tokens": ("split", "merges", "one_hot"),
    "positions": ("matrix", "schemes", "sum", "order"),
    "masks": ("paint", "batch"),
}


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay a small untrained model of every kind where the app looks for more."""
    tokenizer = Tokenizer.train("word", TEXTS, vocab_size=16)
    plain = Tokenizer.train("word", TEXTS, vocab_size=16, template="none")
    for kind in (*KINDS, "translation"):
        torch.manual_seed(0)
        post = {"norm_order": "post", "embedding_norm": True, "n_segments": 2} if kind in ("bert", "encoder") else {}
        config = ModelConfig(vocab_size=16, d_model=16, n_heads=2, d_ff=24, n_layers=2, max_len=32, **post)
        labels = ("negative", "positive") if kind == "classifier" else ()
        model = MODELS[kind](config).eval()
        save(Bundle(f"tiny-{kind}", model, plain if kind == "gpt" else tokenizer, labels), tmp_path / f"tiny-{kind}")
    monkeypatch.setenv(MORE_MODELS, str(tmp_path))


def cases() -> list[tuple[str, str]]:
    return [(page, part) for page, parts in PARTS.items() for part in parts]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("page", "part"), cases())
def test_every_part_reads_every_kind(kind: str, page: str, part: str) -> None:
    language = "zh" if kind == "gpt" else "en"
    asked = {"text": TEXT, "model": f"tiny-{kind}", f"{page}_part": part, "lang": language, "try_open": "true"}
    app = run(page, **asked)
    assert not app.exception
    assert not app.error
    for radio in app.radio:
        if radio.value is None and radio.options:
            radio.set_value(radio.options[0] if False else radio.options[-1])
    app.run()
    assert not app.exception
    assert not app.error
    assert words(language)[f"nav.{page}"]
    assert told(app)
