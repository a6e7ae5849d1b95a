"""Heads over many texts: each measure against a model made by hand whose answer is known, or plain torch."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers import nightly_but
from tests.helpers.lab_models import TRANSFORMERS, bundle_of
from transformer_core.analysis.corpus.copying import copying_score, copying_scores
from transformer_core.analysis.corpus.head_measures import MEASURES, CorpusHeads, heads_over_corpus
from transformer_core.analysis.corpus.induction import INDUCES_FROM, induction_scores, random_sequences
from transformer_core.analysis.corpus.induction_learned import appears_at, induction_learned
from transformer_core.analysis.lab.cases import run
from transformer_core.analysis.lab.text_sets import measured_cases
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.induction import best_induction, induction_measured
from transformer_core.models import Gpt
from transformer_core.probe import capture
from transformer_core.text import Tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
MANY = 1e4  # of a score: its weight is 1 in float32


def by_hand() -> Bundle:
    """Return a GPT of two layers made by hand: head 0.0 looks at the token before, 1.0 at what followed the same token
    the last time, by what 0.0 wrote; 0.1 and 1.1 look at all that they see alike.

    The stream holds the token, one of its own coordinates each; then what 0.0 copies there; then the position.
    """
    tokenizer = Tokenizer.train("character", [LETTERS], vocab_size=99, min_frequency=1, template="none")
    size, places = tokenizer.vocab_size, 52
    width = 2 * size + places
    options: dict[str, Any] = {"positions": "learned", "norm": "rms_norm", "pad_id": None, "bias": False}
    config = ModelConfig(
        vocab_size=size, d_model=width, n_heads=2, d_head=size + places, d_ff=1, n_layers=2, max_len=places, **options
    )
    model = Gpt(config).eval().requires_grad_(False)
    token, written, position = slice(0, size), slice(size, 2 * size), slice(2 * size, width)
    for name, parameter in model.named_parameters():
        parameter.fill_(1.0 if "norm" in name else 0.0)
    embedding = model.decoder.embedding
    embedding.token.weight[:, token] = torch.eye(size)
    assert embedding.position is not None
    next(embedding.position.parameters())[:, position] = torch.eye(places)
    first, second = (layer.self_attention for layer in model.decoder.stack.layers)
    at = slice(0, places)
    first.query_proj.weight[at, position] = MANY * torch.eye(places).roll(1, 1)  # place p asks for place p - 1
    first.key_proj.weight[at, position] = torch.eye(places)
    first.value_proj.weight[:size, token] = torch.eye(size)
    first.output_proj.weight[written, :size] = torch.eye(size)
    second.query_proj.weight[:size, token] = MANY * torch.eye(size)
    second.key_proj.weight[:size, written] = torch.eye(size)
    second.value_proj.weight[:size, token] = torch.eye(size)
    second.output_proj.weight[token, :size] = torch.eye(size)
    return Bundle("by hand", model, tokenizer, reads="en")


@pytest.fixture(scope="module")
def hand() -> Bundle:
    return by_hand()


def test_a_head_made_to_induce_scores_1_and_uniform_ones_score_chance(hand: Bundle) -> None:
    found = induction_scores(bundle=hand, sequences=8)
    lost = 0.5 * found.sequences / found.queries  # the first place has none before it, and 0.0 copies that itself
    np.testing.assert_allclose(found.score[2], 1.0 - lost, atol=1e-4)
    np.testing.assert_allclose(found.score[[1, 3]], found.chance[[1, 3]], atol=1e-6)
    assert found.induces.tolist() == [False, False, True, False]
    drawn = random_sequences(hand, 8, 0)
    places = [1 / (place + 1) for one in drawn for place in one.queries]
    assert found.chance[0] == pytest.approx(np.mean(places))
    assert found.queries == len(places)
    assert all(
        one.ids[query] == one.ids[key - 1] for one in drawn for query, key in zip(one.queries, one.keys, strict=True)
    )
    fresh = random_sequences(hand, 8, 0, repeats=False)
    assert [one.period for one in fresh] == [one.period for one in drawn]
    assert all(len(set(one.ids)) == len(one.ids) for one in fresh)
    assert found.control[2] < INDUCES_FROM


TEXTS = ("abcdefg, hij", "klmnop. qrst", "uvwxyz abcd", "fghijk lmn")


@pytest.fixture(scope="module")
def measured(hand: Bundle) -> CorpusHeads:
    """The hand-made model over four texts, whose letters it knows."""
    return heads_over_corpus(
        bundle=hand,
        among=tuple((text.replace(" ", "").replace(",", "").replace(".", ""), None) for text in TEXTS),
        texts=4,
    )


def of(found: CorpusHeads, name: str) -> np.ndarray:
    """Return a measure of all heads."""
    return found.values[MEASURES.index(name)]


def test_a_head_made_to_look_back_scores_1_and_uniform_ones_chance(measured: CorpusHeads) -> None:
    previous, chance = of(measured, "previous"), measured.chance[MEASURES.index("previous")]
    np.testing.assert_allclose(previous[0], 1.0, atol=1e-4)
    np.testing.assert_allclose(previous[[1, 3]], chance[[1, 3]], atol=1e-6)
    np.testing.assert_allclose(of(measured, "distance")[0], 1.0, atol=1e-3)
    np.testing.assert_allclose(of(measured, "entropy")[[0, 1]], [0.0, 1.0], atol=1e-4)
    np.testing.assert_allclose(measured.bounds[:, MEASURES.index("previous"), 0], 1.0, atol=1e-4)
    assert np.isnan(of(measured, "next")).all()
    np.testing.assert_allclose(measured.row_weight[0], 1.0, atol=1e-4)
    assert (measured.row_key[0] == measured.row_query[0] - 1)[measured.row_text[0] >= 0].all()


def test_weights_on_places_entropy_and_distance_are_those_of_plain_torch() -> None:
    bundle = bundle_of("gpt")
    found = heads_over_corpus(bundle=bundle, texts=4)
    rows: dict[str, list[np.ndarray]] = {"previous": [], "first": [], "distance": []}
    for text in found.texts:
        ids = torch.tensor([bundle.tokenizer.encode(text, max_len=32).ids])
        kept: list[torch.Tensor] = []
        for layer in by_layer(bundle, ids):
            kept.append(layer)
        weights = torch.stack(kept).double().flatten(0, 1)  # (head, query_pos, key_pos)
        n = weights.shape[-1]
        apart = (torch.arange(n)[:, None] - torch.arange(n)).abs()
        rows["previous"].append(weights.diagonal(-1, 1, 2).numpy())
        rows["first"].append(weights[:, 1:, 0].numpy())
        rows["distance"].append((weights * apart).sum(-1)[:, 1:].numpy())
    for name, parts in rows.items():
        np.testing.assert_allclose(of(found, name), np.concatenate(parts, axis=1).mean(1), rtol=1e-5)


def by_layer(bundle: Bundle, ids: torch.Tensor) -> list[torch.Tensor]:
    """Return each layer's weights, from its queries and keys by plain torch. # (head, query_pos, key_pos)"""
    trace: Mapping[str, torch.Tensor] = capture(bundle.model, ids, sites=("*.query", "*.key"))[1]
    layers = []
    for layer in range(bundle.config.n_layers):
        query, key = (trace[f"decoder.layer{layer}.self_attention.{name}"][0] for name in ("query", "key"))
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        hidden = torch.ones(scores.shape[-2:]).triu(1).bool()
        layers.append(scores.masked_fill(hidden, float("-inf")).softmax(-1))
    return layers


def test_the_effect_is_that_of_a_model_whose_output_columns_are_zero() -> None:
    bundle = bundle_of("gpt")
    found = heads_over_corpus(bundle=bundle, texts=4)
    cases = measured_cases(bundle, found.off_texts, 0)
    model: Any = copy.deepcopy(bundle.model)
    width = bundle.config.d_head
    assert width is not None
    model.decoder.stack.layers[1].self_attention.output_proj.weight[:, :width] = 0  # head 0 of layer 1
    before, after = (run(cases, model=one)[0].log_prob.double().sum() for one in (bundle.model, model))
    change = float((after - before) / cases.asked.sum())
    assert of(found, "effect")[bundle.config.n_heads] == pytest.approx(change, abs=1e-5)


def test_copying_is_that_of_the_whole_matrix_of_words() -> None:
    bundle = bundle_of("gpt")
    model: Any = bundle.model
    found = copying_scores(bundle=bundle)
    attention, width = model.decoder.stack.layers[1].self_attention, bundle.config.d_head
    into, out = attention.value_proj.weight[width:], attention.output_proj.weight[:, width:]
    whole = (
        model.output.proj.weight.double()
        @ out.double()
        @ into.double()
        @ model.decoder.embedding.token.weight.T.double()
    )
    eigenvalues = torch.linalg.eigvals(whole)
    assert found.score[3] == pytest.approx(float(eigenvalues.real.sum() / eigenvalues.abs().sum()), abs=1e-6)
    same = torch.eye(4)
    assert copying_score(same, same, same) == pytest.approx(1.0)
    assert copying_score(same, same, -same) == pytest.approx(-1.0)
    assert copying_score(same, same, 0 * same) == 0.0


@pytest.mark.parametrize("name", nightly_but(TRANSFORMERS, {"bert", "translation"}))
def test_every_kind_of_model_is_measured_and_says_what_it_has_not(name: str) -> None:
    bundle = bundle_of(name)
    found = heads_over_corpus(bundle=bundle, texts=4)
    kinds = {kind for kind, _, _ in found.heads}
    assert kinds == ({"encoder", "decoder", "cross"} if name == "translation" else {bundle.reader.stack})
    cross = np.array([kind == "cross" for kind, _, _ in found.heads])
    for measure in ("previous", "distance", "induction"):
        assert np.isnan(of(found, measure)[cross]).all()
    assert np.isfinite(of(found, "first")).all()
    assert np.isfinite(of(found, "effect")).all()
    for place in (0, len(found.heads) - 1):
        queries, keys = found.row_tokens(place, 0)
        assert 0 <= found.row_query[place, 0] < len(queries)
        assert found.row_weights[place, 0][: len(keys)].sum() == pytest.approx(1.0, abs=1e-5)


def test_a_step_counts_from_where_the_score_stays() -> None:
    steps = np.array([0, 50, 100, 150])
    assert appears_at(steps, np.array([0.0, 0.5, 0.3, INDUCES_FROM])) == 150
    assert appears_at(steps, np.array([0.0, 0.5, 0.6, 0.9])) == 50
    assert appears_at(steps, np.array([0.0, 0.5, 0.6, 0.3])) == -1


def test_a_few_steps_of_learning_are_measured_from_chance_on() -> None:
    found = induction_learned(steps=2)
    assert found.steps.tolist() == [0, 2]
    assert found.loss_first[0] == pytest.approx(found.guess, abs=1.2)
    assert found.appears == -1
    np.testing.assert_allclose(found.after.sum(-1), 1.0, atol=1e-5)


@pytest.mark.nightly
def test_a_model_of_two_layers_learns_to_induce() -> None:
    found = induction_learned()
    assert found.appears > 0
    assert found.layer == 1
    assert found.low[-1, found.layer, found.head] >= INDUCES_FROM
    assert found.previous[-1][found.helper] > 0.5
    assert found.loss_again[-1] < 0.5 < found.loss_first[-1]


def test_the_shipped_numbers_are_measured_again() -> None:
    rows = {row.model: row for row in induction_measured().rows}
    again = best_induction(load("gpt-draft"))
    assert again.score == pytest.approx(rows["gpt-draft"].score, abs=1e-3)
    assert again.induces == rows["gpt-draft"].induces == 0
