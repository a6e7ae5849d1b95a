"""The recorder: what is kept of a run at one of its frames, read off the model between two steps.

Nothing here changes what the next step computes. Read next: layouter.py.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from transformer_core.probe import capture
from transformer_core.training.loop import Run
from transformer_core.training.runs.folder import weights_file
from transformer_core.training.runs.frame_model import save_weights
from transformer_core.training.runs.records import Frame
from transformer_core.training.runs.writer import RunWriter
from transformer_core.training.tasks.task import Measures, Points, Task

POINTS_AT_ONCE = 128


@torch.inference_mode()
def embed(model: nn.Module, points: Points, pad_id: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the sentence vectors and the class probabilities of points, computed by a model in evaluation mode.

    Points of about one length go together, and no further than the longest of them.

    Shapes:
        returns: (point, d_model) and (point, class), float32
    """
    device = next(model.parameters()).device
    site = "cls_embedding" if model.config.pooling == "cls" else "mean_embedding"  # type: ignore[union-attr]
    lengths = (points.token_ids != (-1 if pad_id is None else pad_id)).sum(1)
    order = torch.argsort(lengths, stable=True)
    vectors, probabilities = [], []
    for places in order.split(POINTS_AT_ONCE):
        width = int(lengths[places].max()) if pad_id is not None else points.token_ids.shape[1]
        ids = points.token_ids[places, : max(width, 1)].to(device)
        logits, trace = capture(model, ids, sites=(site,))
        vectors.append(trace[site].float().cpu())
        probabilities.append(logits.float().softmax(-1).cpu())
    back = torch.argsort(order)
    return torch.cat(vectors)[back].numpy(), torch.cat(probabilities)[back].numpy()


class Recorder:
    """Keep frames of a run.

    Args:
        task: what is learned.
        folder: the run's.
        writer: of the run's database.
        steps: after which a frame is kept, in order.
        recorded: numbers of the frames that are there already, from an earlier sitting.
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

    def is_due(self, step: int) -> bool:
        """Tell whether a frame is kept after this step."""
        return step in self._steps

    def frames_after(self, step: int) -> int:
        """Return how many frames are still to come after this step."""
        return sum(later > step for later in self._steps)

    def record(self, run: Run, seconds: float) -> float:
        """Keep a frame, unless an earlier sitting kept it, and return how long that took.

        Raises:
            RunError, OSError: the run cannot be written.
        """
        started = time.perf_counter()
        number = self._steps.index(run.step)
        if number in self._recorded:
            return 0.0
        model, was_training = run.model, run.model.training
        model.eval()
        try:
            measures = measure(self._task, model, thorough=run.step == run.total_steps)
            points = self._task.points
            kept = (None, None) if points is None else embed(model, points, self._task.config.pad_id)
        finally:
            model.train(was_training)
        save_weights(model, weights_file(self._folder, number), self._vocabulary)
        frame = Frame(number, run.step, run.step / run.steps_per_epoch, seconds, measures)
        self._writer.add_frame(frame, *kept, published=points is None)
        self._recorded.add(number)
        return time.perf_counter() - started


@torch.inference_mode()
def measure(task: Task, model: nn.Module, *, thorough: bool) -> Measures:
    """Return a task's measures of a model in evaluation mode."""
    return task.measure(model, thorough)
