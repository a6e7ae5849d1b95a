"""A recipe's command line and its sitting: what all recipes ask for, and training that can be taken up again.

Read next: progress.py.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer_core.device import best_device
from transformer_core.recipes.progress import CpuClock, take_steps
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Objective, Run
from transformer_core.training.precision import has_bfloat16
from transformer_core.training.state import forget_run, load_run


@dataclass(frozen=True)
class Trained:
    """What a sitting ends with.

    Args:
        steps: of training, all sittings together.
        cpu_minutes: processor time of all sittings, all cores together.
        device: "cpu", "cuda" or "mps".
    """

    steps: int
    cpu_minutes: float
    device: str


def recipe_parser(name: str, *, makes: str, data: str, out: str) -> argparse.ArgumentParser:
    """Return a parser of what every recipe asks for.

    Args:
        name: of the recipe's module.
        makes: what it trains, such as "the GPT of characters".
        data: what --data must hold.
        out: name of the bundle's folder among the shipped ones.
    """
    parser = argparse.ArgumentParser(prog=name, description=f"Train {makes} and write its bundle.")
    parser.add_argument("--data", type=Path, required=True, help=f"folder that holds {data}")
    parser.add_argument("--out", type=Path, default=Path("assets/checkpoints") / out, help="folder of the bundle")
    parser.add_argument("--work", type=Path, default=Path(".runs") / out, help="folder of what --resume needs")
    parser.add_argument("--device", help="cpu, cuda or mps; by default the quickest at hand")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--resume", action="store_true", help="go on where an interrupted run of the same command was")
    parser.add_argument("--quick", action="store_true", help="a tiny model for seconds, to try the recipe out")
    return parser


def run_command(
    parser: argparse.ArgumentParser, recipe: Callable[[argparse.Namespace], str], arguments: list[str] | None
) -> int:
    """Run a recipe and return its exit code: 0 with one line of what came of it, or 2 with one of what was wrong."""
    chosen = parser.parse_args(arguments)
    try:
        outcome = recipe(chosen)
    except (ValueError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(f"{chosen.out}: {outcome}")
    return 0


def command_of(name: str, chosen: argparse.Namespace) -> str:
    """Return the command that makes the same bundle again, for its card."""
    return (
        f"python -m transformer_core.recipes.{name} --data DIR{' --quick' if chosen.quick else ''} --seed {chosen.seed}"
    )


def settle(config: TrainConfig, chosen: argparse.Namespace) -> tuple[TrainConfig, torch.device]:
    """Return a config with the seed asked for and the precision that is quickest on the device, and the device."""
    device = torch.device(chosen.device or best_device())
    precision = "bfloat16" if has_bfloat16(device) else "float32"
    return replace(config, seed=chosen.seed, precision=precision), device


def open_clock(chosen: argparse.Namespace) -> CpuClock:
    """Return the clock of a recipe's processor time, going on from earlier sittings where they are taken up."""
    chosen.work.mkdir(parents=True, exist_ok=True)
    return CpuClock(chosen.work / "clock.json", resume=chosen.resume)


def train(
    make_model: Callable[[], nn.Module],
    objective: Objective,
    batches: Callable[[int], Iterable[Any]],
    *,
    steps_per_epoch: int,
    config: TrainConfig,
    device: torch.device,
    chosen: argparse.Namespace,
    clock: CpuClock | None = None,
    stage: str = "",
) -> tuple[nn.Module, Trained]:
    """Train to the end, taking up what an interrupted sitting left; return the model, on the processor, and its cost.

    Args:
        make_model: makes a fresh model; it is seeded with config.seed.
        objective, batches, steps_per_epoch, config: as in Run.
        device: where to train.
        chosen: what the command line asked for.
        clock: of the whole recipe, where it has several stages; by default a new one.
        stage: name of a folder for this stage alone, where the recipe has several.

    Raises:
        ValueError: what an earlier sitting left does not fit.
    """
    torch.manual_seed(config.seed)
    run = Run(make_model().to(device), objective, batches, steps_per_epoch=steps_per_epoch, config=config)
    work = chosen.work / stage
    if not chosen.resume:
        forget_run(work)
    clock = clock or open_clock(chosen)
    load_run(run, work)
    take_steps(run, work, clock)
    model = run.model.to("cpu").eval().requires_grad_(False)
    return model, Trained(run.total_steps, clock.seconds / 60, device.type)
