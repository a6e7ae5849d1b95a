"""What the recipes of language models of characters share: Tiny Shakespeare, the training, and the card.

The first nine tenths of the text are learned, the last tenth is set aside.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from transformer_core.bundle import Bundle
from transformer_core.evaluation.gpt import measure_text, read_text
from transformer_core.recipes.captions import find_file
from transformer_core.recipes.card import (
    OnDisk,
    commands,
    list_of,
    training_facts,
    usual_on,
    write_bundle,
    write_card,
    written_on,
)
from transformer_core.recipes.command import command_of, settle, train
from transformer_core.recipes.wording import Say, template
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import next_words
from transformer_core.training.tasks.characters import CharacterWindows

DATA_FILES = ("shakespeare.txt.gz", "shakespeare.txt")
NEEDS = f"one of {', '.join(DATA_FILES)}"
BEGINNINGS = ("ROMEO:\n", "First Citizen:\n", "To be", "My lord, ", "O ", "The king ", "KING ", "What ", "I ", "\n")
CHARACTERS_WRITTEN = 160


@dataclass(frozen=True, eq=False)
class Other:
    """Another bundle, to be measured on the same part; `seen` is how many characters it learned from in all."""

    bundle: Bundle
    seen: int


@dataclass(frozen=True)
class CharacterModel:
    """One model of characters; its sentences are marked for say.

    Args:
        recipe: the module, with the arguments that choose this model, for the card.
        make: from the number of characters in the vocabulary to a fresh model.
        width: characters a window.
        windows: an epoch.
        training: how to train.
        introduction: the card's first sentence.
        limits: what its reader should know, besides what holds for all of them.
        values: of both, for say.
        others: to be compared with.
    """

    recipe: str
    make: Callable[[int], nn.Module]
    width: int
    windows: int
    training: TrainConfig
    introduction: str
    limits: Sequence[str]
    values: Mapping[str, object] = field(default_factory=dict)
    others: Sequence[Other] = ()


@dataclass(frozen=True)
class CharacterMeasures:
    """What measure_text found of a model, the losses of the others, and what the model writes."""

    own: dict[str, Any]
    others: tuple[float, ...]
    written: tuple[str, ...]


def characters_seen(training: TrainConfig, *, windows: int, width: int) -> int:
    """Return how many characters a training reads in all: steps times batch times window."""
    return training.epochs * (windows // training.batch_size) * training.batch_size * width


def add_held_out(parser: argparse.ArgumentParser) -> None:
    """Add the argument --held-out."""
    parser.add_argument("--held-out", type=Path, help="write the part that is set aside to this .txt")


def _table(on_disk: OnDisk[CharacterMeasures], of: CharacterModel, say: Say) -> str:
    """Return sizes, characters read and losses of this bundle and others as a table; "" where there are no others."""
    if not of.others:
        return ""
    own = Other(on_disk.bundle, characters_seen(of.training, windows=of.windows, width=of.width))
    losses = (on_disk.measured.own["loss_nats"], *on_disk.measured.others)
    rows = [
        f"| {other.bundle.name} | {other.bundle.n_parameters:,} | {other.seen:,} | {loss:.4f} |"
        for other, loss in zip((own, *of.others), losses, strict=True)
    ]
    head = say("| | parameters | characters learned from in all | nats a character |")
    return "\n".join(["", "", head, "|---|---|---|---|", *rows])


def character_card(on_disk: OnDisk[CharacterMeasures], of: CharacterModel, facts: dict[str, str], say: Say) -> str:
    """Return the card's Markdown.

    Args:
        on_disk: the bundle and its measures.
        of: the model.
        facts: the rows of its table.
        say: the sentences of a language.
    """
    quality = say(
        "On the part set aside: {loss_nats:.4f} nats a character, {nats_a_byte:.4f} a byte, perplexity "
        "{perplexity:.3f}, {accuracy:.1%} of the characters foreseen.",
        **on_disk.measured.own,
    )
    how = say("To measure it again, let the recipe write that part with `--held-out FILE.txt`, and then")
    drawn = say("Drawn at temperature 1 with the seeds 0 to 9, as they came.")
    limits = [
        say("It knows one author's English in verse, and nothing of the world."),
        *(say(limit, **of.values) for limit in of.limits),
        say("Words are put together from characters, so some of them do not exist; sense rarely lasts for a line."),
    ]
    return write_card(
        on_disk.bundle,
        say("which character comes next?"),
        say(of.introduction, **of.values),
        facts,
        {
            say("Measured quality"): f"{quality}{_table(on_disk, of, say)}\n\n"
            + commands(on_disk.bundle, how, "FILE.txt"),
            say("Ten beginnings, written on"): "\n\n".join((drawn, *on_disk.measured.written)),
            say("What it cannot do"): list_of(limits),
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

    def measure(bundle: Bundle) -> CharacterMeasures:
        written = (
            written_on(bundle, beginning, most=CHARACTERS_WRITTEN, seed=seed)
            for seed, beginning in enumerate(BEGINNINGS)
        )
        return CharacterMeasures(
            measure_text(bundle, text.held_out),
            tuple(measure_text(other.bundle, text.held_out)["loss_nats"] for other in of.others),
            tuple(f"```text\n{sample}\n```" for sample in written),
        )

    def card(on_disk: OnDisk[CharacterMeasures], say: Say) -> str:
        batch = say("{size} windows of {width} characters", size=training.batch_size, width=of.width)
        facts = {
            say("data"): say(
                "Tiny Shakespeare (`{file}`): the first {learned:,} characters trained on, the last {aside:,} set "
                "aside",
                file=file.name,
                learned=len(text.learned),
                aside=len(text.held_out),
            ),
            say("licence"): say("the text is in the public domain; so are these weights"),
            say("recipe"): f"`{command_of(of.recipe, chosen)}`",
            **training_facts(on_disk, trained, training, say, batch=batch),
        }
        return character_card(on_disk, of, facts, say)

    bundle = Bundle(chosen.out.name, model, text.tokenizer, reads="en")
    usual = usual_on((template("Tiny Shakespeare"), "line", text.held_out.splitlines()))
    measured = write_bundle(bundle, chosen.out, measure, card, [trained], usual).measured.own
    return (
        f"{chosen.out}: {measured['loss_nats']:.4f} nats a character on {measured['tokens']:,} set aside, "
        f"{trained.cpu_minutes:.1f} minutes of processor time"
    )
