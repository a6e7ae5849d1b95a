"""Small untrained Berts of several shapes, as bundles in a folder."""

from pathlib import Path

import torch

from tests.core.tools.helpers import lively
from transformer_core.bundle import Bundle, save
from transformer_core.config import ModelConfig
from transformer_core.models import Bert
from transformer_core.text import Tokenizer

TEXTS = ["A man in a red shirt is riding a horse.", "Two dogs run on the beach.", "A cowboy is outside."] * 3
MODEL = "bert-pre"
SHAPES = {
    MODEL: {"n_segments": 2},
    "bert-post": {"n_segments": 2, "norm_order": "post", "embedding_norm": True, "positions": "learned"},
    "bert-bare": {"n_segments": 0, "pair_head": False, "tied_output": False},
}


def lay_berts(place: Path) -> Path:
    """Write one bundle a shape into a folder and return it."""
    tokenizer = Tokenizer.train("wordpiece", TEXTS, vocab_size=120, lowercase=True, min_frequency=1)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 2, "max_len": 48, "dropout": 0.0}
    for name, shape in SHAPES.items():
        torch.manual_seed(0)
        model = lively(Bert(ModelConfig(vocab_size=tokenizer.vocab_size, **sizes, **shape)))
        save(Bundle(name, model, tokenizer), place / name)
    return place
