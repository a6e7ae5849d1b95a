"""The training loop: a generator that takes one step each time it is advanced, and can be saved and resumed.

Vaswani et al. 2017, section 5; gradient clipping: Pascanu et al. 2013, algorithm 1.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from transformer_core.progress import counted
from transformer_core.training.config import TrainConfig
from transformer_core.training.optimizers import learning_rate_at, make_optimizer
from transformer_core.training.precision import computing_in

Objective = Callable[[Any, Any], Tensor]


class DivergedError(ValueError):
    """The loss or the gradient is infinite or not a number."""


@dataclass(frozen=True)
class TrainingStep:
    """What one step of training did.

    Args:
        step: steps taken so far, this one included.
        epoch: the pass over the data, from 0.
        loss: of this batch before the step, in the objective's unit (nats).
        learning_rate: that the step used.
        gradient_norm: Euclidean norm of the whole gradient before clipping.
        seconds: of wall-clock time.
        examples: in this batch.
    """

    step: int
    epoch: int
    loss: float
    learning_rate: float
    gradient_norm: float
    seconds: float
    examples: int


class Run:
    """A training run: the model, the optimizer, and the number of steps taken.

    The run has its own random state: random numbers that the caller draws between two steps do not change it, and the
    caller's generators are left as they were.

    Args:
        model: trained in place, on its device.
        objective: from the model and a batch to the loss.
        batches: from an epoch's number, from 0, to its batches; the same number must give the same batches. The
            length of a batch is its number of examples.
        steps_per_epoch: how many batches an epoch has.
        config: how to train.
        zeros: of parameters by name, which of their numbers are set to 0 after each step, as pruned weights are.

    Raises:
        ValueError: steps_per_epoch is less than 1.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        batches: Callable[[int], Iterable[Any]],
        *,
        steps_per_epoch: int,
        config: TrainConfig,
        zeros: Mapping[str, Tensor] | None = None,
    ) -> None:
        if steps_per_epoch < 1:
            raise ValueError(f"steps_per_epoch={steps_per_epoch} must be at least 1: there is nothing to train on")
        self.model, self.config, self.step = model, config, 0
        self.steps_per_epoch, self.total_steps = steps_per_epoch, steps_per_epoch * config.epochs
        self.optimizer = make_optimizer(model, config)
        self.device = next(model.parameters()).device
        self._objective, self._batches = objective, batches
        named = dict(model.named_parameters())
        self._zeros = [(named[name], mask) for name, mask in (zeros or {}).items()]
        self.random_states: dict[str, Tensor] | None = None

    def steps(self) -> Iterator[TrainingStep]:
        """Take the remaining steps, one each time the iterator is advanced, and count them as progress.

        Raises:
            DivergedError: the loss or the gradient is infinite or not a number; the weights are as before the step.
            ValueError: an epoch yields fewer batches than steps_per_epoch.
        """
        return counted(self._steps(), self.total_steps - self.step)

    def _steps(self) -> Iterator[TrainingStep]:
        while self.step < self.total_steps:
            epoch, done = divmod(self.step, self.steps_per_epoch)
            for batch in islice(self._batches(epoch), done, self.steps_per_epoch):
                yield self._take(batch, epoch)
                done += 1
            if done < self.steps_per_epoch:
                raise ValueError(f"epoch {epoch} has {done} batches; steps_per_epoch={self.steps_per_epoch} are needed")

    def _take(self, batch: Any, epoch: int) -> TrainingStep:
        started = time.perf_counter()
        learning_rate = learning_rate_at(self.step, self.total_steps, self.config)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.model.train()
        self.optimizer.zero_grad()
        with self._own_randomness():
            with computing_in(self.config.precision, self.device):
                loss = self._objective(self.model, batch)
            loss.backward()
        limit = math.inf if self.config.clip_norm is None else self.config.clip_norm
        gradient_norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), limit))
        if not (math.isfinite(gradient_norm) and math.isfinite(loss.item())):
            raise DivergedError(
                f"step {self.step + 1}: the loss is {loss.item()} and the gradient's norm {gradient_norm}; "
                f"learning_rate={learning_rate:g} may be too high"
            )
        self.optimizer.step()
        with torch.no_grad():
            for parameter, mask in self._zeros:
                parameter.masked_fill_(mask, 0.0)
        self.step += 1
        seconds = time.perf_counter() - started
        return TrainingStep(self.step, epoch, loss.item(), learning_rate, gradient_norm, seconds, len(batch))

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        on_cuda = self.device.type == "cuda"
        with torch.random.fork_rng([self.device] if on_cuda else []):
            if self.random_states is None:
                torch.manual_seed(self.config.seed)
            else:
                torch.set_rng_state(self.random_states["cpu"])
                if on_cuda:
                    torch.cuda.set_rng_state(self.random_states["cuda"], self.device)
            yield
            self.random_states = {"cpu": torch.get_rng_state()}
            if on_cuda:
                self.random_states["cuda"] = torch.cuda.get_rng_state(self.device)
