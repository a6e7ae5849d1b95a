"""When a run ends before its last step: early stopping, and a range test whose loss is no number any more.

Prechelt 1998; as an algorithm with a patience: Goodfellow et al. 2016, algorithm 7.1. Departure: the evaluations are
those of the run's frames, which are denser at first, and none within the warm-up uses up patience; the weights of every
evaluation are kept, so that the best stay at hand, and the run's own are the last.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from torch import nn

from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import DivergedError, Run, TrainingStep


@dataclass(frozen=True)
class Watched:
    """What early stopping sees in a run's evaluations.

    Args:
        stopped: patience ran out before the run's last step.
        step: of the last evaluation that it looked at.
        best_step: of the evaluation with the lowest held-out loss.
        best: that loss, in nats; nan where there was none.
        last: the loss at `step`; nan where it was no number.
        waited: evaluations in a row, up to the last, that were no improvement and used up patience.
    """

    stopped: bool
    step: int
    best_step: int
    best: float
    last: float
    waited: int


def watch(evaluations: Iterable[tuple[int, float | None]], config: TrainConfig, total_steps: int) -> Watched:
    """Return what early stopping sees in evaluations; it looks at none after that which stops the run.

    An evaluation is an improvement where its loss is below the last improvement's by more than config.min_improvement,
    or by any amount where that is 0.

    Args:
        evaluations: the steps taken before each, rising, and the held-out loss in nats, None where it was no number.
        config: the run's.
        total_steps: of the whole run; patience that runs out there stops nothing.
    """
    warm_up_steps = math.ceil(config.warm_up * total_steps)
    improved = best = math.inf
    step = best_step = waited = 0
    last, stopped = math.nan, False
    for step, loss in evaluations:
        last = math.nan if loss is None else loss
        if last < best:
            best, best_step = last, step
        if last < improved - config.min_improvement:
            improved, waited = last, 0
        elif step > warm_up_steps:
            waited += 1
        if config.stops_early and waited == config.patience and step < total_steps:
            stopped = True
            break
    return Watched(stopped, step, best_step, best if math.isfinite(best) else math.nan, last, waited)


def until_diverged(run: Run) -> Iterator[TrainingStep]:
    """Take a run's steps; a range test ends where its loss is no number any more.

    Raises:
        DivergedError: as Run.steps, of a run that is no range test.
    """
    try:
        yield from run.steps()
    except DivergedError:
        if not run.config.range_test:
            raise


def until_over(
    run: Run, held_out_loss: Callable[[nn.Module], float], evaluated: Collection[int]
) -> Iterator[TrainingStep]:
    """Take a run's steps until it is over, as a worker does.

    Args:
        run: before its first step.
        held_out_loss: of the model in evaluation mode, in nats.
        evaluated: after how many steps it is measured, where the run may stop early.
    """
    course: list[tuple[int, float]] = []

    def is_over() -> bool:
        if not run.config.stops_early or run.step not in evaluated:
            return False
        course.append((run.step, held_out_loss(run.model.eval())))
        return watch(course, run.config, run.total_steps).stopped

    is_over()
    for step in until_diverged(run):
        yield step
        if is_over():
            return
