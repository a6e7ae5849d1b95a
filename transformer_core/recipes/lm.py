"""Recurrent language models of characters: `python -m transformer_core.recipes.lm UNIT --data DIR`.

UNIT is gru, lstm or rnn, the plain recurrent network (Mikolov et al. 2010). Each learns the text of gpt-char in as many
steps, of twice as many windows, and has as many parameters, within 1 %, so that the kinds of model can be compared.

Departure: every window starts with a fresh state, as a GPT's does, where the paper reads one text from end to end.
"""

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path

from transformer_core.checkpoints import load
from transformer_core.models.recurrent import RecurrentLm, RecurrentLmConfig
from transformer_core.models.recurrent.cells import CELLS
from transformer_core.models.recurrent.config import Unit
from transformer_core.recipes.characters import NEEDS, CharacterModel, Other, add_held_out, train_on_characters
from transformer_core.recipes.command import recipe_parser, run_command
from transformer_core.recipes.gpt_char import CHARACTERS_SEEN
from transformer_core.recipes.wording import template
from transformer_core.text import PAD_ID
from transformer_core.training.config import TrainConfig

GPT_CHAR = Path("assets/checkpoints/gpt-char")
WIDTHS = 8  # d_hidden is a multiple of it, for which matrix products in 16 bits are fastest


@dataclass(frozen=True)
class Network:
    """One of the three: its unit, its card's first sentence, and its learning rate."""

    unit: Unit
    introduction: str
    learning_rate: float


NETWORKS = {
    "gru": Network(
        "gru", template("A GRU of one layer that was trained from scratch on one text, to be looked into."), 3e-3
    ),
    "lstm": Network(
        "lstm", template("An LSTM of one layer that was trained from scratch on one text, to be looked into."), 3e-3
    ),
    "rnn": Network(
        "tanh",
        template(
            "A plain recurrent network, without gates, of one layer that was trained from scratch on one text, to be "
            "looked into."
        ),
        1e-3,
    ),
}


@dataclass(frozen=True)
class LmSettings:
    """Sizes, apart from d_hidden, and how long to train."""

    d_model: int
    max_len: int
    dropout: float
    windows: int
    batch_size: int
    epochs: int
    n_parameters: int | None  # None for as many as gpt-char has


FULL = LmSettings(192, 128, 0.2, windows=40_000, batch_size=64, epochs=5, n_parameters=None)
QUICK = LmSettings(16, 32, 0.0, windows=640, batch_size=16, epochs=1, n_parameters=8_000)


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


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line and return its result in words; the bundle is on disk afterwards.

    Raises:
        ValueError: as train_on_characters, or there is no bundle of gpt-char to be compared with.
    """
    settings, network = QUICK if chosen.quick else FULL, NETWORKS[chosen.unit]
    chosen.out, chosen.work = (Path(str(path).replace("UNIT", chosen.unit)) for path in (chosen.out, chosen.work))
    gpt_char = load(chosen.beside, device="cpu")
    n_parameters = settings.n_parameters or gpt_char.n_parameters

    def make(vocab_size: int) -> RecurrentLm:
        d_model = settings.d_model
        config = RecurrentLmConfig(
            d_model=d_model,
            vocab_size=vocab_size,
            d_hidden=d_hidden_of(network.unit, n_parameters=n_parameters, d_model=d_model, vocab_size=vocab_size),
            unit=network.unit,
            max_len=settings.max_len,
            dropout=settings.dropout,
            pad_id=PAD_ID,
        )
        return RecurrentLm(config)

    model = CharacterModel(
        recipe=f"lm {chosen.unit}",
        make=make,
        width=settings.max_len,
        windows=settings.windows,
        training=TrainConfig(
            learning_rate=network.learning_rate,
            warm_up=0.05,
            batch_size=settings.batch_size,
            epochs=settings.epochs,
        ),
        introduction=network.introduction,
        limits=[
            template(
                "It learned from windows of {width} characters: it reads on beyond that, but was never trained to "
                "remember what was said earlier."
            )
        ],
        values={"width": settings.max_len},
        others=[Other(gpt_char, CHARACTERS_SEEN)],
    )
    return train_on_characters(model, chosen)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("lm", makes="a recurrent language model of characters", data=NEEDS, out="lm-UNIT")
    parser.add_argument("unit", choices=NETWORKS, help="of the network; rnn is the plain one")
    parser.add_argument("--beside", type=Path, default=GPT_CHAR, help="bundle of gpt-char, which it is compared with")
    add_held_out(parser)
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
