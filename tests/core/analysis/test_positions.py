"""Positions: the identities of sinusoids, each scheme as the model's own, and counting as what goes wrong."""

import math

import numpy as np
import pytest
import torch

from tests.helpers import refusals
from tests.helpers.engine import TODAY, made, shipped, small_bundle, small_tokenizer
from transformer_core.analysis.parts import first_attention, input_embedding, position_vectors
from transformer_core.analysis.positions.counted import LENGTHS, counted_positions, positions_by
from transformer_core.analysis.positions.counted import SCHEMES as COUNTED
from transformer_core.analysis.positions.schemes import SCHEMES, same_distance_spread, score_schemes
from transformer_core.analysis.positions.sinusoids import (
    STILL,
    compare_exponents,
    position_matrix,
    similarities,
    step_as_rotation,
    wavelengths,
    worst_fit,
)
from transformer_core.analysis.positions.sums import adding_is_concatenating, token_and_position
from transformer_core.bundle import Bundle
from transformer_core.layers.positions import sinusoidal_table
from transformer_core.models import Bert, Classifier, Gpt
from transformer_core.probe import capture
from transformer_core.prompt import Prompt

BUNDLE = shipped("sentiment")
SIZES = [(1, 2), (2, 6), (64, 128), (100, 30)]


@pytest.mark.parametrize(("length", "d_model"), SIZES)
def test_similarity_depends_on_the_distance_alone(length: int, d_model: int) -> None:
    found = position_matrix(length=length, d_model=d_model)
    assert found.deviation < 1e-5
    frequencies = 10_000.0 ** (-2 * np.arange(d_model // 2) / d_model)
    expected = np.cos(np.arange(length)[:, None] * frequencies).sum(1)  # sum over pairs of cos(k omega)
    np.testing.assert_allclose(found.dots, expected, atol=1e-5)
    np.testing.assert_allclose(found.cosines, expected / (d_model / 2), atol=1e-6)
    assert found.pairs == length * (length + 1) // 2


def test_deviation_is_the_greatest_over_all_pairs() -> None:
    table = np.random.default_rng(0).normal(size=(9, 4))
    _, _, deviation = similarities(table)
    brute = max(abs(table[i] @ table[j] - table[0] @ table[abs(i - j)]) for i in range(9) for j in range(9))
    assert deviation == pytest.approx(brute)


@pytest.mark.parametrize("doubled", [False, True])
def test_each_dimension_repeats_after_its_wavelength(doubled: bool) -> None:
    waves = wavelengths(4, doubled=doubled)
    table = sinusoidal_table(3, 4, doubled=doubled).double().numpy()
    angles = np.arange(3)[:, None] * 2 * math.pi / waves
    np.testing.assert_allclose(table[:, 0::2], np.sin(angles[:, 0::2]), atol=1e-6)
    np.testing.assert_allclose(table[:, 1::2], np.cos(angles[:, 1::2]), atol=1e-6)


@pytest.mark.parametrize(("pos", "shift", "pair"), [(0, 1, 0), (12, 5, 4), (63, 64, 63), (9, -4, 2)])
def test_a_step_is_a_fixed_rotation(pos: int, shift: int, pair: int) -> None:
    step = step_as_rotation(length=64, d_model=128, pos=pos, shift=shift, pair=pair)
    np.testing.assert_allclose(step.turned, step.after, atol=1e-6)
    np.testing.assert_allclose(step.rotation @ step.rotation.T, np.eye(2), atol=1e-12)
    assert step.angle == pytest.approx(shift * step.frequency)
    assert step.difference < 1e-6


def test_only_the_papers_exponent_is_a_rotation() -> None:
    found = compare_exponents(length=64, d_model=128)
    paper, doubled = found.rotation_error
    assert paper < 1e-6 < 0.1 < doubled
    assert found.deviation[0] < 1e-5 < 1 < found.deviation[1]
    assert found.ratio[0] == pytest.approx(1.0)
    assert found.ratio[1] == pytest.approx(10_000 ** (2 / 128))


def test_the_measures_of_the_slip_are_counted_from_the_tables() -> None:
    found = compare_exponents(length=20, d_model=32)
    for variant, table in enumerate(found.tables):
        spread = table.max(0) - table.min(0)
        assert found.still[variant] == (spread < STILL).sum()
        assert found.fast[variant] == (found.wavelengths[variant] <= 20).sum()
        rows = table.astype(float)
        farthest = rows[0] @ rows[-1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[-1])
        assert found.farthest[variant] == pytest.approx(farthest)
    assert found.longest[1] > found.longest[0]
    assert found.still[1] > found.still[0]


def test_the_best_fixed_matrix_is_found_by_least_squares() -> None:
    table = np.random.default_rng(1).normal(size=(12, 2))
    fitted, *_ = np.linalg.lstsq(table[:-3], table[3:], rcond=None)
    expected = np.sqrt(((table[:-3] @ fitted - table[3:]) ** 2).mean())
    assert worst_fit(table, 3) == pytest.approx(expected)


TEXT = "a glass box"


def bundle_of(kind: type, **changes) -> Bundle:
    """Return a bundle of a tiny lively model."""
    return Bundle("tiny", made(kind, **changes), small_tokenizer(), ("a", "b") if kind is Classifier else ())


@pytest.mark.parametrize("kind", [Classifier, Gpt])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_models_own_scheme_put_in_its_place_is_the_model(kind: type, scheme: str) -> None:
    bundle = bundle_of(kind, positions=scheme)
    found = score_schemes(prompt=Prompt(bundle, TEXT, 12), place=1, head=1, length=6, learned=bundle)
    ids = torch.full((1, 6), small_tokenizer().encode(TEXT).ids[1])
    _, trace = capture(bundle.model, ids, sites=("*layer0.self_attention.*",))
    row = SCHEMES.index(scheme)
    np.testing.assert_allclose(found.scores[row], trace.stack("*.scores")[0, 0, 1], atol=1e-4)
    np.testing.assert_allclose(found.weights[row], trace.stack("*.weights")[0, 0, 1], atol=1e-5)
    assert found.token == small_tokenizer().encode(TEXT).labels[1]


@pytest.mark.parametrize("options", [name for name, changes in TODAY.items() if changes.get("positions") == "rotary"])
def test_rotary_scores_are_those_of_todays_models_and_their_term_before_the_cap(options: str) -> None:
    bundle = bundle_of(Gpt, **TODAY[options])
    config, row = bundle.config, SCHEMES.index("rotary")
    ids = torch.full((1, 6), small_tokenizer().encode(TEXT).ids[1])
    _, trace = capture(bundle.model, ids, sites=("*layer0.self_attention.*",))
    for head in range(config.n_heads):
        found = score_schemes(prompt=Prompt(bundle, TEXT, 12), place=1, head=head, length=6)
        np.testing.assert_allclose(found.scores[row], trace.stack("*.scores")[0, 0, head], atol=1e-4)
        np.testing.assert_allclose(found.weights[row], trace.stack("*.weights")[0, 0, head], atol=1e-5)
        cap = config.score_cap
        term = found.terms[row] if cap is None else cap * np.tanh(found.terms[row] / cap)
        np.testing.assert_allclose(term, found.scores[row], atol=1e-4)


def test_wavelengths_are_of_each_kind_of_layer_and_of_the_paper_where_positions_are_not_rotary() -> None:
    asked = {"place": 1, "head": 0, "length": 4}
    own = score_schemes(prompt=Prompt(bundle_of(Gpt, **TODAY["gemma3"]), TEXT, 12), **asked)
    assert own.layers == ((0,), (1,))  # the first has a window, another base and no scaling
    powers = np.arange(0, 8, 2) / 8
    base, factor = 10_000.0, 8.0
    np.testing.assert_allclose(own.wavelengths[0], 2 * np.pi * 10.0**powers)
    np.testing.assert_allclose(own.wavelengths[1], 2 * np.pi * base**powers * factor)
    paper = score_schemes(prompt=Prompt(bundle_of(Classifier), TEXT, 12), **asked)
    assert paper.layers == ((0, 1),)
    np.testing.assert_allclose(paper.wavelengths, 2 * np.pi * base ** powers[None])


def test_terms_are_the_formulas() -> None:
    bundle = bundle_of(Classifier, n_heads=4)
    found = score_schemes(prompt=Prompt(bundle, TEXT, 12), place=1, head=2, length=8)
    terms = dict(zip(SCHEMES, found.terms, strict=True))
    place = np.arange(8)
    assert not terms["none"].any()
    np.testing.assert_allclose(terms["alibi"], -found.slope * np.abs(place[:, None] - place))
    assert found.slope == 2.0 ** (-8 * 3 / 4)
    angles = (place[None] - place[:, None])[..., None] * 10_000.0 ** (-np.arange(0, 4, 2) / 4)  # j - i
    q, k = found.query, found.key
    direct = (q[0::2] * k[0::2] + q[1::2] * k[1::2]) * np.cos(angles)
    crossed = (q[1::2] * k[0::2] - q[0::2] * k[1::2]) * np.sin(angles)
    np.testing.assert_allclose(terms["rotary"], (direct + crossed).sum(-1) / math.sqrt(4), atol=1e-5)
    assert dict(zip(SCHEMES, found.deviation, strict=True))["sinusoidal"] < 1e-4
    assert found.parameters.tolist() == [0, 0, 12 * 16, 0, 0]


def test_one_pair_of_rotary_and_the_others_are_the_whole() -> None:
    bundle = bundle_of(Classifier)
    row = SCHEMES.index("rotary")
    parts = [
        score_schemes(prompt=Prompt(bundle, TEXT, 12), place=1, head=0, length=5, pair=pair).terms[row]
        for pair in (-1, 0, 1, 2, 3)
    ]
    np.testing.assert_allclose(parts[0], sum(parts[1:]), atol=1e-5)


def test_a_learned_table_ends_and_says_whose_it_is() -> None:
    bundle = bundle_of(Classifier)
    short = bundle_of(Bert, positions="learned", max_len=4)
    row = SCHEMES.index("learned")
    found = score_schemes(prompt=Prompt(bundle, TEXT, 12), place=1, head=0, length=6, learned=short)
    assert found.learned_from == "tiny"
    assert np.isfinite(found.terms[row, :4, :4]).all()
    assert np.isnan(found.scores[row, 4:]).all()
    narrow = bundle_of(Bert, positions="learned", d_model=8)
    other = score_schemes(prompt=Prompt(bundle, TEXT, 12), place=1, head=0, length=6, learned=narrow)
    assert other.learned_from == ""


def test_spread_looks_along_diagonals_only() -> None:
    place = np.arange(5.0)
    values = np.sin(place[None] - place[:, None])
    assert same_distance_spread(values) == 0.0
    values[1, 3] += 0.5
    values[4, 4] = np.nan
    assert same_distance_spread(values) == pytest.approx(0.5)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("scale", [True, False])
def test_norms_and_cosines_are_those_of_the_model(positions: str, scale: bool) -> None:
    bundle = bundle_of(Classifier, positions=positions, scale_embeddings=scale)
    found = token_and_position(prompt=Prompt(bundle, TEXT, 12))
    ids = torch.tensor([small_tokenizer().encode(TEXT).ids])
    logits, trace = capture(bundle.model, ids, sites=("*embedding.*",))
    token = trace["encoder.embedding.token_embedding"][0]
    np.testing.assert_allclose(found.token_norms, token.norm(dim=-1), rtol=1e-6)
    assert found.factor == 4.0
    assert found.added_in_model is (positions != "rotary")
    if found.added_in_model:
        total = trace["encoder.embedding.residual"][0]
        cosine = torch.cosine_similarity(total, token, dim=-1)
        np.testing.assert_allclose(found.cosine_token[int(scale)], cosine, atol=1e-5)
    assert found.probabilities is not None
    np.testing.assert_allclose(found.probabilities[int(scale)], logits[0].softmax(-1), atol=1e-6)
    assert np.abs(found.probabilities[0] - found.probabilities[1]).max() > 1e-4


@pytest.mark.parametrize("kind", [Classifier, Gpt])
def test_adding_is_concatenating_with_tied_weights(kind: type) -> None:
    bundle = bundle_of(kind)
    found = adding_is_concatenating(prompt=Prompt(bundle, TEXT, 12), place=1)
    np.testing.assert_allclose(found.added, found.of_token + found.of_position, atol=1e-5)
    np.testing.assert_allclose(found.tied, found.added, atol=1e-5)
    assert found.difference < 1e-5 < found.free_share
    assert found.confused[0] < 1e-5 < found.confused[1]
    query_proj, positions = first_attention(bundle).query_proj, input_embedding(bundle.model).position
    assert query_proj is not None
    assert positions is not None
    weight = query_proj.weight
    assert found.parameters == (weight.numel(), 2 * weight.numel())
    position = positions(3, torch.device("cpu"))[1]
    np.testing.assert_allclose(found.of_position, (weight @ position).detach(), atol=1e-5)


def test_a_model_without_projections_is_named() -> None:
    bundle = bundle_of(Classifier, projections=False)
    with pytest.raises(ValueError, match="tiny has no query and key projections of its own"):
        adding_is_concatenating(prompt=Prompt(bundle, TEXT, 12), place=0)
    assert position_vectors(bundle) is None


REVIEW = "The film was not good at all."


def test_schemes_are_what_they_are_called() -> None:
    assert positions_by("counted", 4, 2).tolist() == [[1, 1], [2, 2], [3, 3], [4, 4]]
    assert positions_by("share", 4, 2)[:, 0].tolist() == [0, 0.25, 0.5, 0.75]


def test_what_goes_wrong_is_measured_on_the_models_own_tokens() -> None:
    found = counted_positions(prompt=Prompt(BUNDLE, REVIEW, 64), length=64)
    counted, share, sines = (COUNTED.index(name) for name in ("counted", "share", "sinusoidal"))
    np.testing.assert_allclose(found.lengths[counted], found.lengths[counted, 0] * np.arange(1, 65))
    assert np.ptp(found.lengths[sines]) < 1e-6
    assert found.cosines[counted, -1] < found.cosines[share, -1] < 1
    assert found.cosines[counted, -1] < found.cosines[sines, -1]
    np.testing.assert_allclose(found.steps[share] * np.array(LENGTHS), found.steps[share, 0] * LENGTHS[0])
    for scheme in (counted, sines):
        assert np.ptp(found.steps[scheme]) < 1e-6


STEP = {"length": 64, "d_model": 128, "pos": 12, "shift": 5, "pair": 4}
SCORES = {"prompt": Prompt(small_bundle(), TEXT, 12), "place": 0, "head": 0, "length": 4}
REFUSED = [
    (lambda: step_as_rotation(**STEP | {"pos": 64}), "pos=64 must be from 0 to 63"),
    (lambda: step_as_rotation(**STEP | {"pair": 64}), "pair=64 must be from 0 to 63"),
    (lambda: step_as_rotation(**STEP | {"shift": -13}), "pos=12 and shift=-13 end before position 0"),
    (lambda: position_matrix(length=4, d_model=5), "d_model=5 must be even"),
    (lambda: position_matrix(length=0, d_model=4), "length=0 must be at least 1"),
    (lambda: compare_exponents(length=2, d_model=4), "length=2 must be at least shift"),
    (lambda: score_schemes(**SCORES | {"head": 2}), "head=2 must be from 0 to 1"),
    (lambda: score_schemes(**SCORES | {"length": 13}), "length=13 must be from 2 to 12"),
    (lambda: score_schemes(**SCORES, pair=4), "pair=4 must be from -1 to 3"),
    (lambda: positions_by("random", 4, 2), "scheme='random' must be one of counted, share, sinusoidal"),
    (lambda: counted_positions(prompt=Prompt(BUNDLE, "a", 8), length=1), "length=1 must be from 2 to 512"),
    (lambda: counted_positions(prompt=Prompt(BUNDLE, "a", 8), length=513), "length=513 must be from 2 to 512"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
