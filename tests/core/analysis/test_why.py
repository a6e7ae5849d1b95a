"""Why attention is as it is: heads, scaling, costs, ablations, and short trainings in which one thing differs."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import transformer_core.analysis.short_training as short
import transformer_core.analysis.why.joined_positions as joined
from tests.helpers import refusals
from tests.helpers.engine import made, small_bundle, work_for_time
from transformer_core.analysis import timing
from transformer_core.analysis.attention.heads import head_entropies
from transformer_core.analysis.feed_forward.bernoulli import gates
from transformer_core.analysis.stream import depth
from transformer_core.analysis.stream.depth import reach_by_depth
from transformer_core.analysis.timing import Stopwatch
from transformer_core.analysis.why import cost, many_heads, scorings
from transformer_core.analysis.why.gates import own_gates, train_activations
from transformer_core.analysis.why.many_heads import divergence, heads_of_layer, one_by_one
from transformer_core.analysis.why.projections import (
    asymmetry,
    parameters_saved,
    tied_query_key,
    train_shared_values,
    without_projections,
)
from transformer_core.analysis.why.scaling import N_KEYS, jacobian_norm, spread_by_width, spread_of_own_heads
from transformer_core.analysis.why.scorings import spread_of_scorings
from transformer_core.analysis.why.sentence_attention import sentence_attention
from transformer_core.bundle import Bundle
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.initialization import initialize
from transformer_core.models import Classifier, Gpt
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

TEXT = "a glass box a bell"
KINDS = (
    {},
    {"positions": "rotary"},
    {"positions": "alibi"},
    {"norm_order": "post", "scale_embeddings": True},
    {"norm_order": "post", "embedding_norm": True, "positions": "none"},
)


@pytest.fixture(params=KINDS, ids=lambda kind: " ".join(map(str, kind.values())) or "plain")
def bundle(request: pytest.FixtureRequest) -> Bundle:
    """Return an untrained classifier of two layers and two heads."""
    tokenizer = Tokenizer.train("word", ["a glass box", "a glass bell", "a box"] * 3, vocab_size=13)
    return Bundle("tiny", made(Classifier, **request.param), tokenizer, ("no", "yes"))


def test_divergence_is_none_for_alike_and_one_bit_for_disjoint() -> None:
    first, second = np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 0.1, 0.9])
    assert divergence(first, first) == 0
    assert divergence(first, second) == pytest.approx(1.0)
    assert divergence(first, second) == divergence(second, first)


def test_the_joined_head_adds_up_the_heads(bundle: Bundle) -> None:
    found = heads_of_layer(prompt=Prompt(bundle, TEXT, 12), layer=1)
    np.testing.assert_allclose(found.joined.sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(np.diag(found.divergence), 0.0, atol=1e-7)
    assert 1 <= found.targets <= len(found.weights)
    assert 0 <= found.mean_divergence <= 1
    assert max(found.entropy, found.joined_entropy) <= math.log(len(found.labels)) + 1e-6


def test_heads_one_by_one_are_the_reshaped_heads() -> None:
    attention = MultiHeadAttention(24, 3)
    x = torch.randn(2, 5, 24)
    torch.testing.assert_close(one_by_one(attention, x), attention(x))


def test_cutting_a_width_into_heads_changes_no_count(monkeypatch) -> None:
    work_for_time(monkeypatch)
    found = many_heads.cost_of_heads(d_model=32, n_tokens=12, seed=0, measurement=0)
    assert set(found.parameters.tolist()) == {4 * 32 * 32 + 4 * 32}
    assert set(found.multiplications.tolist()) == {4 * 12 * 32**2 + 2 * 12**2 * 32}
    assert found.exponentials.tolist() == [heads * 144 for heads in found.heads.tolist()]
    assert found.difference.max() < 1e-5
    assert (np.diff(found.seconds) > 0).all()  # one matrix of weights a head


def by_the_clock(monkeypatch: pytest.MonkeyPatch, taken: Iterable[float], computed: Iterable[float]) -> None:
    """Let calls take these seconds by the clock and on the processor."""
    for name, module, seconds in (("perf_counter", timing.time, taken), ("processor_time", timing, computed)):
        ticks = itertools.accumulate(step for each in seconds for step in (0.0, each))
        monkeypatch.setattr(module, name, lambda ticks=ticks: next(ticks))


@pytest.mark.parametrize(("repeats", "within", "calls"), [(15, 0.0, 8), (9, 99.0, 10), (15, 18.0, 10)])
def test_a_time_takes_at_least_seven_calls_and_stops_in_time(monkeypatch, repeats, within, calls) -> None:
    """A call takes 2 seconds, and one more is not counted."""
    called, watch = [], Stopwatch()
    with monkeypatch.context() as patch:
        by_the_clock(patch, [2.0] * 20, [2.0] * 20)
        assert watch.seconds(lambda: called.append(1), repeats=repeats, within=within) == 2.0
    assert len(called) == calls
    assert watch.spread == 1.0


def test_a_sweep_times_each_call_at_each_size_as_often_as_is_asked(monkeypatch) -> None:
    called: list[tuple[int, str]] = []
    with monkeypatch.context() as patch:
        by_the_clock(patch, [0.0] * 99, [float(n) for n in range(1, 100)])
        times, spread = timing.sweep(
            (3, 5), lambda size: [partial(called.append, (size, name)) for name in "ab"], repeats=(7, 9)
        )
    assert called == [(3, "a")] * 8 + [(3, "b")] * 10 + [(5, "a")] * 8 + [(5, "b")] * 10
    np.testing.assert_array_equal(times, [[1.0, 17.0], [8.0, 24.0]])
    assert spread == 1.0


def test_other_work_changes_the_spread_of_times_and_not_the_least_one(monkeypatch) -> None:
    """Of seven calls the processor spends 1 second on each, and once 2; the clock says 3, then 1."""
    watch = Stopwatch()
    with monkeypatch.context() as patch:
        by_the_clock(patch, [3.0] * 7 + [1.0] * 7, [2.0, *[1.0] * 13])
        assert watch.seconds(lambda: None, within=0.0) == 1.0
        assert watch.spread == 3.0
        assert watch.seconds(lambda: None, within=0.0) == 1.0
        assert watch.spread == 3.0


def test_the_variance_of_products_is_the_width() -> None:
    found = spread_by_width(seed=0)
    np.testing.assert_allclose(found.variance, found.widths, rtol=0.1)
    np.testing.assert_allclose(found.variance_divided, found.variance / found.widths, rtol=1e-4)
    assert found.slope == pytest.approx(1.0, abs=0.03)


def test_without_the_division_one_key_takes_it_all() -> None:
    found = spread_by_width(seed=1)
    assert found.greatest[-1] > 0.9 > 0.5 > found.greatest_divided[-1]
    assert (np.diff(found.entropy) < 0).all()
    assert found.gradient[-1] < 0.5 * found.gradient_divided[-1]
    assert (found.entropy_divided <= np.log(N_KEYS)).all()
    np.testing.assert_allclose(found.weights.sum(-1), 1.0, atol=1e-9)
    np.testing.assert_allclose(found.weights[0], found.weights_divided[0], atol=1e-6)


def test_the_norm_is_that_of_the_jacobian() -> None:
    scores = torch.randn(6, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: x.softmax(-1), scores)
    assert isinstance(jacobian, torch.Tensor)
    torch.testing.assert_close(jacobian_norm(scores.softmax(-1)), torch.linalg.matrix_norm(jacobian))


def test_own_heads_agree_with_the_model(bundle: Bundle) -> None:
    found = spread_of_own_heads(prompt=Prompt(bundle, TEXT, 12))
    assert found.layers.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(found.variance_divided, found.variance / found.d_head, rtol=1e-4)
    np.testing.assert_allclose(found.variance_wide, found.variance / bundle.config.d_model, rtol=1e-4)
    assert (found.entropy_undivided <= found.entropy).all()
    assert (
        found.entropy <= found.entropy_wide
    ).all() or bundle.config.positions == "alibi"  # whose bias stays as it is
    expected = head_entropies(prompt=Prompt(bundle, TEXT, 12))
    np.testing.assert_allclose(found.entropy.reshape(2, 2), expected.heads, atol=1e-5)
    assert found.largest_entropy == pytest.approx(expected.greatest)


def test_padding_is_left_out(bundle: Bundle) -> None:
    sight = sentence_attention(Prompt(bundle, "a box [PAD]", 12))
    hidden = [label == "[PAD]" for label in sight.labels]
    assert sight.layers[0].allowed.logical_not().any(0).tolist() == hidden
    scores = sight.layers[1].scores
    torch.testing.assert_close(sight.layers[1].weights_of(scores), sight.layers[1].weights)


@pytest.mark.parametrize("vectors", ["rows", "tokens", "embedded", "read"])
def test_vectors_of_no_length_attend_evenly(bundle: Bundle, vectors: str) -> None:
    asked = {"prompt": Prompt(bundle, TEXT, 12), "layer": 1, "vectors": vectors}
    found = without_projections(**asked, reach=0.0)
    if bundle.config.positions != "alibi":
        np.testing.assert_allclose(found.weights, found.even, atol=1e-6)
    assert found.share == pytest.approx(found.shares[0])
    longer = without_projections(**asked, reach=1.0)
    if vectors in ("rows", "tokens"):
        rows = bundle.model.encoder.embedding.token.weight.detach()[list(bundle.tokenizer.encode(TEXT).ids)]
        scaled = vectors == "tokens" and bundle.config.scale_embeddings
        own = float(rows.norm(dim=-1).mean()) * (math.sqrt(bundle.config.d_model) if scaled else 1.0)
        assert longer.norm == pytest.approx(own, rel=1e-5)
    assert longer.share == pytest.approx(longer.shares[np.abs(longer.reaches - 1.0).argmin()], abs=1e-5)
    np.testing.assert_allclose(longer.weights.sum(-1), 1.0, atol=1e-5)
    assert longer.trained_share == pytest.approx(longer.trained_shares.mean(), abs=1e-6)


def test_asymmetry_runs_from_symmetric_to_opposite() -> None:
    matrix = torch.randn(5, 5)
    assert float(asymmetry(matrix + matrix.T)) == pytest.approx(0.0, abs=1e-6)
    assert float(asymmetry(matrix - matrix.T)) == pytest.approx(1.0)
    assert float(asymmetry(torch.zeros(3, 3))) == 0.0


def test_tied_queries_and_keys_have_symmetric_scores(bundle: Bundle) -> None:
    asked = {"prompt": Prompt(bundle, TEXT, 12), "layer": 1, "head": 0, "seed": 0}
    own, tied = tied_query_key(**asked, share=0.0), tied_query_key(**asked, share=1.0)
    np.testing.assert_allclose(
        own.scores, sentence_attention(Prompt(bundle, TEXT, 12)).layers[1].scores[0].numpy(), atol=1e-5
    )
    assert own.asymmetry == pytest.approx(own.scores_asymmetry[0]) == pytest.approx(own.own[1, 0])
    assert tied.tied.max() < 1e-5
    np.testing.assert_allclose(tied.residue, 0.0, atol=1e-5)
    np.testing.assert_allclose(tied.scores, tied.scores.T, atol=1e-5)
    assert 0.5 < own.chance < 0.9


def test_both_scorings_spread_with_the_root_of_the_width() -> None:
    found = spread_of_scorings(seed=0)
    assert found.dot_product_slope == pytest.approx(0.5, abs=0.05)
    assert found.additive_slope == pytest.approx(0.5, abs=0.08)
    np.testing.assert_allclose(found.divided, 1.0, atol=0.1)
    np.testing.assert_allclose(found.additive_divided, found.additive / found.widths**0.5)


def test_additive_scores_take_more_work(monkeypatch) -> None:
    work_for_time(monkeypatch)
    found = scorings.time_scorings(n_tokens=16, seed=0, measurement=0)
    assert (found.additive > 2 * found.dot_product).all()
    assert found.ratio == pytest.approx(found.additive[-1] / found.dot_product[-1])
    assert found.floats == 16 * 16 * 512


def test_cost_is_held_against_its_counts(monkeypatch) -> None:
    work_for_time(monkeypatch)
    found = cost.time_attention(along="length", other=32, seed=0, measurement=0)
    assert found.attention_count.tolist() == [2 * n * n * 32 for n in found.sizes.tolist()]
    assert found.attention_count_slope == pytest.approx(2.0)
    assert 1 < found.layer_count_slope < 2
    np.testing.assert_allclose(found.softmax, found.sizes**2.0)
    np.testing.assert_allclose(found.mixture, 32 * found.sizes)
    assert (found.scores > found.sizes**2).all()
    assert (found.softmax_slope, found.mixture_slope) == (pytest.approx(2.0), pytest.approx(1.0))
    assert found.attention_slope > 1.5
    linear = 12 * found.even * 32**2
    assert 2 * found.even**2 * 32 == pytest.approx(linear)


def test_bare_stacks_lose_the_gradient_and_normalised_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "DEPTHS", (2, 24))
    found = reach_by_depth(seed=0)
    pre, bare = found.norms.index("pre"), found.norms.index("none")
    assert found.without_residuals[bare, -1] < 1e-6
    assert found.without_residuals[pre, -1] > 0.5
    assert found.with_residuals.shape == (len(found.norms), len(found.depths))


def test_the_mean_of_many_tosses_is_gelu() -> None:
    few, many = gates(draws=4, seed=0), gates(draws=4096, seed=0)
    assert many.error < 0.12 < few.error
    np.testing.assert_allclose(many.relu, many.x * many.relu_gate)
    np.testing.assert_allclose(many.gelu, many.x * many.gelu_gate, atol=1e-12)


def test_relu_is_silent_where_the_pre_activation_is_negative(bundle: Bundle) -> None:
    found = own_gates(prompt=Prompt(bundle, "a glass box", 12))
    assert ((found.silent_relu > 0) & (found.silent_relu < 1)).all()
    assert (found.silent_gelu < found.silent_relu).all()


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make trainings of a few steps."""
    small = replace(
        short.SMALL,
        data=replace(short.SMALL.data, examples=320, held_out=64),
        training=replace(short.SMALL.training, batch_size=32, epochs=2),
    )
    monkeypatch.setattr(short, "SMALL", small)
    monkeypatch.setattr(joined, "STEPS", 32)


def test_variants_start_alike_where_they_have_weights_in_common() -> None:
    models = {"own": made(Classifier), "shared": made(Classifier, seed=1, share_key_value=True)}
    short.start_alike(models, 3)
    own, shared = (model.state_dict() for model in models.values())
    assert len(shared) < len(own)
    for name, weight in shared.items():
        torch.testing.assert_close(weight, own[name])


@pytest.mark.nightly
@pytest.mark.usefixtures("brief")
def test_a_trial_is_the_same_again() -> None:
    first, again = (train_shared_values(language="en", seeds=(0, 1)) for _ in range(2))
    assert first.variants == ("own", "shared") * 2
    assert first.seeds.tolist() == [0, 0, 1, 1]
    np.testing.assert_array_equal(first.losses, again.losses)
    np.testing.assert_array_equal(first.accuracy, again.accuracy)
    assert (first.of("shared", first.parameters) < first.of("own", first.parameters)).all()
    assert first.gap("shared", "own") == pytest.approx(float(np.mean(first.accuracy[1::2] - first.accuracy[::2])))
    assert first.noise("own") == pytest.approx(abs(first.accuracy[2] - first.accuracy[0]))


@pytest.mark.usefixtures("brief")
def test_activations_change_no_parameter() -> None:
    found = train_activations(language="zh", seeds=(0,))
    assert len(set(found.parameters.tolist())) == 1
    assert not np.array_equal(found.losses[0], found.losses[1])


def test_parameters_are_those_of_the_value_projections(bundle: Bundle) -> None:
    found = parameters_saved(bundle=bundle)
    assert found.whole_own == bundle.n_parameters
    assert found.own - found.shared == found.whole_own - found.whole_shared == 2 * (16 * 16 + 16)


def test_concatenating_is_adding_two_maps() -> None:
    embedding = joined.ConcatenatedEmbedding(joined.CONFIG)
    initialize(embedding)
    ids = torch.randint(joined.SYMBOLS, (2, joined.LENGTH))
    words, places = embedding.words(ids), embedding.position(joined.LENGTH, ids.device)
    word_map, place_map = embedding.proj.weight.split(joined.CONFIG.d_model, dim=1)
    torch.testing.assert_close(embedding(ids), words @ word_map.T + places @ place_map.T, atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("brief")
def test_positions_are_trained_three_ways() -> None:
    found, sizes = joined.train_joined_positions(seeds=(0,)), joined.joined_sizes()
    assert found.variants == ("added", "concatenated", "none")
    assert found.parameters.tolist() == [sizes.added, sizes.concatenated, sizes.none]
    assert found.losses.shape == (3, 2)
    assert found.chance == pytest.approx(0.1)


ASKED = {"prompt": Prompt(small_bundle(), TEXT, 12)}
GPT = Bundle("other", Gpt(small_bundle().config), small_bundle().tokenizer)
REFUSED = [
    (lambda: without_projections(**ASKED, layer=0, vectors="words", reach=1.0), "vectors='words' is unknown"),
    (lambda: tied_query_key(**ASKED, layer=0, head=9, share=0.0, seed=0), "head=9 must be from 0 to 1"),
    (lambda: sentence_attention(Prompt(GPT, TEXT, 12)), "must be a classifier"),
    (lambda: sentence_attention(Prompt(small_bundle(), TEXT, 12)).layer(7), "layer=7 must be from 0 to 1"),
    (lambda: cost.time_attention(along="depth", other=32, seed=0, measurement=0), "along='depth' must be 'length' or"),
    (lambda: gates(draws=0, seed=0), "draws=0 must be from 1"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
