"""Seq2seq: `python -m transformer_core.recipes.seq2seq --data DIR` trains a GRU with attention and writes its bundle.

Bahdanau et al. 2015, at a size for one processor; data and tokenizer are those of the Transformer in translation.py.
With --plain it is the network before: without attention (Cho et al. 2014; Sutskever et al. 2014), otherwise the same.
"""

import argparse
import sys
from dataclasses import replace

from transformer_core.models.recurrent import RecurrentConfig, Seq2Seq
from transformer_core.recipes.command import recipe_parser, run_command
from transformer_core.recipes.translation import PAIRS, add_parts, make_translator
from transformer_core.text import PAD_ID
from transformer_core.training.config import TrainConfig

OUT, PLAIN = "seq2seq-en-fr", "seq2seq-en-fr-plain"
MODEL = RecurrentConfig(
    vocab_size=16, d_model=192, d_hidden=192, unit="gru", attention="additive", max_len=96, dropout=0.2
)
TRAINING = TrainConfig(learning_rate=3e-3, warm_up=0.08, weight_decay=0.02, batch_size=96, epochs=7)
QUICK_MODEL = replace(MODEL, d_model=32, d_hidden=32)
QUICK_VOCABULARY = 1_500
EN_FR = PAIRS["en-fr"]
PAIR = replace(EN_FR, kinds=(*EN_FR.kinds, "seq2seq", "attention"), training=TRAINING)
PLAIN_PAIR = replace(PAIR, kinds=(*EN_FR.kinds, "seq2seq", "plain"))


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line and return its result in words; the bundle is on disk afterwards."""
    sizes, settings = QUICK_MODEL if chosen.quick else MODEL, PLAIN_PAIR if chosen.plain else PAIR
    if chosen.plain:
        sizes = replace(sizes, attention=None)
        chosen.out, chosen.work = (
            path.with_name(PLAIN) if path.name == OUT else path for path in (chosen.out, chosen.work)
        )
    if chosen.quick:
        settings = replace(settings, vocab_size=QUICK_VOCABULARY, training=replace(TRAINING, epochs=1))

    def make_model(vocab_size: int) -> Seq2Seq:
        return Seq2Seq(replace(sizes, vocab_size=vocab_size, pad_id=PAD_ID))

    recipe = "seq2seq --plain" if chosen.plain else "seq2seq"
    return make_translator(settings, make_model, chosen, pair="en-fr", recipe=recipe)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("seq2seq", makes="a GRU encoder-decoder", data=PAIR.needs, out=OUT)
    parser.add_argument("--plain", action="store_true", help=f"without attention; its bundle is {PLAIN}")
    add_parts(parser)
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
