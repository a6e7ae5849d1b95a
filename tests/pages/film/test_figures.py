"""The film's bytes: what is packed comes back, whole or in parts, and what does not fit is refused."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest

from pages.film.figures.film import CURVES, MOST_STEPS, coded, film_bytes, followed_bytes, thinned
from tests.helpers.figures import ATTACK, clouds, followed_of, reversing
from transformer_core.analysis.followed_text import Moment
from transformer_core.training.runs.store.records import Curves


def read(payload: bytes) -> dict:
    """Return the header with every place in it read."""
    (length,) = struct.unpack_from("<I", payload)
    start = -(-(4 + length) // 8) * 8

    def resolved(node):
        if isinstance(node, list):
            return [resolved(one) for one in node]
        if not isinstance(node, dict):
            return node
        if "at" in node:
            kind = {"u1": np.uint8, "f4": np.dtype("<f4")}[node["type"]]
            flat = np.frombuffer(payload, kind, int(np.prod(node["shape"])), start + node["at"])
            return flat.reshape(node["shape"])
        return {name: resolved(value) for name, value in node.items()}

    return resolved(json.loads(payload[4 : 4 + length]))


def steps_of(count: int) -> Curves:
    taken = np.arange(1, count + 1)
    return Curves(taken, 1 / taken, np.full(count, 1e-3), np.sqrt(taken), 0.1 * taken)


def test_what_is_packed_comes_back():
    film = clouds(40, 3)
    got = read(film_bytes(film))
    assert got["run"]["labels"] == ["negative", "positive"]
    assert got["points"]["texts"] == film.points.texts
    np.testing.assert_array_equal(got["points"]["labels"], film.points.labels)
    np.testing.assert_array_equal(got["points"]["held_out"], film.points.held_out)
    assert tuple(got["steps"]) == CURVES
    for name in CURVES:
        np.testing.assert_allclose(got["steps"][name], getattr(film.curves, name), rtol=1e-6)
    for packed, (frame, layout) in zip(got["frames"], film.laid_out("tsne"), strict=True):
        assert (packed["number"], packed["step"]) == (frame.number, frame.step)
        assert packed["measures"] == pytest.approx(frame.measures)
        np.testing.assert_allclose(packed["layouts"]["tsne"]["xy"], layout.xy, rtol=1e-6)
        np.testing.assert_array_equal(packed["predicted"], film.predicted[frame.number])
        assert np.abs(packed["certainty"] / 255 - film.certainty[frame.number]).max() <= 0.5 / 255 + 1e-9


def test_only_what_a_browser_lacks_is_sent():
    film = clouds(40, 5, steps=100)
    got = read(film_bytes(film, after=2, after_step=90))
    assert [frame["number"] for frame in got["frames"]] == [3, 4]
    assert got["steps"]["step"].tolist() == list(range(91, 101))
    assert "points" not in got
    rest = read(film_bytes(film, after=4, after_step=100))
    assert rest["frames"] == []
    assert rest["steps"]["loss"].size == 0


def test_numbers_that_are_none_become_none_and_never_broken_json():
    film = clouds(10, 2)
    frame = replace(film.frames[0], measures={"train_loss": float("nan"), "held_out_loss": float("inf")})
    status = replace(film.status, seconds_left=float("inf"))
    curves = replace(film.curves, loss=np.full_like(film.curves.loss, np.nan))
    got = read(film_bytes(replace(film, status=status, curves=curves, frames=[frame])))
    assert got["frames"][0]["measures"] == {"train_loss": None, "held_out_loss": None}
    assert got["run"]["seconds_left"] is None
    assert np.isnan(got["steps"]["loss"]).all()


@pytest.mark.parametrize("count", [0, 1, MOST_STEPS, MOST_STEPS + 1, 3 * MOST_STEPS + 7])
def test_thinned_steps_keep_means_and_end_with_the_last(count: int):
    steps = steps_of(count)
    thin = thinned(steps)
    assert len(thin["step"]) == min(count, MOST_STEPS)
    if count:
        assert thin["step"][-1] == count
        assert (np.diff(thin["step"]) > 0).all()
        sizes = np.diff([0, *thin["step"]])
        assert np.average(thin["loss"], weights=sizes) == pytest.approx(steps.loss.mean())


def test_sure_is_255_and_bytes_stay():
    assert coded(np.array([0.0, 0.5, 1.0, np.nan, 7.0])).tolist() == [0, 128, 255, 0, 255]
    codes = np.array([0, 1, 255], np.uint8)
    assert coded(codes) is codes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda film: {"curves": replace(film.curves, loss=film.curves.loss[1:])},
            "steps must be arrays of one length",
        ),
        (
            lambda film: {"points": replace(film.points, labels=np.zeros(3))},
            r"points.labels has shape \(3,\), needed \(8,\)",
        ),
        (lambda film: {"points": None}, r"frame 0: tsne has shape \(8, 2\), needed \(0, 2\)"),
        (lambda film: {"labels": ["x"] * 21}, "names 21 classes, at most 20"),
    ],
)
def test_a_film_that_does_not_fit_is_refused(change, message):
    film = clouds(8, 2)
    with pytest.raises(ValueError, match=message):
        replace(film, **change(film))


def test_a_followed_text_keeps_its_weights_to_half_a_code_and_its_labels():
    followed_text = followed_of(clouds(20, 3), ATTACK)
    got = read(followed_bytes(followed_text))
    assert got["tokens"] == list(followed_text.tokens)
    for packed, moment in zip(got["frames"], followed_text.frames, strict=True):
        assert packed["attention"].shape == moment.attention.shape
        assert np.abs(packed["attention"] / 255 - moment.attention).max() <= 0.5 / 255 + 1e-9
        assert packed["probabilities"] == pytest.approx(moment.probabilities)
        assert packed["xy"]["tsne"] == pytest.approx(moment.xy["tsne"])


def test_a_frame_that_writes_words_of_its_own_has_their_labels():
    followed_text = followed_of(clouds(20, 2))
    own = Moment(0, np.zeros((1, 1, 2, 7)), tokens=("a", "b"))
    assert read(followed_bytes(replace(followed_text, frames=(own,))))["frames"][0]["tokens"] == ["a", "b"]


def test_runs_without_points_have_none():
    got = read(film_bytes(reversing(4)))
    assert "points" not in got
    assert all(frame["layouts"] == {} and "predicted" not in frame for frame in got["frames"])
