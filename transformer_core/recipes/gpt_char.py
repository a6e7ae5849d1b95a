"""A GPT of characters: `python -m transformer_core.recipes.gpt_char --data DIR` trains and writes its bundle.

The first nine tenths of one text are learned, the last tenth is set aside.
"""

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.evaluation.gpt import measure_text, read_text
from transformer_core.models import Gpt
from transformer_core.recipes.card import OnDisk, list_of, training_facts, write_bundle, write_card, written_on
from transformer_core.recipes.command import command_of, recipe_parser, run_command, settle, train
from transformer_core.training.config import TrainConfig
from transformer_core.training.spec import DataSpec, RunSpec
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
BEGINNINGS = ("ROMEO:\n", "First Citizen:\n", "To be", "My lord, ", "O ", "The king ", "KING ", "What ", "I ", "\n")
CHARACTERS_WRITTEN = 160


@dataclass(frozen=True)
class Parts:
    """A text, divided into the part that is learned and the part that is held out."""

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


def gpt_char_card(on_disk: OnDisk[dict[str, Any]], facts: dict[str, str]) -> str:
    """Return the card's Markdown.

    Args:
        on_disk: the bundle, and what measure_text returned for it.
        facts: the rows of its table.
    """
    bundle, held_out = on_disk.bundle, on_disk.measured
    quality = f"""On the part set aside: {held_out["loss_nats"]:.4f} nats a character, {held_out["nats_a_byte"]:.4f} a \
byte, perplexity {held_out["perplexity"]:.3f}, {held_out["accuracy"]:.1%} of the characters foreseen.
Before the weights were rounded to float16: {on_disk.full["loss_nats"]:.4f} nats.

To measure it again, let the recipe write that part with `--held-out FILE.txt`, and then

    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} FILE.txt"""
    samples = "\n\n".join(
        f"```text\n{written_on(bundle, beginning, most=CHARACTERS_WRITTEN, seed=number)}\n```"
        for number, beginning in enumerate(BEGINNINGS)
    )
    limits = [
        "It knows one author's English in verse, and nothing of the world.",
        f"It reads {bundle.config.max_len} characters: what was said before that is lost to it.",
        "Words are put together from characters, so some of them do not exist; sense rarely lasts for a line.",
    ]
    return write_card(
        f"{bundle.name}: which character comes next?",
        "A small masked decoder that was trained from scratch on one text, to be looked into.",
        facts,
        {
            "Measured quality": quality,
            "Ten beginnings, written on": f"Drawn at temperature 1 with the seeds 0 to 9, as they came.\n\n{samples}",
            "What it cannot do": list_of(limits),
        },
    )


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line and return its result in words; the bundle is on disk afterwards.

    Raises:
        ValueError: the text cannot be read or is too short, or the files of an interrupted run do not fit.
    """
    spec = QUICK if chosen.quick else FULL
    file = find_text(chosen.data)
    parts = divided(text := read_text(file))
    if chosen.held_out is not None:
        chosen.held_out.write_text(parts.held_out, encoding="utf-8")
    training, device = settle(spec.training, chosen)
    task = character_task(replace(spec, training=training), text, device)
    model, trained = train(
        lambda: Gpt(task.config),
        task.objective,
        task.batches,
        steps_per_epoch=task.steps_per_epoch,
        config=training,
        device=device,
        chosen=chosen,
    )

    def card(on_disk: OnDisk) -> str:
        n_held_out = on_disk.measured["tokens"] + 1
        batch = f"{training.batch_size} windows of {task.config.max_len} characters"
        facts = {
            "data": f"Tiny Shakespeare (`{file.name}`): the first {len(parts.learned):,} characters trained on, "
            f"the last {n_held_out:,} set aside",
            "licence": "the text is in the public domain; so are these weights",
            "recipe": f"`{command_of('gpt_char', chosen)}`",
            **training_facts(on_disk, trained, training, batch=batch),
        }
        return gpt_char_card(on_disk, facts)

    bundle = Bundle(chosen.out.name, model, task.tokenizer)
    measured = write_bundle(bundle, chosen.out, lambda read: measure_text(read, parts.held_out), card).measured
    return (
        f"{chosen.out}: {measured['loss_nats']:.4f} nats a character on {measured['tokens']:,} set aside, "
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
