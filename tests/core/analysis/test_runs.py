"""A run looked at afterwards: a text followed through its frames, and its maps beside maps fitted afresh."""

import dataclasses

import numpy as np
import pytest
import torch

from tests.helpers import nightly_but
from tests.helpers.made_runs import FRAMES, POINTS, SPECS, made_run
from transformer_core.analysis.coming_apart import border_of, coming_apart
from transformer_core.analysis.followed_text import follow_text
from transformer_core.analysis.refitted_maps import refitted_maps
from transformer_core.config import ModelConfig
from transformer_core.layout.neighbours import squared_distances
from transformer_core.layout.sequence import LayoutSequence
from transformer_core.layout.tsne import affinities, fresh
from transformer_core.probe import capture
from transformer_core.training.config import TrainConfig
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.records import Layout
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker.layout_thread import continued_layouts
from transformer_core.training.runs.worker.session import Session
from transformer_core.training.spec import DataSpec, NetworkSpec, RunSpec
from transformer_core.training.tasks.make import make_task
from transformer_core.training.tasks.pairs import pairs_of

SOURCES = ("reviews", "reverse", "characters", "masked_words")
RECURRENT = {
    "reviews gru": (DataSpec(source="reviews", examples=96, held_out=32), NetworkSpec(network="gru")),
    "reverse rnn": (DataSpec(source="reverse", examples=96, held_out=32, length=5), NetworkSpec(network="rnn")),
    "reverse lstm": (
        DataSpec(source="reverse", examples=96, held_out=32, length=5),
        NetworkSpec(network="lstm", alignment="none", bidirectional=True),
    ),
    "characters rnn": (DataSpec(source="characters", examples=96), NetworkSpec(network="rnn", initial="normal")),
}
SPEC = RunSpec(
    name="tiny",
    model=ModelConfig(vocab_size=16, d_model=16, n_heads=2, d_ff=16, n_layers=2, max_len=32, dropout=0.0),
    training=TrainConfig(batch_size=32, learning_rate=1e-2),
    frames=3,
    points=40,
    threads=1,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunStore]:
    """A finished run of each kind of model."""
    shelf, finished = RunList(tmp_path_factory.mktemp("runs")), {}
    for source in SOURCES:
        data = DataSpec(source=source, examples=96, held_out=32, length=5)
        finished[source] = shelf.create(dataclasses.replace(SPEC, data=data))
        Session(finished[source], make_task, continued_layouts).work()
        assert finished[source].status().state == "finished", finished[source].status().message
    return finished


@pytest.mark.parametrize("name", nightly_but(RECURRENT, ["reviews gru", "reverse rnn"]))
def test_a_recurrent_run_is_trained_and_followed_and_has_no_heads_where_it_has_no_attention(name, tmp_path) -> None:
    data, network = RECURRENT[name]
    store = RunList(tmp_path).create(dataclasses.replace(SPEC, data=data, network=network))
    Session(store, make_task, continued_layouts).work()
    assert store.status().state == "finished", store.status().message
    assert store.facts()["kind"] == store.spec.kind == store.model().kind
    film = follow_text(store, store.facts()["prompt"])
    assert len(film.frames) == 3
    for moment in film.frames:
        if name == "reverse rnn":
            assert moment.attention.shape == (1, 1, len(film.tokens), len(film.key_tokens))
            np.testing.assert_allclose(moment.attention.sum(-1), 1.0, atol=1e-5)
        else:
            assert moment.attention.shape == (0, 0, len(film.tokens), len(film.key_tokens))
    last = film.frames[-1]
    if data.kind == "classifier":
        bundle = store.model(last.number)
        ids = torch.tensor([bundle.tokenizer.encode(film.text).ids])
        logits, trace = capture(bundle.model, ids, sites=("summary",))
        np.testing.assert_allclose(last.probabilities, logits[0].softmax(-1), atol=1e-6)
        np.testing.assert_array_equal(last.embedding, trace["summary"][0])
        assert last.xy.keys() == {"tsne", "pca"}
    elif data.source == "characters":
        assert last.sample


@pytest.mark.parametrize("source", SOURCES)
def test_every_frame_attends_and_rows_sum_to_one(runs, source: str) -> None:
    store = runs[source]
    film = follow_text(store, store.facts()["prompt"])
    assert [moment.number for moment in film.frames] == [frame.number for frame in store.frames()]
    for moment in film.frames:
        assert moment.attention.shape == (2, 2, len(film.tokens), len(film.key_tokens))
        np.testing.assert_allclose(moment.attention.sum(-1), 1.0, atol=1e-5)
    assert film.attention_name == ("cross" if source == "reverse" else "self")
    assert (source == "reviews") == (film.frames[0].probabilities is not None)
    assert all((source == "reviews") or moment.sample for moment in film.frames)


def test_a_classifiers_moment_is_what_the_model_of_that_frame_says(runs) -> None:
    store, text = runs["reviews"], "not a bad film"
    for moment in follow_text(store, text).frames:
        bundle = store.model(moment.number)
        ids = torch.tensor([bundle.tokenizer.encode(text).ids])
        logits, trace = capture(bundle.model, ids, sites=("cls_embedding", "encoder.layer1.self_attention.weights"))
        np.testing.assert_allclose(moment.probabilities, logits[0].softmax(-1), atol=1e-6)
        np.testing.assert_allclose(moment.embedding, trace["cls_embedding"][0], atol=1e-6)
        np.testing.assert_allclose(moment.attention[1], trace["encoder.layer1.self_attention.weights"][0], atol=1e-6)


def test_a_point_of_the_run_is_placed_where_it_lies(runs) -> None:
    store = runs["reviews"]
    points, last = store.points(), store.frames()[-1].number
    layouts = {layout.method: layout.xy for layout in store.layouts() if layout.frame == last}
    film = follow_text(store, points.texts[3])
    embedding = store.embeddings(last)[3]
    np.testing.assert_allclose(film.frames[-1].embedding, embedding, atol=2e-2)
    for method, xy in layouts.items():
        spread = float(np.sqrt((xy**2).sum(1).mean()))
        assert np.linalg.norm(np.array(film.frames[-1].xy[method]) - xy[3]) < 0.5 * spread


def test_the_attention_of_a_sequence_is_that_of_the_right_answer(runs) -> None:
    film = follow_text(runs["reverse"], "abc")
    assert film.tokens[:3] == ("c", "b", "a")
    assert film.key_tokens[1:4] == ("a", "b", "c")


def test_only_what_is_new_is_computed(runs) -> None:
    film = follow_text(runs["reviews"], "a film", after=1)
    assert [moment.number for moment in film.frames] == [2]
    assert follow_text(runs["reviews"], "a film", after=2).frames == ()


@pytest.mark.parametrize(("text", "words"), [("  ", "text is empty"), ("a" * 501, "501 characters")])
def test_what_cannot_be_followed_is_refused(runs, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        follow_text(runs["reviews"], text)


def test_a_translation_is_followed_to_its_right_answer_or_to_what_each_frame_writes(tmp_path) -> None:
    store = RunList(tmp_path).create(dataclasses.replace(SPEC, data=DataSpec(source="pairs", examples=96, held_out=32)))
    Session(store, make_task, continued_layouts).work()
    assert store.status().state == "finished", store.status().message
    prompt = store.facts()["prompt"]
    known = follow_text(store, prompt)
    train, held_out = pairs_of(store.spec, store.folder)
    assert known.goal == dict([*train, *held_out])[prompt]
    for moment in known.frames:
        assert moment.tokens is None
        assert moment.attention.shape[2:] == (len(known.tokens), len(known.key_tokens))
    other = follow_text(store, "the dog is the cat")
    assert (other.goal, other.tokens) == ("", ())
    for moment in other.frames:
        assert moment.tokens is not None
        assert moment.attention.shape[2:] == (len(moment.tokens), len(other.key_tokens))
        np.testing.assert_allclose(moment.attention.sum(-1), 1.0, atol=1e-5)


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


APART = [
    ([0.5, 0.9, 0.9], ("apart", 1)),
    ([0.5, 0.9, 0.7, 0.9], ("apart", 3)),  # apart once, and not from there on
    ([0.5, 0.9, 0.7], ("not_apart", 2)),
    ([0.5, 0.745], ("not_apart", 1)),
    ([0.5, 0.75], ("few", 1)),  # the border itself
    ([0.5, 0.80], ("few", 1)),  # 160 of 200: the lower end is 73.9 %
    ([0.5, 0.82], ("apart", 1)),  # 164 of 200: 76.1 %
    ([0.9], ("apart", 0)),
]


@pytest.mark.parametrize(("shares", "came"), APART)
def test_classes_come_apart_at_the_first_frame_from_which_the_interval_stays_above_the_border(
    shares: list[float], came: tuple[str, int]
) -> None:
    found = coming_apart([(place, 10 * place, share) for place, share in enumerate(shares)], np.arange(200) % 2)
    assert found is not None
    assert (found.kind, found.frame) == came
    assert (found.step, found.share, found.count) == (10 * found.frame, shares[found.frame], 200)
    assert (found.low >= found.border) == (found.kind == "apart")


def test_the_border_is_halfway_between_the_commonest_class_and_all() -> None:
    assert border_of(np.array([0, 1])) == 0.75
    assert border_of(np.array([0, 0, 0, 1])) == 0.875
    assert coming_apart([], np.array([0, 1])) is None
    assert coming_apart([(0, 0, 1.0)], np.array([], dtype=int)) is None
