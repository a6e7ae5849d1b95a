"""t-SNE and layouts of a run: the paper's affinities and gradient; frames line up and tell how far to trust them."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import close, exactly
from transformer_core.layout.neighbours import displacement, squared_distances, trustworthiness
from transformer_core.layout.pca import normalised, pca, spread, turned_onto
from transformer_core.layout.sequence import LayoutSequence
from transformer_core.layout.tsne import FRESH, Phase, _Slope, affinities, descend, follow, fresh


def clusters(n: int, d: int = 12, k: int = 3, seed: int = 0) -> torch.Tensor:
    """Return k separate Gaussian clouds, point i in cloud i % k."""
    random = torch.Generator().manual_seed(seed)
    centres = 6 * torch.randn(k, d, generator=random)
    return centres[torch.arange(n) % k] + torch.randn(n, d, generator=random)


def divergence(attraction: torch.Tensor, xy: torch.Tensor) -> torch.Tensor:
    """Return KL(P || Q) in nats, as eq. 4 of the paper has it."""
    kernel = 1 / (1 + (xy[:, None] - xy[None]).square().sum(-1))
    kernel = kernel - torch.diag(kernel.diagonal())
    there = attraction > 0
    return (attraction[there] * (attraction[there] / (kernel / kernel.sum())[there]).log()).sum()


def by_bisection(distances: torch.Tensor, perplexity: float) -> torch.Tensor:
    """Return p_ij by section 2 of the paper, in float64, one point after another."""
    n = len(distances)
    conditional = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        others = torch.arange(n) != i
        low, high = 1e-9, 1e9
        for _ in range(200):
            precision = math.sqrt(low * high)
            row = (-precision * (distances[i, others] - distances[i, others].min())).exp()
            row = row / row.sum()
            entropy = -(row * row.clamp(min=1e-300).log()).sum()
            low, high = (precision, high) if entropy > math.log(perplexity) else (low, precision)
        conditional[i, others] = row
    return (conditional + conditional.T) / (2 * n)


@pytest.mark.parametrize("perplexity", [2.0, 10.0])
def test_affinities_are_those_of_the_paper(perplexity):
    distances = squared_distances(clusters(40))
    ours = affinities(distances, perplexity=perplexity)
    close(ours.double() * 1600, by_bisection(distances, perplexity) * 1600, atol=0.02)


@given(
    st.integers(4, 40),
    st.sampled_from(["plain", "constant", "pairs", "half alike", "outlier", "line"]),
    st.sampled_from([1e-15, 1e-3, 1.0, 1e12]),
)
def test_affinities_are_probabilities_of_pairs_whatever_the_data(n, kind, scale):
    x = clusters(n).double()
    if kind == "constant":
        x = x[:1].expand(n, -1)
    elif kind == "pairs":
        x = x[torch.arange(n) // 2]
    elif kind == "half alike":
        x = torch.cat([x[:1].expand(n // 2, -1), x[n // 2 :]])
    elif kind == "outlier":
        x[0] *= 1e6
    elif kind == "line":
        x = x[:, :1]
    p = affinities(squared_distances(x * scale))
    assert p.isfinite().all()
    assert (p >= 0).all()
    assert not p.diagonal().any()
    assert float(p.sum()) == pytest.approx(1.0, abs=1e-4)
    close(p, p.T, atol=0.0)
    assert (p.sum(1) >= 0.49 / n).all()


def test_affinities_know_no_unit():
    x = clusters(50)
    close(affinities(squared_distances(x)) * 2500, affinities(squared_distances(x * 1e4)) * 2500, atol=1e-2)


@given(st.integers(5, 30), st.sampled_from([0.1, 1.0, 30.0]), st.sampled_from([1.0, 4.0]))
def test_the_gradient_is_that_of_the_divergence(n, scale, exaggeration):
    p = affinities(squared_distances(clusters(n)))
    xy = (torch.randn(n, 2, generator=torch.Generator().manual_seed(n), dtype=torch.float64) * scale).requires_grad_()
    apart = 1 + (xy[:, None] - xy[None]).square().sum(-1)
    (exaggeration * (p * apart.log()).sum() + ((1 / apart).sum() - n).log()).backward()
    assert xy.grad is not None
    ours = _Slope(p)(xy.detach().float().T.contiguous(), exaggeration).T
    assert (ours - xy.grad).norm() < 1e-3 * xy.grad.norm()


def test_clusters_come_apart_and_neighbours_stay():
    x = clusters(120)
    xy = fresh(affinities(squared_distances(x)), x)
    assert trustworthiness(x, xy) > 0.93
    assert spread(xy) == pytest.approx(1.0, abs=1e-5)
    labels = torch.arange(120) % 3
    assert (labels[squared_distances(xy).fill_diagonal_(math.inf).argmin(1)] == labels).all()


def test_the_descent_goes_down_and_repeats_itself_to_the_last_digit():
    x = clusters(90, k=5)
    p = affinities(squared_distances(x))
    first, again = fresh(p, x), fresh(p, x)
    assert torch.equal(first, again)
    start = first * 9.0
    longer = descend(p, start, (Phase(200, 1.0, 1 / 6, 0.8),))
    assert divergence(p, longer) < divergence(p, start) + 1e-3
    assert divergence(p, descend(p, torch.randn(90, 2) * 1e-4, FRESH)) < 1.3 * divergence(p, longer)


@given(st.sampled_from([4, 5, 40]), st.sampled_from([0, 1, 2]), st.booleans())
def test_flat_and_poor_data_give_numbers(n, rank, twice):
    x = torch.zeros(n, 6)
    x[:, :rank] = torch.randn(n, rank, generator=torch.Generator().manual_seed(n))
    if twice:
        x = x[torch.arange(n) // 2]
    p = affinities(squared_distances(x))
    xy = fresh(p, x)
    assert xy.isfinite().all()
    assert follow(p, xy).isfinite().all()
    assert xy.any() == bool(rank)


def test_what_has_not_moved_hardly_moves():
    x = clusters(150, k=4)
    p = affinities(squared_distances(x))
    xy = fresh(p, x)
    assert displacement(turned_onto(follow(p, xy), xy), xy) < 0.15


def test_points_whose_neighbours_changed_go_to_the_new_ones_and_the_others_stay():
    x = clusters(150, k=3)
    xy = fresh(affinities(squared_distances(x)), x)
    moved = x.clone()
    moved[:5] = x[1] + 0.3 * torch.randn(5, 12)
    p = affinities(squared_distances(moved))
    after = turned_onto(follow(p, xy), xy)
    assert trustworthiness(moved, after) > trustworthiness(moved, fresh(p, moved)) - 0.02
    assert (after[:5] - after[1::3].mean(0)).norm(dim=1).max() < 1.0
    assert displacement(after[5:], xy[5:]) < 0.3


def test_following_keeps_up_with_a_wholly_new_order_and_holding_slows_it():
    before, x = clusters(150, k=3), clusters(150, k=3)[torch.randperm(150)]
    xy = fresh(affinities(squared_distances(before)), before)
    p = affinities(squared_distances(x))
    free, held, tied = (turned_onto(follow(p, xy, hold=hold), xy) for hold in (0.0, 0.75, 50.0))
    assert trustworthiness(x, held) > trustworthiness(x, fresh(p, x)) - 0.03
    assert displacement(tied, xy) < displacement(held, xy) <= displacement(free, xy) + 0.02


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: affinities(d[:3, :3]), "distances has 3 points; at least 4 are needed"),
        (lambda d: affinities(d, perplexity=0.5), "perplexity=0.5 must be at least 1"),
        (lambda d: affinities(d, perplexity=math.nan), "perplexity=nan must be at least 1"),
    ],
)
def test_errors_say_what_came_and_what_is_needed(call, message):
    with pytest.raises(ValueError, match=exactly(message)):
        call(squared_distances(clusters(9)))


N, D = 90, 24
LABELS = [i % 2 for i in range(N)]
HELD_OUT = [i >= 70 for i in range(N)]


def frames(count: int = 4) -> list[torch.Tensor]:
    """Return two classes that come apart while every point wanders a little."""
    random = torch.Generator().manual_seed(0)
    shape, axis = torch.randn(N, D, generator=random), torch.randn(D, generator=random)
    side = torch.tensor(LABELS)[:, None] * 2.0 - 1.0
    return [
        shape + time * side * axis + 0.1 * torch.randn(N, D, generator=random) for time in torch.linspace(0, 3, count)
    ]


def turn(angle: float) -> torch.Tensor:
    return torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def test_every_frame_has_both_methods_one_scale_and_its_measures():
    sequence = LayoutSequence()
    for number, x in enumerate(frames()):
        drawn = sequence.add(x, LABELS, HELD_OUT)
        assert list(drawn) == ["tsne", "pca"]
        for layout in drawn.values():
            assert (layout.xy.shape, layout.xy.dtype) == ((N, 2), np.float32)
            assert np.abs(layout.xy.mean(0)).max() < 1e-5
            assert spread(torch.tensor(layout.xy)) == pytest.approx(1.0, abs=1e-5)
            assert set(layout.measures) == {
                "trustworthiness",
                "displacement",
                "neighbours_train",
                "neighbours_held_out",
            }
            assert (layout.measures["displacement"] == 0.0) == (number == 0)
            assert all(isinstance(value, float) for value in layout.measures.values())
    assert drawn["tsne"].measures["trustworthiness"] > 0.85
    assert drawn["pca"].measures["neighbours_held_out"] == 1.0


def test_a_sequence_taken_up_again_goes_on_with_the_same_digits():
    whole = LayoutSequence()
    drawn = [whole.add(x, LABELS, HELD_OUT) for x in frames()]
    resumed = LayoutSequence({method: layout.xy for method, layout in drawn[1].items()})
    for x, expected in zip(frames()[2:], drawn[2:], strict=True):
        for method, layout in resumed.add(x.numpy(), np.array(LABELS), np.array(HELD_OUT)).items():
            np.testing.assert_array_equal(layout.xy, expected[method].xy)
            assert layout.measures == expected[method].measures


def test_frames_move_less_than_pictures_drawn_afresh():
    sequence = LayoutSequence()
    lined_up, afresh, before = [], [], None
    for x in frames(7):
        lined_up.append(sequence.add(x, LABELS, HELD_OUT)["tsne"].measures["displacement"])
        xy = torch.tensor(LayoutSequence().add(x, LABELS, HELD_OUT)["tsne"].xy)
        afresh.append(0.0 if before is None else float((turned_onto(xy, before) - before).norm(dim=1).mean()))
        before = xy
    assert sum(lined_up) < 0.8 * sum(afresh)


def test_pca_of_turned_data_stays_where_it_was():
    x = torch.cat([torch.randn(N, 2) * torch.tensor([2.0, 1.0]), torch.zeros(N, 3)], 1)
    sequence = LayoutSequence()
    first = sequence.add(x, LABELS, HELD_OUT)["pca"]
    turned = torch.cat([x[:, :2] @ turn(2.0) * torch.tensor([-5.0, 5.0]), x[:, 2:]], 1)
    second = sequence.add(turned, LABELS, HELD_OUT)["pca"]
    np.testing.assert_allclose(second.xy, first.xy, atol=1e-4)
    assert first.measures["trustworthiness"] == 1.0


def test_pca_finds_the_axes_of_most_variance_in_one_direction_always():
    x = torch.randn(N, 5) * torch.tensor([1.0, 9.0, 2.0, 5.0, 0.5])
    xy = pca(x)
    close(xy.T.cov().diagonal(), torch.linalg.eigvalsh(x.T.cov()).flip(0)[:2], atol=1e-3)
    assert (xy.T.cov().abs() / xy.T.cov().diagonal().max())[0, 1] < 1e-4
    close(pca(x[:, [3, 1, 0, 4, 2]]), xy, atol=1e-4)
    assert pca(x[:, :1]).shape == (N, 2)


def test_turning_finds_the_turn_and_the_mirror():
    xy = normalised(torch.randn(N, 2))
    for other in (xy @ turn(1.0), xy @ turn(4.0) * torch.tensor([1.0, -1.0])):
        close(turned_onto(other, xy), xy)


@pytest.mark.parametrize("kind", ["constant", "nearly constant", "two values"])
def test_a_run_may_begin_with_vectors_that_are_alike(kind):
    x = torch.full((N, D), 0.3)
    if kind == "nearly constant":
        x += 1e-7 * torch.randn(N, D)
    elif kind == "two values":
        x[::2] = -0.1
    sequence = LayoutSequence()
    for frame in (x, x, *frames(2)):
        drawn = sequence.add(frame, LABELS, HELD_OUT)
        for layout in drawn.values():
            assert np.isfinite(layout.xy).all()
            assert all(math.isfinite(value) for value in layout.measures.values())
    assert drawn["tsne"].measures["trustworthiness"] > 0.8


def test_the_fewest_points_and_a_part_without_points():
    drawn = LayoutSequence().add(torch.randn(4, 3), [0, 1, 0, 1], [False] * 4)
    assert "neighbours_train" in drawn["tsne"].measures
    assert "neighbours_held_out" not in drawn["tsne"].measures


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(3, 2), "embeddings has 3 points; at least 4 are needed"),
        (torch.zeros(50, 2), "embeddings has 50 points; the tsne before has (90, 2)"),
        (
            torch.full((N, 2), math.nan),
            "embeddings holds values that are infinite or not numbers; every one must be finite",
        ),
    ],
)
def test_frames_that_cannot_be_laid_out_are_refused(x, message):
    sequence = LayoutSequence({"tsne": np.ones((N, 2))})
    with pytest.raises(ValueError, match=exactly(message)):
        sequence.add(x, LABELS, HELD_OUT)


def test_labels_for_other_points_are_refused():
    with pytest.raises(ValueError, match=exactly("labels=3 and held_out=90 must have as many points as x=90")):
        LayoutSequence().add(torch.randn(N, D), [0, 1, 0], HELD_OUT)
