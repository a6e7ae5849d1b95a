"""What the tests of text share: a small corpus, one tokenizer a kind, and a strategy for awkward texts."""

import pytest

from transformer_core.text import KINDS, Tokenizer

CORPUS = (
    "The cat sat on the mat, and the cat looked at the dog.",
    "It's raining again; they're walking (slowly) to the café.\n\tNaïve, isn't it?",
    "今天天气很好，我们去公园吧。",
    "今天我们不去公园，天气不好。",
    "walking talked walked talking walks talks",
) * 2


@pytest.fixture(scope="session")
def corpus() -> tuple[str, ...]:
    return CORPUS


@pytest.fixture(scope="session")
def trained(corpus: tuple[str, ...]) -> dict[str, Tokenizer]:
    return {kind: Tokenizer.train(kind, corpus, vocab_size=400) for kind in KINDS}


@pytest.fixture(scope="session")
def lowercased(corpus: tuple[str, ...]) -> dict[str, Tokenizer]:
    return {kind: Tokenizer.train(kind, corpus, vocab_size=400, lowercase=True) for kind in KINDS}


@pytest.fixture(scope="session", params=KINDS)
def tokenizer(request: pytest.FixtureRequest, trained: dict[str, Tokenizer]) -> Tokenizer:
    return trained[request.param]
