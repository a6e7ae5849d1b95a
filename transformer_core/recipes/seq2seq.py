"""Seq2seq: `python -m transformer_core.recipes.seq2seq --data DIR` trains a GRU with attention and writes its bundle.

Bahdanau et al. 2015, at a size for one processor; data and tokenizer are those of the Transformer beside it.
Read next: translation_card.py.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import torch

from transformer_core.checkpoints import WEIGHTS, Bundle, load, save
from transformer_core.device import best_device
from transformer_core.evaluate_translation import measure_translation
from transformer_core.models.recurrent import RecurrentConfig, Seq2Seq
from transformer_core.recipes.card import training_facts
from transformer_core.recipes.command import Trained, command_of, recipe_parser, run_command, train
from transformer_core.recipes.pairs import write_lines
from transformer_core.recipes.translation import PAIRS, QUICK_PAIRS, QUICK_TEST
from transformer_core.recipes.translation_card import translation_card
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import next_target_words
from transformer_core.training.precision import has_bfloat16
from transformer_core.training.tasks.batches import epochs_of
from transformer_core.training.tasks.sequences import PairPart

PAIR = PAIRS["en-fr"]
MODEL = RecurrentConfig(
    vocab_size=16, d_model=192, d_hidden=192, unit="gru", attention="additive", max_len=96, dropout=0.2
)
TRAINING = TrainConfig(learning_rate=3e-3, warm_up=0.08, weight_decay=0.02, batch_size=96, epochs=7)
QUICK_MODEL = replace(MODEL, d_model=32, d_hidden=32)
QUICK_VOCABULARY = 1_500
INTRODUCTION = (
    "An encoder-decoder of recurrent networks with attention, as before the Transformer, trained from scratch on the "
    "same sentences and the same tokens, so that the two can be laid side by side."
)
LIMITS = (
    "It reads and writes one word after another: next to nothing in it can be computed for all positions at once.",
    "One head looks at the source, once a word; it cannot look for two things at a time.",
)


def run_recipe(chosen: argparse.Namespace) -> str:
    """Do what the command line asks for; the bundle is on disk afterwards.

    Raises:
        ValueError: the data cannot be read, or an earlier sitting's files do not fit.
    """
    pairs = PAIR.read(chosen.data, "train")[: QUICK_PAIRS if chosen.quick else None]
    tokenizer = Tokenizer.train(
        PAIR.tokenizer,
        [text for pair in pairs for text in pair],
        vocab_size=QUICK_VOCABULARY if chosen.quick else PAIR.vocab_size,
        lowercase=PAIR.lowercase,
        template="bos_eos",
    )
    device = torch.device(chosen.device or best_device())
    precision = "bfloat16" if has_bfloat16(device) else "float32"
    config = replace(TRAINING, seed=chosen.seed, precision=precision, epochs=1 if chosen.quick else TRAINING.epochs)
    model_config = replace(QUICK_MODEL if chosen.quick else MODEL, vocab_size=tokenizer.vocab_size, pad_id=PAD_ID)
    part = PairPart(pairs, tokenizer, device)
    batches, steps_per_epoch = epochs_of(part.lengths, config.batch_size, config.seed, part.batch)
    model, trained = train(
        lambda: Seq2Seq(model_config),
        next_target_words,
        batches,
        steps_per_epoch=steps_per_epoch,
        config=config,
        device=device,
        chosen=chosen,
    )
    return write_bundle(Bundle(chosen.out.name, model, tokenizer), trained, config, n_learned=len(pairs), chosen=chosen)


def write_bundle(
    bundle: Bundle, trained: Trained, config: TrainConfig, *, n_learned: int, chosen: argparse.Namespace
) -> str:
    """Write the bundle in float16 with a card of what was measured on it as it lies on disk; return that in a line."""
    test = PAIR.read(chosen.data, "test")[: QUICK_TEST if chosen.quick else None]
    if chosen.held_out is not None:
        for side, name in enumerate(("en", "fr")):
            write_lines(chosen.held_out.with_suffix(f".{name}"), [pair[side] for pair in test])
    full = measure_translation(bundle, test)
    save(bundle, chosen.out, dtype=torch.float16)
    on_disk = load(chosen.out, device="cpu")
    measured = measure_translation(on_disk, test)
    megabytes = (chosen.out / WEIGHTS).stat().st_size / 1e6
    facts = {
        "data": f"{PAIR.data}; {n_learned:,} pairs trained on",
        "licence": PAIR.licence,
        "recipe": f"`{command_of('seq2seq', chosen)}`",
        **training_facts(on_disk, trained, config, batch=f"{config.batch_size} pairs", megabytes=megabytes),
    }
    card = translation_card(
        on_disk,
        facts,
        measured,
        pair="en-fr",
        full_bleu=full["bleu"],
        test=PAIR.test,
        introduction=INTRODUCTION,
        limits=LIMITS,
    )
    save(replace(on_disk, card=card), chosen.out, dtype=torch.float16)
    return (
        f"BLEU {measured['bleu']:.2f}, chrF {measured['chrf']:.2f}, {trained.cpu_minutes:.1f} minutes of processor time"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser(
        "seq2seq", makes="a GRU encoder-decoder with attention", data=PAIR.needs, out="seq2seq-en-fr"
    )
    parser.add_argument("--held-out", type=Path, help="write the test sentences beside each other: FILE.en, FILE.fr")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
