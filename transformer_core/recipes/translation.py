"""Translation: `python -m transformer_core.recipes.translation PAIR --data DIR` trains and writes its bundle.

Vaswani et al. 2017, sections 3 and 5, at a size for one processor. Read next: translation_card.py.
"""

import argparse
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.evaluation.translation import Pairs, measure_translation, read_parallel
from transformer_core.models import Translation
from transformer_core.recipes.card import training_facts
from transformer_core.recipes.command import command_of, recipe_parser, run_command, settle, train
from transformer_core.recipes.pairs import read_objects, simplifier, write_lines
from transformer_core.recipes.translation_card import translation_card
from transformer_core.recipes.writing import OnDisk, write_bundle
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import next_target_words
from transformer_core.training.tasks.batches import epochs_of
from transformer_core.training.tasks.sequences import PairPart


@dataclass(frozen=True)
class PairSettings:
    """What the recipe fixes for one pair of languages.

    Args:
        read: from the data folder and a part, "train" or "test", to its pairs.
        needs: the files that the folder must hold, in words.
        data, licence, test: for the card.
        tokenizer: kind of the one vocabulary that serves both sides.
        vocab_size: its largest size.
        lowercase: whether it lowers the case.
        model: sizes; the vocabulary's comes from the tokenizer.
        training: how to train.
    """

    read: Callable[[Path, str], Pairs]
    needs: str
    data: str
    licence: str
    test: str
    tokenizer: str
    vocab_size: int
    lowercase: bool
    model: ModelConfig
    training: TrainConfig


def captions(folder: Path, part: str) -> Pairs:
    """Return the English and French captions of Multi30k; "test" is its Flickr test set of 2016."""
    name = {"train": "train", "test": "test_2016_flickr"}[part]
    return read_parallel(folder / f"{name}.en.gz", folder / f"{name}.fr.gz")


def everyday(folder: Path, part: str) -> Pairs:
    """Return the English and Chinese sentences of Tatoeba, the Chinese in simplified characters."""
    simplified = simplifier()
    name = {"train": "train", "test": "val"}[part]
    pairs = read_objects(folder / f"en-zh.{name}.jsonl.gz", "en", "zh")
    return [(source, simplified(target)) for source, target in pairs]


MODEL = ModelConfig(
    vocab_size=16,
    d_model=192,
    n_heads=6,
    d_ff=768,
    n_layers=3,
    max_len=96,
    dropout=0.2,
    positions="sinusoidal",
    scale_embeddings=True,
    share_embeddings=True,
)
TRAINING = TrainConfig(learning_rate=2e-3, warm_up=0.08, weight_decay=0.05, batch_size=96, epochs=16)
PAIRS = {
    "en-fr": PairSettings(
        read=captions,
        needs="train and test_2016_flickr of Multi30k (.en.gz and .fr.gz)",
        data="Multi30k, captions of photographs in English and French (Elliott et al. 2016 and 2017)",
        licence="the captions are CC BY-NC-SA 4.0; weights for research and teaching",
        test="Multi30k's test_2016_flickr",
        tokenizer="bpe",
        vocab_size=6_000,
        lowercase=False,
        model=MODEL,
        training=TRAINING,
    ),
    "en-zh": PairSettings(
        read=everyday,
        needs="en-zh.train.jsonl.gz and en-zh.val.jsonl.gz of Tatoeba",
        data="Tatoeba, everyday sentences in English and Chinese, made simplified with opencc",
        licence="the sentences are CC BY 2.0 FR; so are these weights",
        test="the val part of the same sample of Tatoeba",
        tokenizer="wordpiece",
        vocab_size=7_000,
        lowercase=True,
        model=replace(MODEL, dropout=0.25),
        training=replace(TRAINING, learning_rate=2.5e-3, batch_size=160, epochs=28),
    ),
}
QUICK_PAIRS, QUICK_TEST = 320, 8
HELD_OUT_HELP = "write the test sentences beside each other: FILE.en, FILE.fr"


def quick(settings: PairSettings) -> PairSettings:
    """Return settings of a tiny model that is trained in seconds."""
    model = replace(settings.model, d_model=32, n_heads=2, d_head=16, d_ff=64, n_layers=1)
    return replace(settings, vocab_size=1_500, model=model, training=replace(settings.training, epochs=1))


def make_translator(
    settings: PairSettings,
    make_model: Callable[[int], nn.Module],
    chosen: argparse.Namespace,
    *,
    pair: str,
    recipe: str,
    **card_words: Any,
) -> str:
    """Train a model of whatever kind to translate, and write its bundle; return what was measured, in a line.

    Args:
        settings: of the pair of languages.
        make_model: from the size of the vocabulary to a fresh model.
        chosen: what the command line asked for.
        pair: of languages.
        recipe: its module and the pair, as on the command line.
        card_words: introduction and limits, as in translation_card.

    Raises:
        ValueError: the data cannot be read, or an earlier sitting's files do not fit.
    """
    pairs = settings.read(chosen.data, "train")[: QUICK_PAIRS if chosen.quick else None]
    test = settings.read(chosen.data, "test")[: QUICK_TEST if chosen.quick else None]
    if chosen.held_out is not None:
        for side, name in enumerate(pair.split("-")):
            write_lines(chosen.held_out.with_suffix(f".{name}"), [texts[side] for texts in test])
    tokenizer = Tokenizer.train(
        settings.tokenizer,
        [text for both in pairs for text in both],
        vocab_size=settings.vocab_size,
        lowercase=settings.lowercase,
        template="bos_eos",
    )
    config, device = settle(settings.training, chosen)
    part = PairPart(pairs, tokenizer, device)
    batches, steps_per_epoch = epochs_of(part.lengths, config.batch_size, config.seed, part.batch)
    model, trained = train(
        functools.partial(make_model, tokenizer.vocab_size),
        functools.partial(next_target_words, label_smoothing=config.label_smoothing),
        batches,
        steps_per_epoch=steps_per_epoch,
        config=config,
        device=device,
        chosen=chosen,
    )

    def card(on_disk: OnDisk) -> str:
        facts = {
            "data": f"{settings.data}; {len(pairs):,} pairs trained on",
            "licence": settings.licence,
            "recipe": f"`{command_of(recipe, chosen)}`",
            **training_facts(
                on_disk.bundle, trained, config, batch=f"{config.batch_size} pairs", megabytes=on_disk.megabytes
            ),
        }
        words = {"pair": pair, "full_bleu": on_disk.full["bleu"], "test": settings.test} | card_words
        return translation_card(on_disk.bundle, facts, on_disk.measured, **words)

    bundle = Bundle(chosen.out.name, model, tokenizer)
    measured = write_bundle(bundle, chosen.out, lambda read: measure_translation(read, test), card).measured
    cost = f"{trained.cpu_minutes:.1f} minutes of processor time"
    return f"BLEU {measured['bleu']:.2f}, chrF {measured['chrf']:.2f}, {cost}"


def run_recipe(chosen: argparse.Namespace) -> str:
    """Do what the command line asks for; the bundle is on disk afterwards."""
    chosen.out, chosen.work = (Path(str(path).replace("PAIR", chosen.pair)) for path in (chosen.out, chosen.work))
    settings = quick(PAIRS[chosen.pair]) if chosen.quick else PAIRS[chosen.pair]

    def make_model(vocab_size: int) -> Translation:
        return Translation(replace(settings.model, vocab_size=vocab_size, target_vocab_size=None, pad_id=PAD_ID))

    return make_translator(settings, make_model, chosen, pair=chosen.pair, recipe=f"translation {chosen.pair}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    needs = "; ".join(f"for {pair} {settings.needs}" for pair, settings in PAIRS.items())
    parser = recipe_parser("translation", makes="a translation model", data=needs, out="translation-PAIR")
    parser.add_argument("pair", choices=PAIRS, help="languages")
    parser.add_argument("--held-out", type=Path, help=HELD_OUT_HELP)
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
