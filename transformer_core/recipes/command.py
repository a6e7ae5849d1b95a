"""What all recipes share: their command line, and training that can be interrupted and resumed."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.device import best_device, device_name
from transformer_core.measured import MEASURED, Trained
from transformer_core.recipes.on_ray import run_on_ray
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Objective, Run
from transformer_core.training.precision import has_bfloat16
from transformer_core.training.state import forget_run, load_run, save_run

STEPS_BETWEEN_SAVES = 100


class Clock:
    """Seconds of a recipe, all its interrupted runs together; they are kept in a file between runs."""

    def __init__(self, file: Path, *, resume: bool) -> None:
        self._file, self._started = file, time.perf_counter()
        before = json.loads(file.read_text()) if resume and file.is_file() else {}
        self._cpu_before, self._before = before.get("cpu_seconds", 0.0), before.get("seconds", 0.0)

    @property
    def cpu_seconds(self) -> float:
        """Processor seconds so far, all cores together."""
        return self._cpu_before + time.process_time()

    @property
    def seconds(self) -> float:
        """Seconds of wall-clock time so far."""
        return self._before + time.perf_counter() - self._started

    def save(self) -> None:
        """Write the seconds so far."""
        seconds = {"cpu_seconds": self.cpu_seconds, "seconds": self.seconds}
        self._file.write_text(json.dumps(seconds) + "\n", encoding="utf-8")


def take_steps(run: Run, work: Path, clock: Clock) -> None:
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


def recipe_parser(name: str, *, makes: str, data: str, out: str, device: str | None = None) -> argparse.ArgumentParser:
    """Return a parser of the arguments that all recipes have.

    Args:
        name: of the recipe's module.
        makes: what it trains, such as "the GPT of characters".
        data: what --data must hold.
        out: name of the bundle's folder among the shipped ones.
        device: where to train by default; None for cuda where there is one, else cpu.
    """
    parser = argparse.ArgumentParser(prog=name, description=f"Train {makes} and write its bundle.")
    parser.add_argument("--data", type=Path, required=True, help=f"folder that holds {data}")
    parser.add_argument("--out", type=Path, default=Path("assets/checkpoints") / out, help="folder of the bundle")
    parser.add_argument("--work", type=Path, default=Path(".runs") / out, help="folder of what --resume needs")
    usual = device or "cuda where there is one, else cpu"
    parser.add_argument("--device", default=device, help=f"cpu, cuda or mps; by default {usual}")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--resume", action="store_true", help="go on where an interrupted run of the same command was")
    parser.add_argument("--quick", action="store_true", help="a tiny model for seconds, to try the recipe out")
    parser.add_argument("--on", choices=("ray",), help="train on the Ray cluster at RAY_ADDRESS, not here")
    parser.add_argument("--again", action="store_true", help="train nothing: measure the bundle again, write its cards")
    return parser


def run_command(
    parser: argparse.ArgumentParser, recipe: Callable[[argparse.Namespace], str], arguments: list[str] | None
) -> int:
    """Run a recipe, here or on a cluster; return its exit code: 0 with its result printed, 2 with what was wrong."""
    chosen = parser.parse_args(arguments)
    try:
        if chosen.on is not None:
            return run_on_ray(parser.prog, chosen, sys.argv[1:] if arguments is None else arguments)
        result = recipe(chosen)
    except (ValueError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(result)
    return 0


def command_of(name: str, chosen: argparse.Namespace) -> str:
    """Return the command that makes the same bundle again, for its card."""
    return (
        f"python -m transformer_core.recipes.{name} --data DIR{' --quick' if chosen.quick else ''} --seed {chosen.seed}"
    )


def settle(config: TrainConfig, chosen: argparse.Namespace) -> tuple[TrainConfig, torch.device]:
    """Return a config with the chosen seed and the precision that is fastest on the device, and the device."""
    device = torch.device(chosen.device or best_device())
    precision = "bfloat16" if has_bfloat16(device) else "float32"
    return replace(config, seed=chosen.seed, precision=precision), device


def open_clock(chosen: argparse.Namespace) -> Clock:
    """Return the clock of a recipe's processor time; a resumed recipe adds to the time of its interrupted run."""
    chosen.work.mkdir(parents=True, exist_ok=True)
    return Clock(chosen.work / "clock.json", resume=chosen.resume)


def trained_before(bundle: Bundle, stage: str) -> Trained:
    """Return what a stage of the training of a bundle on disk took.

    Raises:
        ValueError: it is not on record.
    """
    found = next((row for row in bundle.measured.trained if row.stage == stage), None)
    if found is None:
        raise ValueError(f"--again: {bundle.name}/{MEASURED} does not say what training took")
    return found


def train(
    make_model: Callable[[], nn.Module],
    objective: Objective,
    batches: Callable[[int], Iterable[Any]],
    *,
    steps_per_epoch: int,
    config: TrainConfig,
    device: torch.device,
    chosen: argparse.Namespace,
    clock: Clock | None = None,
    stage: str = "",
) -> tuple[nn.Module, Trained]:
    """Train to the end, from where an interrupted run stopped; return the model, on the processor, and its cost.

    With --again nothing is trained: the model of the bundle on disk is returned, with what its training took.

    Args:
        make_model: makes a fresh model; it is seeded with config.seed.
        objective, batches, steps_per_epoch, config: as in Run.
        device: where to train.
        chosen: arguments of the command line.
        clock: of the whole recipe, where it has several stages; by default a new one.
        stage: name of this stage's folder, where the recipe has several.

    Raises:
        ValueError: the files of the interrupted run do not fit.
    """
    if chosen.again:
        bundle = load(chosen.out, device="cpu")
        return bundle.model, trained_before(bundle, stage)
    torch.manual_seed(config.seed)
    run = Run(make_model().to(device), objective, batches, steps_per_epoch=steps_per_epoch, config=config)
    work = chosen.work / stage
    if not chosen.resume:
        forget_run(work)
    clock = clock or open_clock(chosen)
    load_run(run, work)
    take_steps(run, work, clock)
    model = run.model.to("cpu").eval().requires_grad_(False)
    cpu_minutes, minutes = (round(seconds / 60, 2) for seconds in (clock.cpu_seconds, clock.seconds))
    return model, Trained(stage, run.total_steps, cpu_minutes, minutes, device_name(device), config.precision)
