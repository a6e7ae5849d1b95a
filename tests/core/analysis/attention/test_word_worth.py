"""Words are hidden whole, and what each is worth is the difference of two readings."""

import numpy as np
import pytest
import torch

from tests.helpers import ROOT
from transformer_core.analysis.attention.occlusion import occlusion, word_worth
from transformer_core.analysis.outcome import one_text, outcome_of
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.text.encoding import words_of

CHECKPOINTS = ROOT / "assets" / "checkpoints"


@pytest.fixture(scope="module")
def sentiment() -> Bundle:
    return load(CHECKPOINTS / "sentiment", device="cpu")


def spelled(bundle: Bundle, text: str) -> list[str]:
    """Return the words of a text."""
    return [text[word.start : word.end] for word in words_of(bundle.tokenizer.encode(text))]


def test_pieces_and_apostrophes_are_one_word_and_signs_stand_alone(sentiment: Bundle) -> None:
    text = "It wasn't phenomenologically bad, 很好!"
    assert spelled(sentiment, text) == ["It", "wasn't", "phenomenologically", "bad", ",", "很", "好", "!"]


def test_blanks_of_bytes_and_characters_are_no_words() -> None:
    for name in ("gpt", "gpt-char"):
        assert spelled(load(CHECKPOINTS / name, device="cpu"), "A man  is") == ["A", "man", "is"]


def test_a_sign_of_several_bytes_is_one_word() -> None:
    assert spelled(load(CHECKPOINTS / "gpt", device="cpu"), "a 😀 b") == ["a", "😀", "b"]


def test_special_tokens_are_no_words(sentiment: Bundle) -> None:
    found = word_worth(bundle=sentiment, text="[MASK] [PAD]", n_tokens=8)
    assert found.spans.shape == (0, 2)
    assert len(found.worth) == 0


def test_a_word_of_one_token_is_worth_what_occlusion_says(sentiment: Bundle) -> None:
    text = "This is not a good film."
    found = word_worth(bundle=sentiment, text=text, n_tokens=32)
    by_token = occlusion(bundle=sentiment, text=text, n_tokens=32)
    assert found.winner == by_token.winner
    np.testing.assert_allclose(found.worth, -by_token.change[1:-1], atol=1e-6)


def test_the_pieces_of_a_word_are_hidden_together(sentiment: Bundle) -> None:
    text = "A phenomenologically dull film"
    encoding = sentiment.tokenizer.encode(text)
    word = words_of(encoding)[1]
    assert len(word.places) > 1
    ids = one_text(sentiment, encoding)
    hidden = ids.clone()
    hidden[0, list(word.places)] = sentiment.tokenizer.mask_id
    with torch.no_grad():
        whole, without = (sentiment.model(each).softmax(-1)[0] for each in (ids, hidden))
    winner = int(whole.argmax())
    found = word_worth(bundle=sentiment, text=text, n_tokens=32)
    assert found.worth[1] == pytest.approx(float(whole[winner] - without[winner]), abs=1e-5)


def test_a_gpt_reads_without_the_word_and_never_without_the_last() -> None:
    bundle = load(CHECKPOINTS / "gpt", device="cpu")
    text = "A man is riding a"
    encoding = bundle.tokenizer.encode(text)
    found = word_worth(bundle=bundle, text=text, n_tokens=32)
    assert np.isnan(found.worth[-1])
    mask = torch.ones(len(encoding), len(encoding), dtype=torch.bool).tril()
    mask[4:, 3] = False  # no later token may look at "riding"
    with torch.no_grad():
        outcome = outcome_of(bundle, encoding)
        logits = [
            outcome.logits(bundle.model(one_text(bundle, encoding), mask=each)) for each in (None, mask[None, None])
        ]
    whole, without = (each.softmax(-1)[0] for each in logits)
    assert found.worth[3] == pytest.approx(float(whole[found.winner] - without[found.winner]), abs=1e-5)


def test_behind_a_mask_every_other_word_is_hidden() -> None:
    bundle = load(CHECKPOINTS / "bert", device="cpu")
    text = "A man in a [MASK] shirt."
    found = word_worth(bundle=bundle, text=text, n_tokens=32)
    assert [text[start:end] for start, end in found.spans] == ["A", "man", "in", "a", "shirt", "."]
    assert np.isfinite(found.worth).all()
