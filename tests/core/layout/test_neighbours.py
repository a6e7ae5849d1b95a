"""Neighbours: distances, trustworthiness and votes do what their definitions say."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import close, exactly
from transformer_core.layout.neighbours import (
    displacement,
    nearest,
    neighbour_accuracy,
    place_by_neighbours,
    squared_distances,
    trustworthiness,
)
from transformer_core.layout.sequence import LayoutSequence


def cloud(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_definition(x: torch.Tensor, xy: torch.Tensor, k: int) -> float:
    """Venna and Kaski 2001, word by word."""
    n, penalty = len(x), 0
    for i in range(n):
        others = [j for j in range(n) if j != i]
        in_full = sorted(others, key=lambda j: float((x[i] - x[j]).norm()))
        shown = sorted(others, key=lambda j: float((xy[i] - xy[j]).norm()))
        penalty += sum(in_full.index(j) + 1 - k for j in set(shown[:k]) - set(in_full[:k]))
    return 1 - 2 / (n * k * (2 * n - 3 * k - 1)) * penalty


@given(st.integers(2, 30), st.integers(1, 20), st.sampled_from([1e-12, 1.0, 1e12]))
def test_distances_are_those_of_the_definition(n, d, scale):
    x = cloud(n, d) * scale + 3 * scale
    close(squared_distances(x) / scale**2, torch.cdist(x, x).square() / scale**2, atol=1e-9)
    close(squared_distances(x, x[:2]) / scale**2, torch.cdist(x, x[:2]).square() / scale**2, atol=1e-9)


def test_equal_vectors_have_no_distance_though_others_are_far():
    x = cloud(1, 7).float().expand(5, 7).clone()
    assert not squared_distances(x).any()
    x[4] += 1e3
    assert not squared_distances(x)[:4, :4].any()


@given(st.integers(0, 99), st.integers(1, 9))
def test_trustworthiness_is_that_of_the_definition(seed, k):
    x, xy = cloud(20, 5, seed), cloud(20, 2, seed + 1)
    assert trustworthiness(x, xy, k=k) == pytest.approx(by_definition(x, xy, k), abs=1e-12)


@pytest.mark.parametrize("k", [5, 10])
def test_trustworthiness_is_that_of_scikit_learn(k):
    manifold = pytest.importorskip("sklearn.manifold", reason="scikit-learn is not installed")
    for n, noise in ((60, 0.1), (300, 1.0)):
        x = cloud(n, 12)
        xy = x[:, :2] + noise * cloud(n, 2, 1)
        theirs = manifold.trustworthiness(x.numpy(), xy.numpy(), n_neighbors=k)
        assert trustworthiness(x, xy, k=k) == pytest.approx(theirs, abs=1e-6)


def test_what_is_flat_can_be_trusted_and_chance_cannot():
    xy = cloud(200, 2)
    assert trustworthiness(torch.cat([xy, xy.new_zeros(200, 5)], 1), xy.flip(1) * 3 + 1) == 1.0
    assert trustworthiness(xy, cloud(200, 2, 1)) == pytest.approx(0.5, abs=0.05)


def test_separate_classes_are_guessed_and_random_ones_are_not():
    labels = torch.arange(300) % 3
    held_out = torch.arange(300) >= 240
    x = cloud(300, 8) + 20 * torch.nn.functional.one_hot(labels, 8)
    assert neighbour_accuracy(x, labels, held_out) == (1.0, 1.0)
    train, rest = neighbour_accuracy(cloud(300, 8), labels, held_out)
    assert train == pytest.approx(1 / 3, abs=0.1)
    assert rest == pytest.approx(1 / 3, abs=0.15)


def test_a_point_does_not_vote_for_itself_and_held_out_points_do_not_vote():
    x = torch.tensor([[0.0], [1.0], [10.0], [11.0]])
    labels = torch.tensor([0, 1, 0, 1])
    assert neighbour_accuracy(x, labels, torch.zeros(4, dtype=torch.bool), k=1) == (
        0.0,
        pytest.approx(math.nan, nan_ok=True),
    )
    held_out = torch.tensor([False, True, False, True])
    assert neighbour_accuracy(x, labels, held_out, k=1) == (1.0, 0.0)


def test_a_tied_vote_goes_to_the_nearer_voters():
    x = torch.tensor([[0.0], [1.0], [1.1], [-2.0], [-2.1]])
    labels = torch.tensor([1, 1, 1, 0, 0])
    held_out = torch.tensor([True, False, False, False, False])
    assert neighbour_accuracy(x, labels, held_out, k=4)[1] == 1.0
    assert neighbour_accuracy(x, labels, held_out, k=99)[1] == 1.0


@given(st.floats(0.01, 100.0), st.floats(0.0, 2.0))
def test_displacement_is_in_units_of_the_spread(scale, move):
    xy = cloud(50, 2)
    xy = (xy - xy.mean(0)) / (xy - xy.mean(0)).square().sum(1).mean().sqrt() * scale
    step = torch.tensor([move * scale, 0.0])
    assert displacement(xy, xy - step) == pytest.approx(move, abs=1e-5)
    assert displacement(xy + 7, xy + 7) == 0.0


def test_a_picture_of_one_place_has_no_displacement():
    assert displacement(torch.ones(3, 2), torch.zeros(3, 2)) == 0.0


def test_a_known_vector_is_placed_where_it_is_and_a_new_one_among_its_neighbours():
    points, xy = cloud(60, 16).float(), cloud(60, 2, 1).float()
    close(place_by_neighbours(points[:9], points, xy), xy[:9], atol=1e-6)
    new = (points[3] + points[4] * 0.01)[None]
    around = xy[nearest(squared_distances(new, points), 5, without_self=False)[0]]
    place = place_by_neighbours(new, points, xy)[0]
    assert ((place >= around.amin(0)) & (place <= around.amax(0))).all()
    assert (place - xy[3]).norm() < 0.1
    assert place.dtype == torch.float32


def test_equal_neighbours_share_a_new_vector():
    points, xy = torch.ones(5, 3), torch.arange(10.0).view(5, 2)
    close(place_by_neighbours(torch.ones(1, 3), points, xy), xy.mean(0)[None])
    close(place_by_neighbours(torch.full((1, 3), 2.0), points, xy), xy.mean(0)[None])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: trustworthiness(x, x[:5], k=2), "xy has 5 points; x has 8, and both need as many"),
        (lambda x: trustworthiness(x, x, k=4), "k=4 must be from 1 to less than half of the 8 points"),
        (lambda x: nearest(squared_distances(x), 8), "k=8 must be from 1 to 7, the number of other points"),
        (lambda x: squared_distances(x, x[:, :1]), "others has 1 columns; x has 2, and both need as many"),
        (lambda x: squared_distances(x[0]), "x of shape (2,) must be (point, column) with at least one point"),
        (
            lambda x: squared_distances(x / 0),
            "x holds values that are infinite or not numbers; every one must be finite",
        ),
        (lambda x: displacement(x, x[:3]), "previous of shape (3, 2) must have xy's shape, (8, 2)"),
        (lambda x: place_by_neighbours(x, x, x[:3]), "xy has 3 points; points has 8, and both need as many"),
        (
            lambda x: neighbour_accuracy(x, torch.zeros(8), torch.zeros(7, dtype=torch.bool)),
            "labels=8 and held_out=7 must have as many points as x=8",
        ),
    ],
)
def test_errors_say_what_came_and_what_is_needed(call, message):
    with pytest.raises(ValueError, match=exactly(message)):
        call(cloud(8, 2))


@pytest.mark.parametrize(("apart", "known"), [(0.0, False), (1e-9, False), (1e-3, True)])
def test_a_picture_of_points_that_are_all_one_has_no_trust_to_tell(apart: float, known: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.ones(40, 8) + apart * torch.randn(40, 8, generator=generator)
    assert math.isfinite(trustworthiness(x, x[:, :2])) == known
    labels, held_out = torch.arange(40) % 2, torch.arange(40) % 4 == 0
    for layout in LayoutSequence().add(x, labels, held_out).values():
        assert ("trustworthiness" in layout.measures) == known
        assert all(map(math.isfinite, layout.measures.values()))
