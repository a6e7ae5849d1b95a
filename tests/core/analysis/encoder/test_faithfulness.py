"""Words are hidden in each measure's order, and the fall of the verdict tells which order is to be believed."""

import numpy as np
import pytest
import torch

from tests.helpers import ROOT
from transformer_core.analysis.encoder.faithfulness import POINTS, deletion, deletion_on_reviews, hiding_orders
from transformer_core.analysis.encoder.measures import MEASURES, values_of
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load

TEXT = "The plot was thin but I loved every minute"


@pytest.fixture(scope="module")
def sentiment() -> Bundle:
    return load(ROOT / "assets" / "checkpoints" / "sentiment", device="cpu")


def test_a_sign_counts_where_a_measure_has_one() -> None:
    values = np.tile(np.array([0.0, -3.0, 2.0, 1.0, np.nan]), (len(MEASURES), 1))
    orders = dict(zip(MEASURES, hiding_orders(values, [1, 2, 3, 4]), strict=True))
    assert orders["occlusion"] == orders["integrated"] == orders["product"] == [2, 3, 1, 4]
    assert orders["gradient"] == orders["rollout"] == orders["last"] == [1, 2, 3, 4]


def test_the_fall_is_that_of_the_words_hidden_one_by_one(sentiment: Bundle) -> None:
    found = deletion(bundle=sentiment, text=TEXT, n_tokens=32, steps=4)
    encoding = sentiment.tokenizer.encode(TEXT)
    own = [place for place, special in enumerate(encoding.special) if not special]
    values, gradients = values_of(sentiment, TEXT, 32, steps=4, baseline="mask")
    order = hiding_orders(values, own)[MEASURES.index("occlusion")]
    ids, left = torch.tensor([encoding.ids]), []
    for place in [None, *order]:
        if place is not None:
            ids[0, place] = sentiment.tokenizer.mask_id
        with torch.no_grad():
            left.append(float(sentiment.model(ids).softmax(-1)[0, gradients.winner]))
    row = MEASURES.index("occlusion")
    assert found.words == len(own)
    assert found.area[row] == pytest.approx(np.trapezoid(left, np.linspace(0, 1, len(left))), abs=1e-5)
    assert found.left[row, 0] == pytest.approx(left[0], abs=1e-5)
    assert found.left[row, -1] == pytest.approx(left[-1], abs=1e-5)
    assert found.left.shape == (len(MEASURES) + 1, POINTS)
    assert found.best == int(found.area[:-1].argmin())


def test_hiding_beats_chance_over_reviews(sentiment: Bundle) -> None:
    found = deletion_on_reviews(bundle=sentiment, count=4)
    assert found.wins.sum() == found.reviews == 4
    assert found.area[found.best] < found.area[-1]
    with pytest.raises(ValueError, match="count=0 must be from 1 to"):
        deletion_on_reviews(bundle=sentiment, count=0)


def test_one_word_is_too_few(sentiment: Bundle) -> None:
    with pytest.raises(ValueError, match="has 1 words to hide; at least 2 are needed"):
        deletion(bundle=sentiment, text="good", n_tokens=8)
