"""Tendencies on weights made by hand: each habit is recognised, a uniform head has none."""

import numpy as np
import pytest

from tests.helpers.engine import random_weights, small_bundle, small_tokenizer
from transformer_core.analysis.attention.tendencies import (
    NONE,
    PLACES,
    TENDENCIES,
    labelled,
    steadiness,
    tendencies_of,
    tendencies_of_reviews,
    tendencies_of_text,
)

TEXT = "a glass box a glass bell"
HABITS = {
    "previous": lambda n: np.eye(n, k=-1) + np.diag([1.0] + [0.0] * (n - 1)),
    "next": lambda n: np.eye(n, k=1) + np.diag([0.0] * (n - 1) + [1.0]),
    "first": lambda n: np.tile(np.eye(n)[0], (n, 1)),
    "same": np.eye,
    "marks": lambda n: np.tile(np.eye(n)[-1], (n, 1)),
}


def of_matrix(matrix: np.ndarray, text: str = TEXT):
    """Return the scores of one head with these weights."""
    return tendencies_of([matrix[None, None]], [small_tokenizer().encode(text)], 0)


@pytest.mark.parametrize("name", HABITS)
def test_a_habit_is_recognised_by_its_excess_over_a_uniform_head(name: str) -> None:
    n = len(small_tokenizer().encode(TEXT))
    found = of_matrix(HABITS[name](n))
    place = PLACES.index(name)
    assert labelled(found.scores, 0.2)[0, 0] == place
    assert found.weights[0, 0, place] == pytest.approx(1)
    assert found.uniform[place] == pytest.approx(1 / n)
    assert found.scores[0, 0, place] == pytest.approx(1 - 1 / n)


def test_a_repeated_word_is_recognised_and_only_words_count() -> None:
    ids = np.array(small_tokenizer().encode(TEXT).ids)
    again = ((ids[:, None] == ids) & ~np.eye(len(ids), dtype=bool)).astype(float)
    matrix = np.where(again.any(1)[:, None], again, np.eye(len(ids)))
    found = of_matrix(matrix)
    assert found.weights[0, 0, PLACES.index("repeated")] == pytest.approx(1)
    none = of_matrix(np.eye(5), "a glass box")
    assert np.isnan(none.scores[0, 0, PLACES.index("repeated")])
    assert labelled(none.scores, 0.2)[0, 0] == PLACES.index("same")


def test_a_uniform_head_scores_nothing_and_is_broad() -> None:
    n = len(small_tokenizer().encode(TEXT))
    found = of_matrix(np.full((n, n), 1 / n))
    np.testing.assert_allclose(found.scores[0, 0, :-1], 0, atol=1e-12)
    assert found.scores[0, 0, -1] == pytest.approx(1)
    assert labelled(found.scores, 0.05)[0, 0] == TENDENCIES.index("broad")


def test_below_the_threshold_nothing_is_claimed() -> None:
    scores = np.array([0.19, 0.1, -0.1, 0.0, np.nan, 0.0, 0.5])
    assert labelled(scores, 0.2) == NONE
    assert labelled(scores, 0.15) == 0


def test_padding_is_neither_query_nor_key() -> None:
    encoding = small_tokenizer().encode("a box [PAD] [PAD]")
    weights = random_weights(1, 1, len(encoding))
    real = np.array(encoding.ids) != 0
    weights[..., ~real] = 0
    weights /= weights.sum(-1, keepdims=True)
    found = tendencies_of([weights], [encoding], 0)
    kept = weights[0, 0][real][:, real]
    assert found.weights[0, 0, PLACES.index("same")] == pytest.approx(np.diag(kept).mean())
    assert found.uniform[PLACES.index("same")] == pytest.approx(1 / real.sum())


def test_many_sentences_weigh_by_their_queries() -> None:
    encodings = [small_tokenizer().encode(text) for text in ("a box", TEXT)]
    weights = [random_weights(1, 1, len(encoding), seed) for seed, encoding in enumerate(encodings)]
    found = tendencies_of(weights, encodings, 0)
    diagonals = np.concatenate([np.diag(one[0, 0]) for one in weights])
    assert found.weights[0, 0, PLACES.index("same")] == pytest.approx(diagonals.mean())
    assert found.by_sentence.shape == (2, 1, 1, len(TENDENCIES))


def test_steadiness_is_the_share_of_sentences_with_the_label_of_all() -> None:
    n = len(small_tokenizer().encode(TEXT))
    encodings = [small_tokenizer().encode(TEXT)] * 4
    matrices = [np.eye(n)[None, None]] * 3 + [np.full((1, 1, n, n), 1 / n)]
    assert steadiness(tendencies_of(matrices, encodings, 0), 0.2)[0, 0] == 0.75


def test_text_and_reviews_are_read_by_the_model() -> None:
    bundle = small_bundle(max_len=40)
    one = tendencies_of_text(bundle=bundle, text=TEXT, n_tokens=12)
    assert one.scores.shape == (2, 2, len(TENDENCIES))
    np.testing.assert_allclose(one.scores, one.by_sentence[0])
    many = tendencies_of_reviews(bundle=bundle, language="en", sentences=3)
    assert len(many.by_sentence) == 3
    with pytest.raises(ValueError, match="sentences=0 must be from 1 to 200"):
        tendencies_of_reviews(bundle=bundle, language="en", sentences=0)
