"""Tiny models of every kind of position, with a tokenizer that knows a few words."""

import pytest

from tests.helpers.engine import made
from transformer_core.bundle import Bundle
from transformer_core.models import Classifier
from transformer_core.text import Tokenizer

TEXT = "a glass box a bell"
KINDS = (
    {},
    {"positions": "rotary"},
    {"positions": "alibi"},
    {"norm_order": "post", "scale_embeddings": True},
    {"norm_order": "post", "embedding_norm": True, "positions": "none"},
)


@pytest.fixture(params=KINDS, ids=lambda kind: " ".join(map(str, kind.values())) or "plain")
def bundle(request: pytest.FixtureRequest) -> Bundle:
    """Return an untrained classifier of two layers and two heads."""
    tokenizer = Tokenizer.train("word", ["a glass box", "a glass bell", "a box"] * 3, vocab_size=13)
    return Bundle("tiny", made(Classifier, **request.param), tokenizer, ("no", "yes"))
