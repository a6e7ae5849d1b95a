"""Counts of n-grams: probabilities of all tokens add up to 1, and what was seen is likelier than what was not."""

import math

import pytest

from transformer_core.evaluation.ngrams import BEFORE, KneserNey

ROWS = [[1, 2, 3, 1, 2, 4], [1, 2, 3, 5], [2, 3, 1, 2, 3], [6]]
VOCAB_SIZE = 9


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("context", [(2, 1, 2), (1, 2, 3), (4, 4, 4), (8, 7, 6), (BEFORE, BEFORE, BEFORE), (0, 1, 2)])
def test_probabilities_of_all_tokens_add_up_to_1(order: int, context: tuple[int, ...]) -> None:
    model = KneserNey(ROWS, order=order, vocab_size=VOCAB_SIZE)
    context = context[3 - (order - 1) :]
    chances = [model.probability(word, context) for word in range(VOCAB_SIZE)]
    assert sum(chances) == pytest.approx(1.0)
    assert all(chance > 0 for chance in chances)


def test_a_trigram_that_was_seen_is_likelier_than_one_that_was_not() -> None:
    model = KneserNey(ROWS, order=3, vocab_size=VOCAB_SIZE)
    seen = model.probability(3, (1, 2))
    assert seen > model.probability(4, (1, 2)) > model.probability(5, (1, 2)) > model.probability(0, (1, 2))
    assert model.probability(6, (BEFORE, BEFORE)) > model.probability(4, (BEFORE, BEFORE))


def test_below_the_highest_order_a_token_counts_by_how_many_tokens_stand_before_it() -> None:
    """5 follows 4 alone, however often; 6 follows three tokens, once each (Kneser and Ney 1995)."""
    model = KneserNey([[4, 5]] * 6 + [[1, 6], [2, 6], [3, 6]], order=2, vocab_size=VOCAB_SIZE)
    assert model.probability(6, (7,)) > model.probability(5, (7,))


def test_surprise_is_the_mean_over_tokens_but_the_given_ones() -> None:
    model = KneserNey(ROWS, order=2, vocab_size=VOCAB_SIZE)
    expected = -(math.log(model.probability(2, (1,))) + math.log(model.probability(3, (2,)))) / 2
    assert model.nats([[1, 2, 3]]) == pytest.approx(expected)
    assert model.nats([[1, 2, 3]], given=0) == pytest.approx(
        (2 * expected - math.log(model.probability(1, (BEFORE,)))) / 3
    )
    assert model.nats(ROWS) < math.log(VOCAB_SIZE)


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="order=0 must be at least 1"):
        KneserNey(ROWS, order=0, vocab_size=VOCAB_SIZE)
    with pytest.raises(ValueError, match="rows hold no token to count"):
        KneserNey([[]], order=2, vocab_size=VOCAB_SIZE)
    with pytest.raises(ValueError, match="rows hold no token to foresee"):
        KneserNey(ROWS, order=2, vocab_size=VOCAB_SIZE).nats([[1]])
