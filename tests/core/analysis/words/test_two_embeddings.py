"""Counting against training: the counts are right, the decomposition is, and both spaces share words and size."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from transformer_core.analysis.words import tiny_bert
from transformer_core.analysis.words import tiny_bert as corpora
from transformer_core.analysis.words.tiny_bert import one_corpus
from transformer_core.analysis.words.two_embeddings import (
    agreement,
    count_pairs,
    counted_space,
    positive_pmi,
    singular_vectors,
    trained_space,
    truncated,
)


@pytest.fixture
def quick_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train for one epoch only."""
    monkeypatch.setattr(tiny_bert, "TRAINING", replace(tiny_bert.TRAINING, epochs=1, batch_size=256))
    monkeypatch.setattr(tiny_bert, "_trained", {})


def test_pairs_are_counted_both_ways_within_the_window_and_within_the_text() -> None:
    rows = [[0, 1, 2, 1], [2, 0]]
    counts = count_pairs(rows, 4, window=2)
    expected = np.zeros((4, 4))
    for row in rows:
        for i, left in enumerate(row):
            for j, right in enumerate(row):
                if 0 < abs(i - j) <= 2:
                    expected[left, right] += 1
    np.testing.assert_array_equal(counts.numpy(), expected)


@pytest.mark.parametrize(
    ("rows", "window", "said"), [([], 1, "rows"), ([[0]], 0, "window=0"), ([[7]], 1, "from 7 to 7")]
)
def test_what_cannot_be_counted_is_named(rows: list, window: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        count_pairs(rows, 4, window=window)


def test_pmi_is_the_log_of_how_much_more_often_than_chance() -> None:
    counts = torch.tensor([[0.0, 8.0, 1.0], [8.0, 0.0, 1.0], [1.0, 1.0, 0.0]], dtype=torch.float64)
    pmi = positive_pmi(counts)
    assert float(pmi[0, 1]) == pytest.approx(math.log((8 / 20) / (9 / 20 * 9 / 20)))
    assert float(pmi[0, 2]) == pytest.approx(math.log((1 / 20) / (9 / 20 * 2 / 20)))
    assert float(pmi[0, 0]) == 0.0
    assert (pmi >= 0).all()
    assert not positive_pmi(torch.zeros(3, 3, dtype=torch.float64)).any()


def test_the_singular_values_are_those_of_a_decomposition() -> None:
    x = torch.randn(12, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    matrix = x + x.T
    vectors, values = singular_vectors(matrix)
    torch.testing.assert_close(values, torch.linalg.svdvals(matrix))
    products = vectors.T @ vectors
    torch.testing.assert_close(products, torch.eye(12, dtype=torch.float64), atol=1e-10, rtol=0)
    short = truncated(vectors, values, 3)
    torch.testing.assert_close(short.square().sum(0), values[:3])
    with pytest.raises(ValueError, match="dimension=13 must be from 1 to 12"):
        truncated(vectors, values, 13)


def test_opposites_keep_the_same_company() -> None:
    corpus = one_corpus("en")
    found = counted_space(language="en", window=4, dimension=32, word="dull")
    kinds = [found.kinds[place] for place in found.neighbours]
    assert set(kinds) <= {"praise", "blame"}
    assert kinds.count("praise") >= 1
    assert len(found.labels) == corpus.tokenizer.vocab_size - 7
    assert 0.0 < (found.kept or 0.0) < 1.0
    assert (found.kept or 0.0) < (counted_space(language="en", window=4, dimension=64, word="dull").kept or 0.0)


def test_the_corpus_is_the_reviews_and_always_the_same() -> None:
    corpus = one_corpus("zh")
    assert len(corpus.texts) == len(corpus.rows) == corpora.REVIEWS
    assert max(max(row) for row in corpus.rows) < corpus.tokenizer.vocab_size == len(corpus.kinds)


def test_training_gives_the_same_words_and_size_and_an_agreement_that_can_be_recounted(quick_training) -> None:
    asked = {"language": "en", "dimension": 8, "word": "dull"}
    counted, trained = counted_space(window=4, **asked), trained_space(**asked)
    assert trained.labels == counted.labels
    assert trained.vectors.shape == counted.vectors.shape
    first, last = trained.losses or (0.0, 0.0)
    assert last < first
    found = agreement(window=4, **asked)
    shared = len(set(counted.neighbours.tolist()) & set(trained.neighbours.tolist()))
    assert found.word == pytest.approx(shared / 10)
    assert found.mean == pytest.approx(found.overlap.mean(), abs=1e-6)
    assert found.chance == pytest.approx(10 / (len(counted.labels) - 1))


@pytest.mark.parametrize(
    ("change", "said"),
    [({"word": "zebra"}, "word='zebra' must be one of"), ({"window": 99}, "window=99"), ({"word": "[UNK]"}, "UNK")],
)
def test_what_the_corpus_lacks_is_named(change: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        counted_space(**({"language": "en", "window": 2, "dimension": 8, "word": "dull"} | change))


def test_only_the_dimensions_on_offer_are_trained() -> None:
    with pytest.raises(ValueError, match="dimension=9 must be one of"):
        trained_space(language="en", dimension=9, word="dull")
