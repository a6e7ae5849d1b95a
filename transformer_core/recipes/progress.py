"""Progress of a recipe: steps with a bar, saved on the way, and the processor time of all its sittings.

Read next: reviews.py.
"""

import json
import time
from pathlib import Path

from tqdm import tqdm

from transformer_core.training.loop import Run
from transformer_core.training.state import save_run

STEPS_BETWEEN_SAVES = 100


class CpuClock:
    """Processor seconds of a recipe over all its sittings; they are kept in a file between them."""

    def __init__(self, file: Path, *, resume: bool) -> None:
        self._file = file
        self._before = json.loads(file.read_text())["cpu_seconds"] if resume and file.is_file() else 0.0

    @property
    def seconds(self) -> float:
        """Processor seconds so far."""
        return self._before + time.process_time()

    def save(self) -> None:
        """Write the seconds so far."""
        self._file.write_text(json.dumps({"cpu_seconds": self.seconds}) + "\n", encoding="utf-8")


def take_steps(run: Run, work: Path, clock: CpuClock) -> None:
    """Train to the end with a progress bar named after the folder, saving the run on the way."""
    loss = None
    with tqdm(total=run.total_steps, initial=run.step, desc=work.name, mininterval=2.0) as bar:
        for step in run.steps():
            loss = step.loss if loss is None else 0.98 * loss + 0.02 * step.loss
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            bar.update()
            if step.step % STEPS_BETWEEN_SAVES == 0 or step.step == run.total_steps:
                save_run(run, work)
                clock.save()
