"""Short trainings: one thing differs, everything else is the same."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer_core.analysis.why.joined_positions as joined
import transformer_core.analysis.why.short_training as short
from tests.helpers.engine import made
from transformer_core.analysis.why.gates import train_activations
from transformer_core.analysis.why.projections import parameters_saved, train_shared_values
from transformer_core.bundle import Bundle
from transformer_core.layers.initialization import initialize
from transformer_core.models import Classifier


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make trainings of a few steps."""
    small = replace(
        short.SMALL,
        data=replace(short.SMALL.data, examples=640, held_out=64),
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
