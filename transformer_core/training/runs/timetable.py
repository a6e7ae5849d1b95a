"""Which steps of a run are kept as frames, how many frames' weights there is room for, and how long the rest will take.

Read next: beginning.py.
"""

from transformer_core.training.runs.errors import RunError

BEND = 1.8
MOST_BYTES_OF_WEIGHTS = 512 << 20
BYTES_A_NUMBER = 4
FEWEST_FRAMES = 2
WEIGHT_OF_THE_NEW = 0.05


def frame_steps(total_steps: int, frames: int) -> list[int]:
    """Return the numbers of steps after which a frame is kept: step T (i / (n - 1))^1.8 for i from 0 to n - 1.

    The first is 0, before any step, and the last is total_steps; they rise, denser at first, where sentence vectors
    move most. A run of fewer steps than frames keeps every one.

    Raises:
        ValueError: total_steps is less than 1 or frames less than 2.
    """
    if total_steps < 1 or frames < FEWEST_FRAMES:
        raise ValueError(f"total_steps={total_steps} must be at least 1 and frames={frames} at least {FEWEST_FRAMES}")
    last = min(frames, total_steps + 1) - 1
    kept = [0]
    for index in range(1, last + 1):
        wanted = round(total_steps * (index / last) ** BEND)
        kept.append(min(max(wanted, kept[-1] + 1), total_steps - (last - index)))
    return kept


def frames_with_room(frames: int, n_parameters: int) -> int:
    """Return how many frames a run keeps, so that their weights take at most 512 MB in all.

    Raises:
        RunError: there is no room for two.
    """
    room = MOST_BYTES_OF_WEIGHTS // (n_parameters * BYTES_A_NUMBER)
    if room < FEWEST_FRAMES:
        most = MOST_BYTES_OF_WEIGHTS // BYTES_A_NUMBER // FEWEST_FRAMES
        raise RunError(
            f"the model has {n_parameters:,} parameters; a run may have at most {most:,}: lower d_model, d_ff, "
            "n_layers or vocab_size"
        )
    return min(frames, room)


class Pace:
    """How long steps and frames take, so that the rest can be guessed."""

    def __init__(self) -> None:
        self._step: float | None = None
        self._frame: float | None = None

    def took_step(self, seconds: float) -> None:
        """Count a step."""
        self._step = seconds if self._step is None else self._step + WEIGHT_OF_THE_NEW * (seconds - self._step)

    def took_frame(self, seconds: float) -> None:
        """Count a frame; the first ones take longest, so the last one counts half."""
        self._frame = seconds if self._frame is None else (self._frame + seconds) / 2

    def seconds_left(self, steps: int, frames: int) -> float | None:
        """Return how long this many steps and frames may take; None before the first step."""
        return None if self._step is None else steps * self._step + frames * (self._frame or 0.0)
