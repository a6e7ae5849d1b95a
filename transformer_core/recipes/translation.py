"""Translation: `python -m transformer_core.recipes.translation PAIR --data DIR` trains and writes its bundle.

Vaswani et al. 2017, sections 3 and 5, at a size for one processor.
"""

import argparse
import functools
import gzip
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.evaluation.translation import Pairs, measure_translation, read_lines, read_parallel
from transformer_core.generation import translate
from transformer_core.measured import Trained
from transformer_core.models import Translation
from transformer_core.recipes.captions import find_file
from transformer_core.recipes.card import list_of, typical_on, write_bundle
from transformer_core.recipes.command import command_of, recipe_parser, run_command, settle, train
from transformer_core.recipes.texts import Say, card_sentences
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import epochs_of
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import next_target_words
from transformer_core.training.tasks.sequences import PairPart


@dataclass(frozen=True)
class PairSettings:
    """Data, vocabulary, model and training of one pair of languages.

    Args:
        read: from the data folder and a part, "train", "choice" or "test", to its pairs.
        needs: the files that the folder must contain, in words.
        kinds: of its card, as in write_card.
        tokenizer: kind of the vocabulary, which both languages share.
        vocab_size: its largest size.
        lowercase: whether it lowers the case.
        model: its sizes; that of the vocabulary comes from the tokenizer.
        training: how to train.
        sentences: that the card shows with their translations.
        usual: name and unit of the test part, as in measured.TypicalRange.
        has_choice: whether there is a part to choose settings by.
    """

    read: Callable[[Path, str], Pairs]
    needs: str
    kinds: tuple[str, ...]
    tokenizer: str
    vocab_size: int
    lowercase: bool
    model: ModelConfig
    training: TrainConfig
    sentences: tuple[str, ...]
    usual: tuple[str, str]
    has_choice: bool = False


def read_objects(path: Path, source: str, target: str) -> Pairs:
    """Return the pairs of a file of JSON lines: its two named values, line by line.

    Raises:
        ValueError: a line is no JSON object with both as texts.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            row = json.loads(line)
            pairs.append((row[source], row[target]))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path.name}, line {number}: an object with {source} and {target} is needed") from error
        if not all(isinstance(text, str) for text in pairs[-1]):
            raise ValueError(f"{path.name}, line {number}: {source} and {target} must be texts")
    return pairs


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines of text, gzipped where the name ends in .gz."""
    text = "".join(f"{line}\n" for line in lines)
    with gzip.open(path, "wt", encoding="utf-8") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as file:
        file.write(text)


def simplifier() -> Callable[[str], str]:
    """Return the function that turns traditional Chinese characters into simplified ones.

    Raises:
        ValueError: the package opencc, which only this recipe needs, is not installed.
    """
    try:
        import opencc
    except ImportError:
        raise ValueError("opencc, which turns Chinese into simplified characters, is not installed") from None
    return opencc.OpenCC("t2s").convert


def captions(folder: Path, part: str, *, language: str) -> Pairs:
    """Return the English captions of Multi30k with those of a language; "test" is its Flickr test set of 2016."""
    name = {"train": "train", "choice": "val", "test": "test_2016_flickr"}[part]
    return read_parallel(*(find_file(folder, f"{name}.{side}.gz") for side in ("en", language)))


def everyday(folder: Path, part: str) -> Pairs:
    """Return the English and Chinese sentences of Tatoeba, the Chinese in simplified characters."""
    simplified = simplifier()
    name = {"train": "train", "test": "val"}[part]
    pairs = read_objects(find_file(folder, f"en-zh.{name}.jsonl.gz"), "en", "zh")
    return [(source, simplified(target)) for source, target in pairs]


def everyday_turned(folder: Path, part: str) -> Pairs:
    """Return the same from Chinese to English; "choice" is the end of its training file, and not in "train"."""
    pairs = [(chinese, english) for english, chinese in everyday(folder, "test" if part == "test" else "train")]
    return {"train": pairs[:-PAIRS_FOR_CHOICE], "choice": pairs[-PAIRS_FOR_CHOICE:], "test": pairs}[part]


PAIRS_FOR_CHOICE = 600
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
EN_FR = PairSettings(
    read=functools.partial(captions, language="fr"),
    needs="train and test_2016_flickr of Multi30k (.en.gz and .fr.gz)",
    kinds=("translation", "captions", "en-fr"),
    tokenizer="bpe",
    vocab_size=6_000,
    lowercase=False,
    model=MODEL,
    training=TRAINING,
    sentences=card_sentences("captions.en.txt"),
    usual=("Multi30k test_2016_flickr", "caption"),
)
EN_DE = replace(
    EN_FR,
    read=functools.partial(captions, language="de"),
    needs="train and test_2016_flickr of Multi30k (.en.gz and .de.gz)",
    kinds=("translation", "captions", "en-de"),
    has_choice=True,
    model=replace(MODEL, norm_order="post", activation="relu", dropout=0.3),
    training=TrainConfig(
        optimizer="adam",
        schedule="noam",
        learning_rate=1.5e-3,
        warm_up=0.12,
        weight_decay=0.0,
        label_smoothing=0.1,
        batch_size=96,
        epochs=32,
    ),
)
EN_ZH = PairSettings(
    read=everyday,
    needs="en-zh.train.jsonl.gz and en-zh.val.jsonl.gz of Tatoeba",
    kinds=("translation", "everyday", "en-zh"),
    tokenizer="wordpiece",
    vocab_size=7_000,
    lowercase=True,
    model=replace(MODEL, dropout=0.25),
    training=replace(TRAINING, learning_rate=2.5e-3, batch_size=160, epochs=28),
    sentences=card_sentences("everyday.en.txt"),
    usual=("Tatoeba", "sentence"),
)
ZH_EN = replace(
    EN_ZH,
    read=everyday_turned,
    kinds=("translation", "everyday", "zh-en"),
    has_choice=True,
    vocab_size=8_000,
    lowercase=False,
    model=replace(MODEL, dropout=0.3),
    training=replace(TRAINING, learning_rate=2.5e-3, label_smoothing=0.1, batch_size=128, epochs=36),
    sentences=card_sentences("everyday.zh.txt"),
)
PAIRS = {"en-fr": EN_FR, "en-de": EN_DE, "en-zh": EN_ZH, "zh-en": ZH_EN}
QUICK_PAIRS, QUICK_TEST = 320, 8


def quick(settings: PairSettings) -> PairSettings:
    """Return settings of a tiny model that trains in seconds."""
    model = replace(settings.model, d_model=32, n_heads=2, d_head=16, d_ff=64, n_layers=1)
    return replace(settings, vocab_size=1_500, model=model, training=replace(settings.training, epochs=1))


def _learned(
    settings: PairSettings, make_model: Callable[[int], nn.Module], pairs: Pairs, chosen: argparse.Namespace
) -> tuple[Tokenizer, nn.Module, Trained, TrainConfig]:
    """Return a tokenizer and a model that learned some pairs, what the training took, and how it was done."""
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
    return tokenizer, model, trained, config


def make_translator(
    settings: PairSettings,
    make_model: Callable[[int], nn.Module],
    chosen: argparse.Namespace,
    *,
    pair: str,
    recipe: str,
) -> str:
    """Train a model of any kind to translate, write its bundle, and return its measures in one line.

    Args:
        settings: of the pair of languages.
        make_model: from the size of the vocabulary to a fresh model.
        chosen: arguments of the command line.
        pair: of languages.
        recipe: its module and its own arguments, as on the command line.

    Raises:
        ValueError: the data cannot be read, or the files of an interrupted run do not fit.
    """
    if chosen.choice and not settings.has_choice:
        raise ValueError(f"--choice: no part is set aside to choose settings of {pair} by")
    pairs = settings.read(chosen.data, "train")[: QUICK_PAIRS if chosen.quick else None]
    test = settings.read(chosen.data, "choice" if chosen.choice else "test")[: QUICK_TEST if chosen.quick else None]
    if chosen.held_out is not None:
        for side, name in enumerate(pair.split("-")):
            write_lines(chosen.held_out.with_suffix(f".{name}"), [texts[side] for texts in test])
    tokenizer, model, trained, config = _learned(settings, make_model, pairs, chosen)

    def measure(bundle: Bundle) -> dict[str, Any]:
        written = zip(settings.sentences, translate(bundle, settings.sentences), strict=True)
        return {
            **dict(zip(("source", "target"), pair.split("-"), strict=True)),
            "pairs": len(pairs),
            "found": measure_translation(bundle, test),
            "count": len(settings.sentences),
            "written": list_of(f"{text} → {out}" for text, out in written),
        }

    def in_words(found: dict[str, Any], say: Say) -> dict[str, Any]:
        def part(name: str) -> str:
            return say.all_of(settings.kinds, name, for_choice=PAIRS_FOR_CHOICE)[-1]

        chosen_by = f"\n{part('chosen_by')}" if settings.has_choice and not chosen.choice else ""
        return {"test": part("choice" if chosen.choice else "test"), "chosen_by": chosen_by}

    sources = [[source for source, _ in part] for part in (test, pairs)]
    found = write_bundle(
        Bundle(chosen.out.name, model, tokenizer, reads=pair[:2]),
        chosen.out,
        settings.kinds,
        [(trained, config)],
        measure,
        typical_on((*settings.usual, sources[0]), learned=sources[1]),
        recipe=command_of(recipe, chosen),
        in_words=in_words,
    )["found"]
    cost = f"{trained.cpu_minutes:.1f} minutes of processor time"
    return f"{chosen.out}: BLEU {found['bleu']:.2f}, chrF {found['chrf']:.2f}, {cost}"


def add_parts(parser: argparse.ArgumentParser) -> None:
    """Add the arguments on what is measured: the part that is written, and whether it is the one for choices."""
    parser.add_argument("--held-out", type=Path, help="write the test sentences beside each other: FILE.en, FILE.fr")
    parser.add_argument("--choice", action="store_true", help="measure the part by which settings are chosen instead")


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line and return its result in words; the bundle is on disk afterwards."""
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
    add_parts(parser)
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
