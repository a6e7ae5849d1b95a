"""A GPT of characters: `python -m transformer_core.recipes.gpt_char --data DIR` trains and writes its bundle."""

import argparse
import sys
from dataclasses import replace

from transformer_core.config import ModelConfig
from transformer_core.models import Gpt
from transformer_core.recipes.characters import (
    NEEDS,
    CharacterModel,
    add_held_out,
    characters_seen,
    train_on_characters,
)
from transformer_core.recipes.command import recipe_parser, run_command
from transformer_core.recipes.wording import template
from transformer_core.text import PAD_ID
from transformer_core.training.config import TrainConfig

MODEL = ModelConfig(
    vocab_size=16, d_model=192, n_heads=6, d_ff=768, n_layers=4, max_len=128, dropout=0.1, positions="learned"
)
QUICK_MODEL = replace(MODEL, d_model=32, n_heads=2, d_head=16, d_ff=64, n_layers=1, max_len=32, dropout=0.0)
WINDOWS, QUICK_WINDOWS = 50_000, 640
TRAINING = TrainConfig(learning_rate=3e-3, warm_up=0.05, weight_decay=0.1, batch_size=32, epochs=2)
CHARACTERS_SEEN = characters_seen(TRAINING, windows=WINDOWS, width=MODEL.max_len)
QUICK_TRAINING = TrainConfig(learning_rate=5e-3, batch_size=16, epochs=1)


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line and return its result in words; the bundle is on disk afterwards.

    Raises:
        ValueError: as train_on_characters.
    """
    config = QUICK_MODEL if chosen.quick else MODEL
    model = CharacterModel(
        recipe="gpt_char",
        make=lambda vocab_size: Gpt(replace(config, vocab_size=vocab_size, pad_id=PAD_ID)),
        width=config.max_len,
        windows=QUICK_WINDOWS if chosen.quick else WINDOWS,
        training=QUICK_TRAINING if chosen.quick else TRAINING,
        introduction=template("A small masked decoder that was trained from scratch on one text, to be looked into."),
        limits=[template("It reads {width} characters: what was said before that is lost to it.")],
        values={"width": config.max_len},
    )
    return train_on_characters(model, chosen)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("gpt_char", makes="the GPT of characters", data=NEEDS, out="gpt-char")
    add_held_out(parser)
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
