"""A GPT of characters: `python -m transformer_core.recipes.gpt_char --data DIR` trains and writes its bundle.

The first nine tenths of one text are learned, the last tenth is set aside. Read next: gpt_char_card.py.
"""

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from transformer_core.checkpoints import WEIGHTS, Bundle, load, save
from transformer_core.config import ModelConfig
from transformer_core.device import best_device
from transformer_core.evaluate_words import measure_text, read_text
from transformer_core.models import Gpt
from transformer_core.recipes.command import command_of, recipe_parser, run_command, train
from transformer_core.recipes.gpt_char_card import Measured, gpt_char_card
from transformer_core.training.config import TrainConfig
from transformer_core.training.precision import has_bfloat16
from transformer_core.training.runs.spec import DataSpec, RunSpec
from transformer_core.training.tasks.characters import HELD_OUT_SHARE, character_task

DATA_FILES = ("shakespeare.txt.gz", "shakespeare.txt")
MODEL = ModelConfig(
    vocab_size=16, d_model=192, n_heads=6, d_ff=768, n_layers=4, max_len=128, dropout=0.1, positions="learned"
)
FULL = RunSpec(
    data=DataSpec(source="characters", examples=50_000),
    model=MODEL,
    training=TrainConfig(learning_rate=3e-3, warm_up=0.05, weight_decay=0.1, batch_size=32, epochs=2),
)
QUICK = RunSpec(
    data=DataSpec(source="characters", examples=640),
    model=replace(MODEL, d_model=32, n_heads=2, d_head=16, d_ff=64, n_layers=1, max_len=32, dropout=0.0),
    training=TrainConfig(learning_rate=5e-3, batch_size=16, epochs=1),
)


@dataclass(frozen=True)
class Parts:
    """A text in its two parts."""

    learned: str
    held_out: str


def find_text(folder: Path) -> Path:
    """Return the file of the text in a folder.

    Raises:
        ValueError: there is none.
    """
    found = next((folder / name for name in DATA_FILES if (folder / name).is_file()), None)
    if found is None:
        raise ValueError(f"--data {folder} holds none of {', '.join(DATA_FILES)}")
    return found


def divided(text: str) -> Parts:
    """Return the first nine tenths of a text and its last tenth, as the task divides it."""
    cut = round(len(text) * (1 - HELD_OUT_SHARE))
    return Parts(text[:cut], text[cut:])


def run_recipe(chosen: argparse.Namespace) -> str:
    """Do what the command line asks for; the bundle is on disk afterwards.

    Raises:
        ValueError: the text cannot be read or is too short, or an earlier sitting's files do not fit.
    """
    spec = QUICK if chosen.quick else FULL
    file = find_text(chosen.data)
    parts = divided(text := read_text(file))
    if chosen.held_out is not None:
        chosen.held_out.write_text(parts.held_out, encoding="utf-8")
    device = torch.device(chosen.device or best_device())
    precision = "bfloat16" if has_bfloat16(device) else "float32"
    spec = replace(spec, training=replace(spec.training, seed=chosen.seed, precision=precision))
    task = character_task(spec, text, device)
    model, trained = train(
        lambda: Gpt(task.config),
        task.objective,
        task.batches,
        steps_per_epoch=task.steps_per_epoch,
        config=spec.training,
        device=device,
        chosen=chosen,
    )
    bundle = Bundle(chosen.out.name, model, task.tokenizer)
    full = measure_text(bundle, parts.held_out)
    save(bundle, chosen.out, dtype=torch.float16)
    on_disk = load(chosen.out, device="cpu")
    measured = Measured(
        held_out=measure_text(on_disk, parts.held_out),
        full_loss_nats=full["loss_nats"],
        learned=len(parts.learned),
        trained=trained,
        megabytes=(chosen.out / WEIGHTS).stat().st_size / 1e6,
    )
    command = command_of("gpt_char", chosen)
    card = gpt_char_card(on_disk, measured, spec=spec, command=command, data_file=file.name)
    save(replace(on_disk, card=card), chosen.out, dtype=torch.float16)
    return (
        f"{measured.held_out['loss_nats']:.4f} nats a character on {measured.held_out['tokens']:,} set aside, "
        f"{trained.cpu_minutes:.1f} minutes of processor time"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    needs = f"one of {', '.join(DATA_FILES)}"
    parser = recipe_parser("gpt_char", makes="the GPT of characters", data=needs, out="gpt-char")
    parser.add_argument("--held-out", type=Path, help="write the part that is set aside to this .txt")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
