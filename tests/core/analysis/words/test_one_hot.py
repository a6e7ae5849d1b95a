"""One-hot vectors keep every two words equally far apart; learned ones do not."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.helpers.browser import BUNDLE
from transformer_core.analysis.words.one_hot import likeness, word_relations

TEXT = "The film was good, but the ending of the film was bad."


def test_one_hot_vectors_are_at_right_angles_and_root_two_apart() -> None:
    found = word_relations(bundle=BUNDLE, text=TEXT, n_tokens=20)
    count = len(found.ids)
    assert len(set(found.ids)) == count == len(found.labels)
    np.testing.assert_array_equal(found.one_hot, np.eye(count))
    np.testing.assert_allclose(found.one_hot_cosine, np.eye(count), atol=0)
    np.testing.assert_allclose(found.one_hot_distance, math.sqrt(2) * (1 - np.eye(count)), rtol=1e-7)
    np.testing.assert_allclose(found.bounds[:, :2], [[0, 0], [math.sqrt(2)] * 2], rtol=1e-12)


def test_learned_rows_are_the_models_and_their_cosines_torchs() -> None:
    found = word_relations(bundle=BUNDLE, text=TEXT, n_tokens=20)
    rows = torch.from_numpy(found.learned)
    weight = dict(BUNDLE.model.named_parameters())["encoder.embedding.token.weight"].float()
    assert torch.equal(rows, weight[list(found.ids)])
    cosine = F.cosine_similarity(rows[:, None].double(), rows[None].double(), dim=-1)
    np.testing.assert_allclose(found.learned_cosine, cosine, atol=1e-6)
    np.testing.assert_allclose(found.learned_distance, torch.cdist(rows.double(), rows.double()), atol=1e-5)
    apart = cosine[~torch.eye(len(rows), dtype=torch.bool)]
    np.testing.assert_allclose(found.bounds[0, 2:], [apart.min(), apart.max()])


def test_memory_is_that_of_the_matrices() -> None:
    found = word_relations(bundle=BUNDLE, text=TEXT, n_tokens=20)
    assert found.one_hot_bytes == torch.eye(found.vocab_size, dtype=torch.float32).nbytes
    assert found.learned_bytes == 4 * found.vocab_size * BUNDLE.config.d_model


def test_one_token_has_nothing_to_compare() -> None:
    found = word_relations(bundle=BUNDLE, text="[CLS] [CLS]", n_tokens=1_000)
    assert found.labels == ("[CLS]", "[SEP]")


def test_likeness_is_the_cosine_of_rows_or_none() -> None:
    found = likeness(bundle=BUNDLE, word="good", near="great", far="bad")
    both = word_relations(bundle=BUNDLE, text="good great", n_tokens=10)
    place = both.labels.index("good"), both.labels.index("great")
    assert found.near is not None
    assert math.isclose(found.near, both.learned_cosine[place], abs_tol=1e-6)
    assert (found.one_hot_near, found.one_hot_far) == (0.0, 0.0)
    assert likeness(bundle=BUNDLE, word="good", near="unwatchabilityish", far="bad").near is None
