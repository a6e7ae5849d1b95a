"""Schemes and sums of positions: each scheme, put in the model's own place, is the model; adding is concatenating."""

import math

import numpy as np
import pytest
import torch

from tests.helpers.engine import exactly, made
from transformer_core.analysis.parts import first_attention, input_embedding, position_vectors
from transformer_core.analysis.positions.schemes import SCHEMES, same_distance_spread, score_schemes
from transformer_core.analysis.positions.sums import adding_is_concatenating, token_and_position
from transformer_core.bundle import Bundle
from transformer_core.models import Bert, Classifier, Gpt
from transformer_core.probe import capture
from transformer_core.text import Tokenizer

TEXT = "a glass box"


def bundle_of(kind: type, tokenizer: Tokenizer, **changes) -> Bundle:
    """Return a bundle of a tiny lively model that reads with this tokenizer."""
    return Bundle("tiny", made(kind, **changes), tokenizer, ("a", "b") if kind is Classifier else ())


@pytest.mark.parametrize("kind", [Classifier, Gpt])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_models_own_scheme_put_in_its_place_is_the_model(kind: type, scheme: str, word_tokenizer: Tokenizer) -> None:
    bundle = bundle_of(kind, word_tokenizer, positions=scheme)
    found = score_schemes(bundle=bundle, text=TEXT, n_tokens=12, place=1, head=1, length=6, learned=bundle)
    ids = torch.full((1, 6), word_tokenizer.encode(TEXT).ids[1])
    _, trace = capture(bundle.model, ids, sites=("*layer0.self_attention.*",))
    row = SCHEMES.index(scheme)
    np.testing.assert_allclose(found.scores[row], trace.stack("*.scores")[0, 0, 1], atol=1e-4)
    np.testing.assert_allclose(found.weights[row], trace.stack("*.weights")[0, 0, 1], atol=1e-5)
    assert found.token == word_tokenizer.encode(TEXT).labels[1]


def test_terms_are_the_formulas(word_tokenizer: Tokenizer) -> None:
    bundle = bundle_of(Classifier, word_tokenizer, n_heads=4)
    found = score_schemes(bundle=bundle, text=TEXT, n_tokens=12, place=1, head=2, length=8)
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


def test_one_pair_of_rotary_and_the_others_are_the_whole(word_tokenizer: Tokenizer) -> None:
    bundle = bundle_of(Classifier, word_tokenizer)
    row = SCHEMES.index("rotary")
    parts = [
        score_schemes(bundle=bundle, text=TEXT, n_tokens=12, place=1, head=0, length=5, pair=pair).terms[row]
        for pair in (-1, 0, 1, 2, 3)
    ]
    np.testing.assert_allclose(parts[0], sum(parts[1:]), atol=1e-5)


def test_a_learned_table_ends_and_says_whose_it_is(word_tokenizer: Tokenizer) -> None:
    bundle = bundle_of(Classifier, word_tokenizer)
    short = bundle_of(Bert, word_tokenizer, positions="learned", max_len=4)
    row = SCHEMES.index("learned")
    found = score_schemes(bundle=bundle, text=TEXT, n_tokens=12, place=1, head=0, length=6, learned=short)
    assert found.learned_from == "tiny"
    assert np.isfinite(found.terms[row, :4, :4]).all()
    assert np.isnan(found.scores[row, 4:]).all()
    narrow = bundle_of(Bert, word_tokenizer, positions="learned", d_model=8)
    other = score_schemes(bundle=bundle, text=TEXT, n_tokens=12, place=1, head=0, length=6, learned=narrow)
    assert other.learned_from == ""


def test_places_outside_are_named(word_tokenizer: Tokenizer) -> None:
    bundle = bundle_of(Classifier, word_tokenizer)
    for name, value, low, high in (("head", 2, 0, 1), ("length", 13, 2, 12), ("pair", 4, -1, 3)):
        chosen = {"head": 0, "length": 4, "pair": -1} | {name: value}
        with pytest.raises(ValueError, match=exactly(f"{name}={value} must be from {low} to {high}")):
            score_schemes(
                bundle=bundle,
                text=TEXT,
                n_tokens=12,
                place=0,
                head=chosen["head"],
                length=chosen["length"],
                pair=chosen["pair"],
            )


def test_spread_looks_along_diagonals_only() -> None:
    place = np.arange(5.0)
    values = np.sin(place[None] - place[:, None])
    assert same_distance_spread(values) == 0.0
    values[1, 3] += 0.5
    values[4, 4] = np.nan
    assert same_distance_spread(values) == pytest.approx(0.5)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("scale", [True, False])
def test_norms_and_cosines_are_those_of_the_model(positions: str, scale: bool, word_tokenizer: Tokenizer) -> None:
    bundle = bundle_of(Classifier, word_tokenizer, positions=positions, scale_embeddings=scale)
    found = token_and_position(bundle=bundle, text=TEXT, n_tokens=12)
    ids = torch.tensor([word_tokenizer.encode(TEXT).ids])
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
def test_adding_is_concatenating_with_tied_weights(kind: type, word_tokenizer: Tokenizer) -> None:
    bundle = bundle_of(kind, word_tokenizer)
    found = adding_is_concatenating(bundle=bundle, text=TEXT, n_tokens=12, place=1)
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


def test_a_model_without_projections_is_named(word_tokenizer: Tokenizer) -> None:
    bundle = bundle_of(Classifier, word_tokenizer, projections=False)
    with pytest.raises(ValueError, match="tiny has no query and key projections of its own"):
        adding_is_concatenating(bundle=bundle, text=TEXT, n_tokens=12, place=0)
    assert position_vectors(bundle) is None
