"""Frames: which steps are kept, how many there is room for, and a guess of the time left."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.worker.recorder import frame_steps, frames_with_room
from transformer_core.training.runs.worker.session import Pace

TOTALS, FRAMES = st.integers(1, 100_000), st.integers(2, 64)


@given(TOTALS, FRAMES)
def test_frames_begin_before_the_first_step_end_after_the_last_and_rise(total, frames):
    steps = frame_steps(total, frames)
    assert (steps[0], steps[-1]) == (0, total)
    assert all(later > earlier for earlier, later in itertools.pairwise(steps))
    assert len(steps) == min(frames, total + 1)
    assert steps == frame_steps(total, frames)


@given(st.integers(2_000, 100_000), st.integers(8, 64))
def test_frames_are_denser_at_first(total, frames):
    steps = frame_steps(total, frames)
    half = sum(step < total / 2 for step in steps)
    assert half > len(steps) * 0.6


@given(st.integers(1, 64), FRAMES)
def test_a_short_run_keeps_every_step(total, frames):
    steps = frame_steps(total, frames)
    assert steps == list(range(total + 1)) or len(steps) == frames


def test_impossible_timetables_are_refused():
    for total, frames in ((0, 5), (5, 1)):
        with pytest.raises(ValueError, match=f"total_steps={total} must be at least 1 and frames={frames}"):
            frame_steps(total, frames)


@given(st.integers(1, 200_000_000), FRAMES)
def test_the_weights_of_all_frames_take_at_most_512_mb(n_parameters, frames):
    if n_parameters > 1 << 26:
        with pytest.raises(RunError, match="at most 67,108,864"):
            frames_with_room(frames, n_parameters)
        return
    kept = frames_with_room(frames, n_parameters)
    assert 2 <= kept <= frames
    assert kept * n_parameters * 4 <= 512 << 20
    assert kept == frames or (kept + 1) * n_parameters * 4 > 512 << 20


def test_the_time_left_follows_from_steps_and_frames_so_far():
    pace = Pace()
    assert pace.seconds_left(10, 1) is None
    for _ in range(5):
        pace.took_step(0.5)
    assert pace.seconds_left(10, 3) == pytest.approx(5.0)
    pace.took_frame(2.0)
    assert pace.seconds_left(10, 3) == pytest.approx(11.0)
    assert pace.seconds_left(0, 0) == 0.0
