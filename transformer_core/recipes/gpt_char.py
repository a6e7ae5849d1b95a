"""A GPT of characters: `python -m transformer_core.recipes.gpt_char --data DIR` trains and writes its bundle.

The first nine tenths of one text are learned, the last tenth is set aside. Read next: gpt_char_card.py.
"""

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.evaluation.gpt import measure_text, read_text
from transformer_core.models import Gpt
from transformer_core.recipes.command import command_of, recipe_parser, run_command, settle, train
from transformer_core.recipes.gpt_char_card import Measured, gpt_char_card
from transformer_core.recipes.writing import OnDisk, write_bundle
from transformer_core.training.config import TrainConfig
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
    training, device = settle(spec.training, chosen)
    spec = replace(spec, training=training)
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

    def card(on_disk: OnDisk) -> str:
        measured = Measured(on_disk.measured, on_disk.full["loss_nats"], len(parts.learned), trained, on_disk.megabytes)
        command = command_of("gpt_char", chosen)
        return gpt_char_card(on_disk.bundle, measured, spec=spec, command=command, data_file=file.name)

    bundle = Bundle(chosen.out.name, model, task.tokenizer)
    measured = write_bundle(bundle, chosen.out, lambda read: measure_text(read, parts.held_out), card).measured
    return (
        f"{measured['loss_nats']:.4f} nats a character on {measured['tokens']:,} set aside, "
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
