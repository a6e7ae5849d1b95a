"""Frames: which steps of a run are kept, and what is recorded of the model between two steps.

Recording changes nothing of what the next step computes.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from transformer_core.models.output import sentence_site
from transformer_core.probe import capture
from transformer_core.training.histograms import histograms
from transformer_core.training.loop import Run
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.folder import weights_file
from transformer_core.training.runs.store.records import Frame
from transformer_core.training.tasks.task import Measures, Points, Task

POINTS_AT_ONCE = 128
BEND = 1.8
MOST_BYTES_OF_WEIGHTS = 512 << 20
BYTES_A_NUMBER = 4
FEWEST_FRAMES = 2
VOCABULARY = "tokenizer_sha256"


def frame_steps(total_steps: int, frames: int) -> list[int]:
    """Return the steps after which a frame is recorded: step T (i / (n - 1))^1.8 for i from 0 to n - 1.

    The first is 0, before any step, and the last is total_steps; they rise and are denser at first,
    where sentence vectors move most. A run of fewer steps than frames records every step.

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
    """Return how many frames a run records, so that their weights take at most 512 MB in all.

    Raises:
        RunError: two frames would take more.
    """
    room = MOST_BYTES_OF_WEIGHTS // (n_parameters * BYTES_A_NUMBER)
    if room < FEWEST_FRAMES:
        most = MOST_BYTES_OF_WEIGHTS // BYTES_A_NUMBER // FEWEST_FRAMES
        raise RunError(
            f"the model has {n_parameters:,} parameters; a run may have at most {most:,}: lower d_model, d_ff, "
            "n_layers or vocab_size"
        )
    return min(frames, room)


def save_weights(model: nn.Module, path: Path, tokenizer_sha256: str) -> None:
    """Write a model's weights in float32 under another name and rename the file, so that no reader sees half of it."""
    tensors = {name: p.detach().to("cpu", torch.float32).contiguous() for name, p in model.named_parameters()}
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".{path.name}")
    try:
        save_file(tensors, draft, metadata={VOCABULARY: tokenizer_sha256})
        draft.chmod(0o644)  # safetensors lets the owner alone read it
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@torch.inference_mode()
def embed(model: nn.Module, points: Points, padding: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sentence vectors and the class probabilities of points, computed by a model in evaluation mode.

    Points of similar length are computed together, padded to the longest of them.

    Shapes:
        returns: (point, width of the sentence vector) and (point, class), float32
    """
    device = next(model.parameters()).device
    site = sentence_site(model)
    lengths = (points.token_ids != padding).sum(1)
    order = torch.argsort(lengths, stable=True)
    vectors, probabilities = [], []
    for places in order.split(POINTS_AT_ONCE):
        width = int(lengths[places].max())
        ids = points.token_ids[places, : max(width, 1)].to(device)
        logits, trace = capture(model, ids, sites=(site,))
        vectors.append(trace[site].float().cpu())
        probabilities.append(logits.float().softmax(-1).cpu())
    back = torch.argsort(order)
    return torch.cat(vectors)[back].numpy(), torch.cat(probabilities)[back].numpy()


class Recorder:
    """Record frames of a run.

    Args:
        task: what is learned.
        folder: the run's.
        writer: of the run's database.
        steps: after which a frame is recorded, in order.
        recorded: numbers of the frames that an earlier session recorded.
        tokenizer_sha256: of the run's tokenizer.json.
    """

    def __init__(
        self,
        task: Task,
        folder: Path,
        writer: RunWriter,
        *,
        steps: Sequence[int],
        recorded: Sequence[int],
        tokenizer_sha256: str,
    ) -> None:
        self._task, self._folder, self._writer = task, folder, writer
        self._steps, self._recorded = list(steps), set(recorded)
        self._vocabulary = tokenizer_sha256
        self._before: dict[str, Tensor] | None = None

    def is_due(self, step: int) -> bool:
        """Tell whether a frame is recorded after this step."""
        return step in self._steps

    def frames_after(self, step: int) -> int:
        """Return how many frames are still to come after this step."""
        return sum(later > step for later in self._steps)

    def before_step(self, run: Run) -> None:
        """Note the weights before a step after which a frame is recorded, which shows what the step changed."""
        if self.is_due(run.step + 1):
            self._before = {name: weight.detach().clone() for name, weight in run.model.named_parameters()}

    def record(self, run: Run, seconds: float) -> float:
        """Record a frame, unless an earlier session did, and return how many seconds that took.

        Raises:
            RunError, OSError: the run cannot be written.
        """
        started = time.perf_counter()
        number = self._steps.index(run.step)
        if number in self._recorded:
            return 0.0
        found, self._before = histograms(run.model, self._before), None
        model, was_training = run.model, run.model.training
        model.eval()
        try:
            measures = measure(self._task, model, thorough=run.config.stops_early or run.step == run.total_steps)
            points = self._task.points
            kept = (None, None) if points is None else embed(model, points, self._task.config.padding)
        finally:
            model.train(was_training)
        save_weights(model, weights_file(self._folder, number), self._vocabulary)
        frame = Frame(number, run.step, run.step / run.steps_per_epoch, seconds, measures)
        self._writer.add_frame(frame, *kept, published=points is None, histograms=found)
        self._recorded.add(number)
        return time.perf_counter() - started


@torch.inference_mode()
def measure(task: Task, model: nn.Module, *, thorough: bool) -> Measures:
    """Return a task's measures of a model in evaluation mode."""
    return task.measure(model, thorough)
