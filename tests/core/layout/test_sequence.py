"""Layouts of a run: frames line up, can be taken up again, and tell how far to trust them."""

import math

import numpy as np
import pytest
import torch

from tests.helpers.engine import close, exactly
from transformer_core.layout.pca import normalised, pca, spread, turned_onto
from transformer_core.layout.sequence import LayoutSequence

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
def test_errors_say_what_came_and_what_is_needed(x, message):
    sequence = LayoutSequence({"tsne": np.ones((N, 2))})
    with pytest.raises(ValueError, match=exactly(message)):
        sequence.add(x, LABELS, HELD_OUT)


def test_labels_for_other_points_are_refused():
    with pytest.raises(ValueError, match=exactly("labels=3 and held_out=90 must have as many points as x=90")):
        LayoutSequence().add(torch.randn(N, D), [0, 1, 0], HELD_OUT)
