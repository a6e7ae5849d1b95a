"""Questions of lectures: each comes to what its own analysis says, of real models."""

import numpy as np
import pytest
import torch

from tests.helpers import ROOT
from transformer_core import load
from transformer_core.analysis.questions import QUESTIONS, Finding, numbers_of, reads_text
from transformer_core.analysis.words.vocabulary import embedding_matrix
from transformer_core.bundle import Bundle

TEXT = "The actors were bad, the story was good."
SWAPPED = "The story was good, the actors were bad."


@pytest.fixture(scope="module")
def sentiment() -> Bundle:
    return load(ROOT / "assets/checkpoints/sentiment")


def chances(bundle: Bundle, text: str) -> np.ndarray:
    """Return the classes' probabilities as the model itself gives them."""
    with torch.inference_mode():
        return bundle.model(torch.tensor([bundle.tokenizer.encode(text).ids])).softmax(-1)[0].numpy()


def asked(name: str, bundle: Bundle, text: str = TEXT, **numbers: int) -> Finding:
    return QUESTIONS[name](bundle=bundle, text=text, n_tokens=64, **numbers)


def test_a_verdict_is_that_of_the_model(sentiment: Bundle) -> None:
    for text in (TEXT, SWAPPED):
        own = chances(sentiment, text)
        found = asked("verdict", sentiment, text)
        assert found.option == sentiment.labels[int(own.argmax())]
        assert found.value == pytest.approx(float(own.max()), abs=1e-6)


def test_without_positions_the_order_of_words_is_nothing(sentiment: Bundle) -> None:
    left = [
        chances(sentiment, text).max() + asked("without_positions", sentiment, text).value for text in (TEXT, SWAPPED)
    ]
    winners = [int(chances(sentiment, text).argmax()) for text in (TEXT, SWAPPED)]
    assert winners[0] != winners[1]
    assert left[0] == pytest.approx(1 - left[1], abs=1e-5)
    assert "flips" in {asked("without_positions", sentiment, text).option for text in (TEXT, SWAPPED)}


def test_moves_are_named_by_their_size(sentiment: Bundle) -> None:
    for name, numbers in (
        ("under_a_causal_mask", {}),
        ("another_activation", {}),
        ("a_head_off", {"layer": 0, "head": 1}),
    ):
        for text in (TEXT, SWAPPED):
            found, before = asked(name, sentiment, text, **numbers), chances(sentiment, text).max()
            after = before + found.value
            named = "flips" if after < 0.5 else "much" if abs(found.value) >= 0.05 else "little"
            assert found.option == named


def test_words_and_places_are_those_of_the_text(sentiment: Bundle) -> None:
    labels = sentiment.tokenizer.encode(TEXT).labels
    assert asked("how_many_tokens", sentiment) == Finding("10", 10)
    assert asked("weightiest_word", sentiment).option == "good"
    table = embedding_matrix(sentiment.model).detach()
    row = labels.index("good")
    found = asked("nearest_word", sentiment, row=row)
    pair = [table[sentiment.tokenizer.id_of(word)] for word in ("good", found.option)]
    assert found.value == pytest.approx(float(torch.cosine_similarity(*pair, dim=0)), abs=1e-5)
    assert asked("where_a_head_looks", sentiment, layer=0, head=0).option == "previous"
    assert asked("where_a_head_looks", sentiment, layer=0, head=7).option == "next"


def test_depth_and_parts_are_told(sentiment: Bundle) -> None:
    assert asked("settled_at", sentiment).option in {str(depth) for depth in range(sentiment.config.n_layers + 1)}
    assert asked("settled_at", sentiment).value > 0.5
    assert asked("larger_part", sentiment).value >= 1
    assert asked("strongest_head", sentiment).option in ("strongest", "another")


def test_what_is_written_next_and_where_the_decoder_looks() -> None:
    gpt = load(ROOT / "assets/checkpoints/gpt")
    assert asked("next_token", gpt, "Once upon a time there was a little girl named").option == "Lily"
    translation = load(ROOT / "assets/checkpoints/translation-en-fr")
    text = "A man in a red shirt is riding a horse."
    assert asked("written_word", translation, text, step=6).option == "rouge"
    assert asked("where_the_decoder_looks", translation, text, step=6).option == "red"
    assert QUESTIONS["falls_most_with_length"]().option == "seq2seq-en-fr-plain"


def test_gates_let_learning_reach_farther_back() -> None:
    text, back = "To be, or not to be: that is the questio", {}
    for name in ("lm-rnn", "lm-gru", "lm-lstm"):
        back[name] = int(asked("half_of_the_gradient", load(ROOT / "assets/checkpoints" / name), text).option)
    assert back["lm-rnn"] < back["lm-lstm"] < back["lm-gru"]
    plain = load(ROOT / "assets/checkpoints/seq2seq-en-fr-plain")
    assert asked("most_left_of", plain, "A man in a red shirt is riding a horse.").option == "horse"


@pytest.mark.parametrize(
    ("name", "numbers", "words"),
    [
        ("nearest_word", {"row": 99}, "row=99 must be from 0 to 11"),
        ("where_a_head_looks", {"layer": 4, "head": 0}, "layer=4 must be from 0 to 3"),
        ("where_a_head_looks", {"layer": 0, "head": 8}, "head=8 must be from 0 to 7"),
        ("written_word", {"step": 0}, "must be a seq2seq or a translation"),
        ("next_token", {}, "sentiment"),
    ],
)
def test_what_cannot_be_asked_is_told(sentiment: Bundle, name: str, numbers: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        asked(name, sentiment, **numbers)


def test_each_question_tells_what_it_takes() -> None:
    assert numbers_of("where_a_head_looks") == ("layer", "head")
    assert numbers_of("falls_most_with_length") == ()
    assert not reads_text("falls_most_with_length")
    assert all(reads_text(name) for name in QUESTIONS if name not in ("falls_most_with_length", "bits_needed"))
