"""t-SNE fitted afresh beside a run's own maps: the same vectors, maps as good, and more movement."""

import numpy as np
import pytest
import torch

from tests.helpers.made_runs import FRAMES, POINTS, SPECS, made_run
from transformer_core.analysis.refitted_maps import refitted_maps
from transformer_core.layout.neighbours import squared_distances
from transformer_core.layout.sequence import LayoutSequence
from transformer_core.layout.tsne import affinities, fresh
from transformer_core.training.runs.store.records import Layout
from transformer_core.training.runs.store.run_store import RunStore

N, WIDTH = 60, 8


@pytest.fixture
def drifting(tmp_path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """A run whose vectors are two clouds that drift slowly, laid out as the film does."""
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    store = made_run(tmp_path)
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(N) % 2
    base, drift = torch.randn(N, WIDTH, generator=random), torch.randn(N, WIDTH, generator=random)
    vectors = [base + 6 * labels[:, None] + 0.05 * frame * drift for frame in range(FRAMES)]
    sequence, layouts = LayoutSequence(), []
    for frame, x in enumerate(vectors):
        made = sequence.add(x, labels.tolist(), [False] * N)
        layouts += [Layout(frame, method, layout.xy, layout.measures) for method, layout in made.items()]
    points = type(store.points())([""] * N, labels.numpy(), np.arange(N) > N // 2)
    monkeypatch.setattr(RunStore, "points", lambda _: points)
    monkeypatch.setattr(RunStore, "layouts", lambda _, after=-1: layouts)
    monkeypatch.setattr(RunStore, "embeddings", lambda _, frame: vectors[frame].numpy())
    return store


def test_points_move_further_where_each_map_is_fitted_afresh_and_no_map_is_worse(drifting: RunStore) -> None:
    found = refitted_maps(run=drifting.id, frames=FRAMES, start="random")
    aligned, refitted, turned = found.mean_moved
    assert 2 * aligned < refitted
    assert turned <= refitted + 1e-6
    assert aligned < turned
    assert abs(found.aligned_trust.mean() - found.refitted_trust.mean()) < 0.05
    assert found.classes == ("negative", "positive")


def test_the_aligned_maps_are_the_films_and_their_movement_is_what_it_recorded(drifting: RunStore) -> None:
    found = refitted_maps(run=drifting.id, frames=FRAMES, start="pca")
    stored = [layout for layout in drifting.layouts() if layout.method == "tsne"]
    np.testing.assert_array_equal(found.aligned, [layout.xy for layout in stored])
    recorded = [layout.measures["displacement"] for layout in stored[1:]]
    np.testing.assert_allclose(found.aligned_moved[1:], recorded, rtol=1e-5)
    assert np.isnan(found.aligned_moved[0])
    assert np.isnan(found.refitted_moved[0])


def test_displacement_is_the_mean_distance_in_units_of_the_spread(drifting: RunStore) -> None:
    found = refitted_maps(run=drifting.id, frames=FRAMES, start="random")
    for frame in range(1, FRAMES):
        here, before = found.refitted[frame].astype(float), found.refitted[frame - 1]
        spread = np.sqrt(((here - here.mean(0)) ** 2).sum(1).mean())
        wanted = np.sqrt(((here - before) ** 2).sum(1)).mean() / spread
        assert found.refitted_moved[frame] == pytest.approx(wanted, rel=1e-4)


def test_a_fresh_fit_is_repeated_by_its_frame_alone(drifting: RunStore) -> None:
    found = refitted_maps(run=drifting.id, frames=2, start="random")
    x = torch.tensor(drifting.embeddings(1))
    again = fresh(affinities(squared_distances(x)), x, seed=1)
    np.testing.assert_array_equal(found.refitted[1], again.numpy())
    other = refitted_maps(run=drifting.id, frames=2, start="pca")
    assert not np.allclose(found.refitted[1], other.refitted[1])
    assert len(other.numbers) == 2


def test_what_has_no_maps_is_refused(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    classifier, letters = made_run(tmp_path), made_run(tmp_path, SPECS["translation"])
    with pytest.raises(ValueError, match="must have at least 2 with a map"):
        refitted_maps(run=classifier.id, frames=1, start="random")
    with pytest.raises(ValueError, match="must have at least 2 with a map"):
        refitted_maps(run=letters.id, frames=4, start="random")
    with pytest.raises(ValueError, match="start='x' is unknown"):
        refitted_maps(run=classifier.id, frames=4, start="x")  # type: ignore[arg-type]
    assert refitted_maps(run=classifier.id, frames=4, start="random").aligned.shape == (FRAMES, POINTS, 2)
