"""Heads: switched off, with dropout, and by their habits: what is reported is what the edited model gives."""

from functools import cache

import numpy as np
import pytest
import torch

from tests.helpers import nightly_but, refusals
from tests.helpers.engine import TODAY, made, random_weights, small_bundle, small_tokenizer
from transformer_core.analysis.attention.dropped import draw_weights, dropped_weights
from transformer_core.analysis.attention.head_ablation import head_effects, without_head
from transformer_core.analysis.attention.heads import attention_scope, head_off, heads_of_text, layer_looks
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
from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle
from transformer_core.models import Bert, Classifier, Gpt, SentenceEncoder
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

TEXT = "a glass box a bell"


@pytest.mark.parametrize("how", ["zero", "mean"])
def test_the_board_is_each_head_off_alone(how) -> None:
    bundle = small_bundle()
    board = head_effects(prompt=Prompt(bundle, TEXT, 12), how=how)
    encoding = bundle.tokenizer.encode(TEXT)
    before = read(bundle, encoding, sites=("class_logits",)).probabilities
    assert board.winner == int(np.argmax(before))
    assert board.before == pytest.approx(max(before), abs=1e-6)
    for layer in range(2):
        for head in range(2):
            edits = head_off(attention_scope(bundle, layer), head, how)
            after = read(bundle, encoding, sites=("class_logits",), edits=edits).probabilities
            moved = after[board.winner] - before[board.winner]
            assert board.change[layer, head] == pytest.approx(moved, abs=1e-6)
            one = without_head(prompt=Prompt(bundle, TEXT, 12), layer=layer, head=head, how=how)
            assert one.after == pytest.approx(after, abs=1e-6)
            assert one.moved == pytest.approx(moved, abs=1e-6)
            assert one.flips == bool(board.flips[layer, head])


@pytest.mark.parametrize("how", nightly_but(["zero", "mean"], ["mean"]))
@pytest.mark.parametrize("kind", [Classifier, Bert, Gpt])
@pytest.mark.parametrize(
    "changes",
    [
        *({"norm_order": "post"}, {"positions": "alibi", "pooling": "mean"}, {"projections": False}),
        *({"residual": False}, *TODAY.values()),
    ],
)
def test_going_on_from_the_whole_pass_is_as_good_as_passes_from_the_text(how, kind, changes) -> None:
    tokenizer = small_tokenizer()
    bundle = Bundle("glass", made(kind, **changes), tokenizer, ("no", "yes"))
    text = "a glass [MASK] a bell" if kind is Bert else TEXT
    board = head_effects(prompt=Prompt(bundle, text, 12), how=how)
    for layer in range(2):
        for head in range(bundle.config.n_heads):
            one = without_head(prompt=Prompt(bundle, text, 12), layer=layer, head=head, how=how)
            assert board.change[layer, head] == pytest.approx(one.moved, abs=1e-5)
            assert board.winner == one.winner
            assert bool(board.flips[layer, head]) == one.flips


def test_the_board_names_its_extremes() -> None:
    board = head_effects(prompt=Prompt(small_bundle(), TEXT, 12))
    assert board.strongest[board.most_weight] == board.strongest.max()
    assert abs(board.change[board.most_effect]) == np.abs(board.change).max()
    assert 1 <= board.place <= 4
    larger = (np.abs(board.change) > abs(board.change[board.most_weight])).sum()
    assert board.place == larger + 1
    for layer, head in board.idle.tolist():
        assert board.strongest[layer, head] >= 0.5
        assert abs(board.change[layer, head]) < 0.01


def test_the_mean_is_the_same_at_every_position_and_other_heads_stay() -> None:
    heads = torch.randn(1, 3, 4, 2, generator=torch.Generator().manual_seed(0))
    after = head_off("decoder", 1, "mean")["decoder.heads"](heads)
    assert torch.equal(after[:, [0, 2]], heads[:, [0, 2]])
    torch.testing.assert_close(after[0, 1], heads[0, 1].mean(0).expand(4, 2))
    assert head_off("decoder", 1)["decoder.heads"](heads).abs()[:, 1].max() == 0


def test_heads_of_text_are_the_traces_own() -> None:
    bundle = small_bundle()
    found = heads_of_text(prompt=Prompt(bundle, TEXT, 12), layer=1, head=1)
    trace = read(bundle, bundle.tokenizer.encode(TEXT)).trace
    np.testing.assert_allclose(found.weights, trace.stack("*.self_attention.weights")[:, 0].numpy(), atol=1e-6)
    np.testing.assert_allclose(found.steps.weights, found.weights[1, 1])


@pytest.mark.parametrize("options", [*TODAY, "alibi_capped"])
def test_a_heads_own_queries_keys_and_values_give_its_scores_and_mixture(options: str) -> None:
    changes = TODAY.get(options, {"positions": "alibi", "score_cap": 1.5, "scale_scores": False})
    bundle = Bundle("glass", made(Gpt, **changes), small_tokenizer())
    for head in range(bundle.config.n_heads):
        steps = heads_of_text(prompt=Prompt(bundle, TEXT, 12), layer=1, head=head).steps
        np.testing.assert_allclose(steps.weights @ steps.value, steps.mixture, atol=1e-5)
        if steps.divisor is None:
            assert options == "grouped_additive"
            continue
        scores = steps.query @ steps.key.T / steps.divisor
        scores = scores if steps.cap is None else steps.cap * np.tanh(scores / steps.cap)
        np.testing.assert_allclose(scores + (0 if steps.bias is None else steps.bias), steps.scores, atol=1e-5)


def test_looks_over_a_layer() -> None:
    asked = {"prompt": Prompt(small_bundle(), TEXT, 12), "layer": 0, "head": 1}
    weights = heads_of_text(**asked).weights[0]
    np.testing.assert_array_equal(layer_looks(**asked).weights, weights[1])
    np.testing.assert_allclose(layer_looks(**asked, over="mean").weights, weights.mean(0))
    most = layer_looks(**asked, over="max")
    np.testing.assert_array_equal(most.weights, weights.max(0))
    query, key = most.sharpest
    assert query != key
    assert most.weights[query, key] == np.where(np.eye(len(most.weights)), 0, most.weights).max()


TEXTS = ["a glass box rings in the hall"] * 3
ASKED = {"layer": 1, "head": 0, "percent": 25, "seed": 3, "draws": 64}


@cache
def three_classes() -> Bundle:
    """Return a classifier of three classes."""
    tokenizer = Tokenizer.train("word", TEXTS, vocab_size=20, template="cls")
    model = made(Classifier, vocab_size=tokenizer.vocab_size, n_classes=3)
    return Bundle("glass", model, tokenizer, ("no", "so", "yes"))


THREE = Prompt(three_classes(), TEXTS[0], 12)


def test_a_draw_drops_or_divides_by_what_is_left_and_the_mean_comes_back() -> None:
    found = dropped_weights(prompt=THREE, **ASKED)
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


def test_the_outcome_is_the_model_s_with_these_weights_in_the_head() -> None:
    bundle = three_classes()
    found = dropped_weights(prompt=Prompt(bundle, TEXTS[0], 12), **ASKED | {"draws": 5})
    ids = torch.tensor([bundle.tokenizer.encode(TEXTS[0]).ids])
    site = "encoder.layer1.self_attention.weights"
    plain, trace = capture(bundle.model, ids, sites=(site,))
    np.testing.assert_allclose(found.weights, trace[site][0, 0], rtol=1e-5)
    probabilities = plain[0].softmax(-1)
    assert (found.winner, found.before) == (
        int(probabilities.argmax()),
        pytest.approx(float(probabilities.max()), abs=1e-6),
    )
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
    none = dropped_weights(prompt=THREE, **ASKED | {"percent": 0, "draws": 2})
    np.testing.assert_allclose(none.after, none.before, atol=1e-6)
    assert none.flips == 0


def test_the_callers_random_numbers_are_left_as_they_were() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    dropped_weights(prompt=THREE, **ASKED)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("kind", [SentenceEncoder, Gpt])
def test_other_kinds_are_read_and_who_concludes_nothing_has_no_outcome(kind: type) -> None:
    bundle = three_classes()
    other = Bundle("other", made(kind, vocab_size=bundle.tokenizer.vocab_size), bundle.tokenizer)
    found = dropped_weights(prompt=Prompt(other, TEXTS[0], 12), **ASKED | {"draws": 3})
    assert len(found.after) == (0 if kind is SentenceEncoder else 3)
    assert (found.winner >= 0) == (kind is Gpt)


REPEATED = "a glass box a glass bell"
HABITS = {
    "previous": lambda n: np.eye(n, k=-1) + np.diag([1.0] + [0.0] * (n - 1)),
    "next": lambda n: np.eye(n, k=1) + np.diag([0.0] * (n - 1) + [1.0]),
    "first": lambda n: np.tile(np.eye(n)[0], (n, 1)),
    "same": np.eye,
    "marks": lambda n: np.tile(np.eye(n)[-1], (n, 1)),
}


def of_matrix(matrix: np.ndarray, text: str = REPEATED):
    """Return the scores of one head with these weights."""
    return tendencies_of([matrix[None, None]], [small_tokenizer().encode(text)], 0)


@pytest.mark.parametrize("name", HABITS)
def test_a_habit_is_recognised_by_its_excess_over_a_uniform_head(name: str) -> None:
    n = len(small_tokenizer().encode(REPEATED))
    found = of_matrix(HABITS[name](n))
    place = PLACES.index(name)
    assert labelled(found.scores, 0.2)[0, 0] == place
    assert found.weights[0, 0, place] == pytest.approx(1)
    assert found.uniform[place] == pytest.approx(1 / n)
    assert found.scores[0, 0, place] == pytest.approx(1 - 1 / n)


def test_a_repeated_word_is_recognised_and_only_words_count() -> None:
    ids = np.array(small_tokenizer().encode(REPEATED).ids)
    again = ((ids[:, None] == ids) & ~np.eye(len(ids), dtype=bool)).astype(float)
    matrix = np.where(again.any(1)[:, None], again, np.eye(len(ids)))
    found = of_matrix(matrix)
    assert found.weights[0, 0, PLACES.index("repeated")] == pytest.approx(1)
    none = of_matrix(np.eye(5), "a glass box")
    assert np.isnan(none.scores[0, 0, PLACES.index("repeated")])
    assert labelled(none.scores, 0.2)[0, 0] == PLACES.index("same")


def test_a_uniform_head_scores_nothing_and_is_broad() -> None:
    n = len(small_tokenizer().encode(REPEATED))
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
    encodings = [small_tokenizer().encode(text) for text in ("a box", REPEATED)]
    weights = [random_weights(1, 1, len(encoding), seed) for seed, encoding in enumerate(encodings)]
    found = tendencies_of(weights, encodings, 0)
    diagonals = np.concatenate([np.diag(one[0, 0]) for one in weights])
    assert found.weights[0, 0, PLACES.index("same")] == pytest.approx(diagonals.mean())
    assert found.by_sentence.shape == (2, 1, 1, len(TENDENCIES))


def test_steadiness_is_the_share_of_sentences_with_the_label_of_all() -> None:
    n = len(small_tokenizer().encode(REPEATED))
    encodings = [small_tokenizer().encode(REPEATED)] * 4
    matrices = [np.eye(n)[None, None]] * 3 + [np.full((1, 1, n, n), 1 / n)]
    assert steadiness(tendencies_of(matrices, encodings, 0), 0.2)[0, 0] == 0.75


def test_text_and_reviews_are_read_by_the_model() -> None:
    bundle = small_bundle(max_len=40)
    one = tendencies_of_text(prompt=Prompt(bundle, REPEATED, 12))
    assert one.scores.shape == (2, 2, len(TENDENCIES))
    np.testing.assert_allclose(one.scores, one.by_sentence[0])
    many = tendencies_of_reviews(bundle=bundle, language="en", sentences=3)
    assert len(many.by_sentence) == 3


ONE = {"prompt": Prompt(small_bundle(), TEXT, 12)}
REFUSED = [
    (lambda: head_effects(**ONE, how="half"), "how='half' is unknown; it must be one of 'zero', 'mean'"),
    (lambda: heads_of_text(**ONE, layer=5, head=0), "layer=5 must be from 0 to 1"),
    (lambda: layer_looks(**ONE, layer=0, head=1, over="sum"), "over='sum' must be head, mean or max"),
    (lambda: tendencies_of_reviews(bundle=small_bundle(), language="en", sentences=0), "sentences=0 must be from 1 to"),
    (
        lambda: dropped_weights(prompt=THREE, **ASKED | {"layer": 2}),
        "layer=2 must be from 0 to 1",
    ),
    (
        lambda: dropped_weights(prompt=THREE, **ASKED | {"head": -1}),
        "head=-1 must be from 0 to 1",
    ),
    (
        lambda: dropped_weights(prompt=THREE, **ASKED | {"percent": 96}),
        "percent=96 must be from 0 to 95",
    ),
    (
        lambda: dropped_weights(prompt=THREE, **ASKED | {"draws": 257}),
        "draws=257 must be from 1 to 256",
    ),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)


@pytest.mark.parametrize("options", ["llama", "gemma3", "multi_query"])
def test_a_head_is_shown_with_the_keys_and_values_that_it_reads(options: str) -> None:
    bundle = Bundle("today", made(Gpt, **TODAY[options]), small_tokenizer())
    prompt = Prompt(bundle, "a glass box a glass bell", 12)
    for head in range(bundle.config.n_heads):
        found = heads_of_text(prompt=prompt, layer=1, head=head).steps
        np.testing.assert_allclose(found.products / found.divisor, found.scores, atol=1e-5)
        np.testing.assert_allclose(found.weights @ found.value, found.mixture, atol=1e-5)
