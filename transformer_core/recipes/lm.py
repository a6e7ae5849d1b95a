"""Language models of characters: `python -m transformer_core.recipes.lm MODEL --data DIR`.

MODEL is gpt, whose bundle is gpt-char; or gru, lstm or rnn, the plain recurrent network (Mikolov et al. 2010). Each of
these learns the same text in as many steps, of twice as many windows, and has as many parameters, within 1 %, so that
the kinds of model can be compared. The first nine tenths of Tiny Shakespeare are learned, the last is set aside.

Departure: every window starts with a fresh state, as a GPT's does, where the paper reads one text from end to end.
"""

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.gpt import measure_text, read_text
from transformer_core.models import Gpt
from transformer_core.models.recurrent import RecurrentLm, RecurrentLmConfig
from transformer_core.models.recurrent.cells import CELLS
from transformer_core.models.recurrent.config import Unit
from transformer_core.recipes.captions import find_file
from transformer_core.recipes.card import samples_of, typical_on, write_bundle
from transformer_core.recipes.command import command_of, recipe_parser, run_command, settle, train
from transformer_core.recipes.texts import Say
from transformer_core.text import PAD_ID
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import next_words
from transformer_core.training.tasks.characters import CharacterWindows

DATA_FILES = ("shakespeare.txt.gz", "shakespeare.txt")
BEGINNINGS = ("ROMEO:\n", "First Citizen:\n", "To be", "My lord, ", "O ", "The king ", "KING ", "What ", "I ", "\n")
CHARACTERS_WRITTEN = 160
GPT_CHAR = Path("assets/checkpoints/gpt-char")
WIDTHS = 8  # d_hidden is a multiple of it, for which matrix products in 16 bits are fastest


@dataclass(frozen=True)
class CharacterModel:
    """One model of characters.

    Args:
        kinds: of its card, as in write_card.
        make: from the number of characters in the vocabulary to a fresh model.
        width: characters a window.
        windows: an epoch.
        training: how to train.
    """

    kinds: tuple[str, ...]
    make: Callable[[int], nn.Module]
    width: int
    windows: int
    training: TrainConfig

    @property
    def seen(self) -> int:
        """How many characters the training reads in all: steps times batch times window."""
        batch_size = self.training.batch_size
        return self.training.epochs * (self.windows // batch_size) * batch_size * self.width


def gpt_of_characters(*, quick: bool) -> CharacterModel:
    """Return the GPT."""
    config = ModelConfig(
        vocab_size=16, d_model=192, n_heads=6, d_ff=768, n_layers=4, max_len=128, dropout=0.1, positions="learned"
    )
    windows, training = 50_000, TrainConfig(learning_rate=3e-3, warm_up=0.05, weight_decay=0.1, batch_size=32, epochs=2)
    if quick:
        config = replace(config, d_model=32, n_heads=2, d_head=16, d_ff=64, n_layers=1, max_len=32, dropout=0.0)
        windows, training = 640, TrainConfig(learning_rate=5e-3, batch_size=16, epochs=1)

    def make(vocab_size: int) -> Gpt:
        return Gpt(replace(config, vocab_size=vocab_size, pad_id=PAD_ID))

    return CharacterModel(("characters", "gpt-char"), make, config.max_len, windows, training)


@dataclass(frozen=True)
class Network:
    """A recurrent network: its unit and its learning rate."""

    unit: Unit
    learning_rate: float


NETWORKS = {"gru": Network("gru", 3e-3), "lstm": Network("lstm", 3e-3), "rnn": Network("tanh", 1e-3)}
QUICK_PARAMETERS = 8_000


def d_hidden_of(unit: Unit, *, n_parameters: int, d_model: int, vocab_size: int) -> int:
    """Return the width with which a RecurrentLm comes nearest to a number of parameters, among multiples of 8.

    With p vectors a step (1 of the plain network, 3 of a GRU, 4 of an LSTM) it has

        p d_hidden^2 + (p (d_model + 2) + vocab_size) d_hidden + (d_model + 1) vocab_size

    parameters; d_hidden is the root of this minus n_parameters.

    Raises:
        ValueError: there are too few for any width.
    """
    parts = CELLS[unit](1, 1).parts
    linear, constant = parts * (d_model + 2) + vocab_size, (d_model + 1) * vocab_size - n_parameters
    if constant >= 0:
        least = constant + n_parameters + 1
        raise ValueError(f"n_parameters={n_parameters:,} must be at least {least:,}, more than the embedding has")
    root = (math.sqrt(linear**2 - 4 * parts * constant) - linear) / (2 * parts)
    return max(1, round(root / WIDTHS)) * WIDTHS


def recurrent(name: str, *, n_parameters: int, quick: bool) -> CharacterModel:
    """Return one of NETWORKS with about as many parameters."""
    unit, rate = NETWORKS[name].unit, NETWORKS[name].learning_rate
    d_model, max_len, dropout, windows, batch_size, epochs = 192, 128, 0.2, 40_000, 64, 5
    if quick:
        d_model, max_len, dropout, windows, batch_size, epochs = 16, 32, 0.0, 640, 16, 1
        n_parameters = QUICK_PARAMETERS

    def make(vocab_size: int) -> RecurrentLm:
        config = RecurrentLmConfig(
            d_model=d_model,
            vocab_size=vocab_size,
            d_hidden=d_hidden_of(unit, n_parameters=n_parameters, d_model=d_model, vocab_size=vocab_size),
            unit=unit,
            max_len=max_len,
            dropout=dropout,
            pad_id=PAD_ID,
        )
        return RecurrentLm(config)

    training = TrainConfig(learning_rate=rate, warm_up=0.05, batch_size=batch_size, epochs=epochs)
    return CharacterModel(("characters", "recurrent", name), make, max_len, windows, training)


def train_on_characters(of: CharacterModel, beside: Bundle | None, chosen: argparse.Namespace) -> str:
    """Train a model, write its bundle, and return the result in words.

    Args:
        beside: gpt-char, where the model is to be compared with it.

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

    def measure(bundle: Bundle) -> dict[str, Any]:
        return {
            "file": file.name,
            "learned": len(text.learned),
            "aside": len(text.held_out),
            "width": of.width,
            "own": measure_text(bundle, text.held_out),
            "other": measure_text(beside, text.held_out) if beside else None,
            "written": samples_of(bundle, BEGINNINGS, most=CHARACTERS_WRITTEN),
        }

    def in_words(found: dict[str, Any], say: Say) -> dict[str, Any]:
        pair = {"bundle": bundle, "seen": of.seen, "beside": beside, "beside_seen": gpt_of_characters(quick=False).seen}
        return {"compared": f"\n\n{say('characters.compared', **pair, **found)}" if beside else ""}

    bundle = Bundle(chosen.out.name, model, text.tokenizer, reads="en")
    own = write_bundle(
        bundle,
        chosen.out,
        of.kinds,
        [(trained, training)],
        measure,
        typical_on(("Tiny Shakespeare", "line", text.held_out.splitlines())),
        recipe=command_of(f"lm {chosen.model}", chosen),
        in_words=in_words,
    )["own"]
    return (
        f"{chosen.out}: {own['loss_nats']:.4f} nats a character on {own['tokens']:,} set aside, "
        f"{trained.cpu_minutes:.1f} minutes of processor time"
    )


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line and return its result in words; the bundle is on disk afterwards.

    Raises:
        ValueError: as train_on_characters, or there is no bundle of gpt-char to be compared with.
    """
    name = "gpt-char" if chosen.model == "gpt" else f"lm-{chosen.model}"
    chosen.out, chosen.work = (Path(str(path).replace("lm-MODEL", name)) for path in (chosen.out, chosen.work))
    if chosen.model == "gpt":
        return train_on_characters(gpt_of_characters(quick=chosen.quick), None, chosen)
    gpt_char = load(chosen.beside, device="cpu")
    model = recurrent(chosen.model, n_parameters=gpt_char.n_parameters, quick=chosen.quick)
    return train_on_characters(model, gpt_char, chosen)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    needs = f"one of {', '.join(DATA_FILES)}"
    parser = recipe_parser("lm", makes="a language model of characters", data=needs, out="lm-MODEL")
    parser.add_argument("model", choices=("gpt", *NETWORKS), help="gpt, or a recurrent network; rnn is the plain one")
    parser.add_argument("--beside", type=Path, default=GPT_CHAR, help="bundle of gpt-char, to compare the others with")
    parser.add_argument("--held-out", type=Path, help="write the part that is set aside to this .txt")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
