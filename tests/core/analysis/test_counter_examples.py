"""A counter-example differs in one word, and its verdict is what the model says of its text read alone."""

import pytest

from tests.helpers import ROOT
from transformer_core.analysis.counter_examples import MOST_TRIED, counter_examples
from transformer_core.analysis.outcome import outcome_of, read
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load

CHECKPOINTS = ROOT / "assets" / "checkpoints"
TEXT = "I expected a masterpiece, but the story was dull and the ending was a bore."


@pytest.fixture(scope="module")
def sentiment() -> Bundle:
    return load(CHECKPOINTS / "sentiment", device="cpu")


@pytest.mark.parametrize("text", [TEXT, "This is not a good film.", "The food was cold and the waiter was rude."])
def test_they_turn_the_verdict_as_the_model_reads_them_alone(sentiment: Bundle, text: str) -> None:
    found = counter_examples(bundle=sentiment, text=text, n_tokens=64)
    assert 0 < found.turns <= found.tried <= MOST_TRIED
    assert len(found.found) == 2
    for each in found.found:
        probabilities = read(sentiment, sentiment.tokenizer.encode(each.text), sites=()).probabilities
        assert each.winner == probabilities.index(max(probabilities)) != found.winner
        assert each.probability == pytest.approx(max(probabilities), abs=1e-4)
        assert each.left == pytest.approx(probabilities[found.winner], abs=1e-4)


def test_one_word_changes_and_nothing_else(sentiment: Bundle) -> None:
    for each in counter_examples(bundle=sentiment, text=TEXT, n_tokens=64).found:
        assert each.text[each.start : each.end] == each.new
        now, before = each.text.split(), TEXT.split()
        if each.new:
            assert [one for one, other in zip(before, now, strict=True) if one != other] == [each.old]
        else:
            assert len(now) == len(before) - 1
            assert "  " not in each.text


def test_where_nothing_turns_it_those_that_come_closest_are_shown(sentiment: Bundle) -> None:
    found = counter_examples(
        bundle=sentiment,
        text="A wonderful, moving and funny film, one of the best of the year, with a great cast.",
        n_tokens=64,
    )
    assert found.turns == 0
    assert [each.winner for each in found.found] == [found.winner] * 2
    assert found.found[0].left <= found.found[1].left < found.before


def test_articles_stay_right(sentiment: Bundle) -> None:
    found = counter_examples(bundle=sentiment, text="It is a dull story.", n_tokens=64)
    assert not any(f"a {each.new}"[:3] in ("a a", "a e", "a i", "a o") for each in found.found if each.old == "dull")


@pytest.mark.parametrize("text", ["?!", "😀", "\u202ea", "a", "a" * 400, "[MASK] [PAD]"])
def test_hostile_texts_are_read(sentiment: Bundle, text: str) -> None:
    found = counter_examples(bundle=sentiment, text=text, n_tokens=64)
    assert all(each.text.strip() for each in found.found)


def test_the_work_is_bounded_for_a_long_text(sentiment: Bundle) -> None:
    found = counter_examples(bundle=sentiment, text="a dull but wonderful plot " * 24, n_tokens=128)
    assert found.tried <= 2_400 // 100


@pytest.mark.parametrize(
    ("name", "text"), [("gpt", "A man in a red shirt is riding a"), ("bert", "A man in a [MASK] shirt rides.")]
)
def test_other_outcomes_are_read_at_their_own_place(name: str, text: str) -> None:
    bundle = load(CHECKPOINTS / name, device="cpu")
    for each in counter_examples(bundle=bundle, text=text, n_tokens=64).found:
        encoding = bundle.tokenizer.encode(each.text)
        assert outcome_of(bundle, encoding) is not None
        probabilities = read(bundle, encoding, sites=()).probabilities
        assert each.winner == probabilities.index(max(probabilities))
        assert each.probability == pytest.approx(max(probabilities), abs=1e-3)
