"""Dropout on one head: each draw keeps or drops, the mean comes back, and the outcome is that of the edited model."""

import numpy as np
import pytest
import torch

from tests.helpers.engine import made
from transformer_core.analysis.attention.dropped import draw_weights, dropped_weights
from transformer_core.bundle import Bundle
from transformer_core.models import Classifier, Gpt, SentenceEncoder
from transformer_core.probe import capture
from transformer_core.text import Tokenizer

TEXTS = ["a glass box rings in the hall"] * 3
ASKED = {"text": TEXTS[0], "n_tokens": 12, "layer": 1, "head": 0, "percent": 25, "seed": 3, "draws": 64}


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    tokenizer = Tokenizer.train("word", TEXTS, vocab_size=20, template="cls")
    model = made(Classifier, vocab_size=tokenizer.vocab_size, n_classes=3)
    return Bundle("glass", model, tokenizer, ("no", "so", "yes"))


def test_a_draw_drops_or_divides_by_what_is_left_and_the_mean_comes_back(bundle: Bundle) -> None:
    found = dropped_weights(bundle=bundle, **ASKED)
    assert found.probability == 0.25
    whole = found.weights / 0.75
    assert bool((np.isclose(found.draw, 0) | np.isclose(found.draw, whole, rtol=1e-5)).all())
    assert np.isclose(found.draw, 0).any()
    assert not np.isclose(found.draw, 0).all()
    np.testing.assert_allclose(found.row_sums, found.draw.sum(-1), rtol=1e-5)
    np.testing.assert_allclose(found.weights.sum(-1), 1, rtol=1e-5)
    assert float(np.abs(found.row_sums - 1).max()) > 0.01
    assert found.counts.tolist() == [1, 2, 4, 8, 16, 32, 64]
    assert found.distances[-1] < found.distances[0] / 3
    np.testing.assert_allclose(found.distances[-1], np.sqrt(np.mean((found.mean - found.weights) ** 2)), rtol=1e-4)


def test_many_draws_have_the_weights_as_their_mean_and_the_share_as_theirs() -> None:
    weights = torch.rand(4, 5)
    drawn = draw_weights(weights, 0.5, 4_000, 0)
    torch.testing.assert_close(drawn.mean(0), weights, atol=0.06, rtol=0.05)
    assert float((drawn == 0).float().mean()) == pytest.approx(0.5, abs=0.01)
    assert torch.equal(draw_weights(weights, 0.5, 3, 7), draw_weights(weights, 0.5, 9, 7)[:3])
    assert not torch.equal(draw_weights(weights, 0.5, 3, 7), draw_weights(weights, 0.5, 3, 8))
    torch.testing.assert_close(draw_weights(weights, 0.0, 2, 0), weights.expand(2, -1, -1))


def test_the_outcome_is_the_model_s_with_these_weights_in_the_head(bundle: Bundle) -> None:
    found = dropped_weights(bundle=bundle, **ASKED | {"draws": 5})
    ids = torch.tensor([bundle.tokenizer.encode(TEXTS[0]).ids])
    site = "encoder.layer1.self_attention.weights"
    plain, trace = capture(bundle.model, ids, sites=(site,))
    np.testing.assert_allclose(found.weights, trace[site][0, 0], rtol=1e-5)
    chances = plain[0].softmax(-1)
    assert (found.winner, found.before) == (int(chances.argmax()), pytest.approx(float(chances.max()), abs=1e-6))
    drawn = draw_weights(torch.from_numpy(found.weights), 0.25, 5, 3)
    flips = 0
    for draw, after in zip(drawn, found.after, strict=True):
        weights = trace[site].clone()
        weights[0, 0] = draw
        output, _ = capture(bundle.model, ids, edits={site: lambda _, weights=weights: weights})
        chance = output[0].softmax(-1)
        assert after == pytest.approx(float(chance[found.winner]), abs=1e-6)
        flips += int(chance.argmax()) != found.winner
    assert found.flips == flips
    none = dropped_weights(bundle=bundle, **ASKED | {"percent": 0, "draws": 2})
    np.testing.assert_allclose(none.after, none.before, atol=1e-6)
    assert none.flips == 0


def test_the_callers_random_numbers_are_left_as_they_were(bundle: Bundle) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    dropped_weights(bundle=bundle, **ASKED)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("kind", [SentenceEncoder, Gpt])
def test_other_kinds_are_read_and_who_concludes_nothing_has_no_outcome(kind: type, bundle: Bundle) -> None:
    other = Bundle("other", made(kind, vocab_size=bundle.tokenizer.vocab_size), bundle.tokenizer)
    found = dropped_weights(bundle=other, **ASKED | {"draws": 3})
    assert len(found.after) == (0 if kind is SentenceEncoder else 3)
    assert (found.winner >= 0) == (kind is Gpt)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer": 2}, "layer=2 must be from 0 to 1"),
        ({"head": -1}, "head=-1 must be from 0 to 1"),
        ({"percent": 96}, "percent=96 must be from 0 to 95"),
        ({"draws": 257}, "draws=257 must be from 1 to 256"),
    ],
)
def test_numbers_outside_their_range_are_refused(change: dict, message: str, bundle: Bundle) -> None:
    with pytest.raises(ValueError, match=message):
        dropped_weights(bundle=bundle, **ASKED | change)
