"""What the recipes of language models of characters share: Tiny Shakespeare, the training, and the card.

The first nine tenths of the text are learned, the last tenth is set aside.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from transformer_core.bundle import Bundle
from transformer_core.evaluation.gpt import measure_text, read_text
from transformer_core.recipes.captions import find_file
from transformer_core.recipes.card import (
    OnDisk,
    list_of,
    training_facts,
    usual_on,
    write_bundle,
    write_card,
    written_on,
)
from transformer_core.recipes.command import command_of, settle, train
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import next_words
from transformer_core.training.tasks.characters import CharacterWindows

DATA_FILES = ("shakespeare.txt.gz", "shakespeare.txt")
NEEDS = f"one of {', '.join(DATA_FILES)}"
BEGINNINGS = ("ROMEO:\n", "First Citizen:\n", "To be", "My lord, ", "O ", "The king ", "KING ", "What ", "I ", "\n")
CHARACTERS_WRITTEN = 160


@dataclass(frozen=True)
class CharacterModel:
    """One model of characters.

    Args:
        recipe: the module, with the arguments that choose this model, for the card.
        make: from the number of characters in the vocabulary to a fresh model.
        width: characters a window.
        windows: an epoch.
        training: how to train.
        introduction: the card's first sentence.
        limits: what its reader should know, besides what holds for all of them.
        beside: other bundles, to be measured on the same part.
    """

    recipe: str
    make: Callable[[int], nn.Module]
    width: int
    windows: int
    training: TrainConfig
    introduction: str
    limits: Sequence[str]
    beside: Sequence[Bundle] = ()


def add_held_out(parser: argparse.ArgumentParser) -> None:
    """Add the argument --held-out."""
    parser.add_argument("--held-out", type=Path, help="write the part that is set aside to this .txt")


def _beside(on_disk: OnDisk, others: Sequence[Bundle], held_out: str) -> str:
    """Return the sizes and losses of this bundle and others as a table; "" where there are no others."""
    if not others:
        return ""
    losses = [on_disk.measured["loss_nats"], *(measure_text(other, held_out)["loss_nats"] for other in others)]
    rows = [
        f"| {bundle.name} | {bundle.n_parameters:,} | {loss:.4f} |"
        for bundle, loss in zip((on_disk.bundle, *others), losses, strict=True)
    ]
    return "\n".join(["", "", "| | parameters | nats a character |", "|---|---|---|", *rows])


def character_card(on_disk: OnDisk[dict[str, Any]], of: CharacterModel, facts: dict[str, str], held_out: str) -> str:
    """Return the card's Markdown.

    Args:
        on_disk: the bundle, and what measure_text returned for it.
        of: the model.
        facts: the rows of its table.
        held_out: the part that was set aside.
    """
    bundle, measured = on_disk.bundle, on_disk.measured
    quality = f"""On the part set aside: {measured["loss_nats"]:.4f} nats a character, {measured["nats_a_byte"]:.4f} a \
byte, perplexity {measured["perplexity"]:.3f}, {measured["accuracy"]:.1%} of the characters foreseen.\
{_beside(on_disk, of.beside, held_out)}

To measure it again, let the recipe write that part with `--held-out FILE.txt`, and then

    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} FILE.txt"""
    samples = "\n\n".join(
        f"```text\n{written_on(bundle, beginning, most=CHARACTERS_WRITTEN, seed=number)}\n```"
        for number, beginning in enumerate(BEGINNINGS)
    )
    limits = [
        "It knows one author's English in verse, and nothing of the world.",
        *of.limits,
        "Words are put together from characters, so some of them do not exist; sense rarely lasts for a line.",
    ]
    return write_card(
        f"{bundle.name}: which character comes next?",
        of.introduction,
        facts,
        {
            "Measured quality": quality,
            "Ten beginnings, written on": f"Drawn at temperature 1 with the seeds 0 to 9, as they came.\n\n{samples}",
            "What it cannot do": list_of(limits),
        },
    )


def train_on_characters(of: CharacterModel, chosen: argparse.Namespace) -> str:
    """Train a model, write its bundle, and return the result in words.

    Raises:
        ValueError: the text cannot be read or is too short, or the files of an interrupted run do not fit.
    """
    file = find_file(chosen.data, *DATA_FILES)
    training, device = settle(of.training, chosen)
    text = CharacterWindows(read_text(file), width=of.width, count=of.windows, training=training, device=device)
    if chosen.held_out is not None:
        chosen.held_out.write_text(text.held_out, encoding="utf-8")
    model, trained = train(
        lambda: of.make(text.tokenizer.vocab_size),
        next_words,
        text.epoch,
        steps_per_epoch=text.steps_per_epoch,
        config=training,
        device=device,
        chosen=chosen,
    )

    def card(on_disk: OnDisk) -> str:
        batch = f"{training.batch_size} windows of {of.width} characters"
        facts = {
            "data": f"Tiny Shakespeare (`{file.name}`): the first {len(text.learned):,} characters trained on, "
            f"the last {len(text.held_out):,} set aside",
            "licence": "the text is in the public domain; so are these weights",
            "recipe": f"`{command_of(of.recipe, chosen)}`",
            **training_facts(on_disk, trained, training, batch=batch),
        }
        return character_card(on_disk, of, facts, text.held_out)

    bundle = Bundle(chosen.out.name, model, text.tokenizer, reads="en")
    usual = usual_on(("Tiny Shakespeare", "line", text.held_out.splitlines()))
    on_disk = write_bundle(bundle, chosen.out, lambda read: measure_text(read, text.held_out), card, [trained], usual)
    measured = on_disk.measured
    return (
        f"{chosen.out}: {measured['loss_nats']:.4f} nats a character on {measured['tokens']:,} set aside, "
        f"{trained.cpu_minutes:.1f} minutes of processor time"
    )
