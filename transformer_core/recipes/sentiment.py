"""The sentiment classifier: `python -m transformer_core.recipes.sentiment --data DIR` trains and writes its bundle.

It learns from film reviews (Maas et al. 2011), phrases of film critics (Socher et al. 2013), sentences of product
reviews (Hu and Liu 2004) and sentences with a negation, a contrast or irony, which opinions.py writes.
"""

import argparse
import sys
from pathlib import Path

from transformer_core.config import ModelConfig
from transformer_core.examples import Example
from transformer_core.recipes.captions import find_file
from transformer_core.recipes.classifiers import (
    LABELS,
    CardWords,
    Kind,
    add_parts,
    divided,
    make_classifier,
    without_parts_of,
)
from transformer_core.recipes.command import recipe_parser, run_command
from transformer_core.recipes.everyday import ENGLISH_OPINIONS
from transformer_core.recipes.opinions import opinions
from transformer_core.recipes.reviews import Crops, Pretraining, SentimentSettings, quick
from transformer_core.recipes.wording import template
from transformer_core.training.config import TrainConfig
from transformer_core.untrusted.tables.labelled import read_labelled, read_records

REVIEWS, PHRASES, PRODUCTS = "train25k.csv.gz", "phrases.train.csv.gz", "products/train.csv.gz"
OWN = 12_000
FULL = SentimentSettings(
    vocab_size=12_000,
    model=ModelConfig(
        vocab_size=12_000,
        d_model=192,
        n_heads=8,
        d_ff=768,
        n_layers=4,
        max_len=256,
        dropout=0.1,
        positions="sinusoidal",
        scale_embeddings=True,
    ),
    pretraining=Pretraining(
        TrainConfig(optimizer="muon", learning_rate=3e-3, warm_up=0.03, weight_decay=0.05, batch_size=64, epochs=9),
        max_len=128,
        hide=0.2,
    ),
    training=TrainConfig(
        learning_rate=6e-4, warm_up=0.06, weight_decay=0.1, label_smoothing=0.05, batch_size=96, epochs=3
    ),
    crops=Crops(opening=0.5, window=0.35),
    hide=0.2,
    runs=3,
)
QUICK = quick(FULL)
WORDS = CardWords(
    title=template("is a sentence or a review positive or negative?"),
    introduction=template(
        "A small Transformer encoder, class from [CLS], that was trained from scratch on opinions, to be "
        "looked into rather than relied on."
    ),
    data=template(
        "{IMDB} reviews of the Large Movie Review Dataset v1.0 (Maas et al. 2011, from its training split); {SST} "
        "phrases and sentences of the Stanford Sentiment Treebank (Socher et al. 2013, from its training part), of "
        "which none of two words or more stands in a sentence set aside; {Hu_and_Liu_2004} sentences of product "
        "reviews (Hu and Liu 2004); {own} sentences of our own with negation, contrast and irony (`opinions.py`)"
    ),
    licence=template(
        "reviews, phrases and sentences are offered for research use, so these weights are for research and "
        "teaching too; cite the three papers"
    ),
    reads="en",
    everyday=ENGLISH_OPINIONS,
    limits=(
        template("It knows opinions in English, most of them on films. Other languages are outside what it learned."),
        template(
            "It knows two classes: a neutral or factual sentence is forced into one of them, often with confidence."
        ),
        template(
            "Irony, comparisons and double negation still mislead it, and words that it has not seen tell it nothing."
        ),
        template("It reads no further than 256 tokens, so a verdict at the end of a long review is lost."),
        template("It has the prejudices of its reviews: names of people and places can sway it."),
    ),
)


def read_rows(path: Path, *fields: str) -> list[tuple[Example, list[str]]]:
    """Return the examples of a file that are not blank, each with its values of further fields."""
    rows = (values for _, values in read_records(path, ("text", "label", *fields)))
    return [(Example(text, int(label)), more) for text, label, *more in rows if text.strip()]


def read_kinds(folder: Path, *, quick: bool, seed: int) -> list[Kind]:
    """Return the four kinds of data, divided.

    Raises:
        ValueError: a file is missing or broken.
    """
    reviews = list(read_labelled(find_file(folder, REVIEWS), LABELS))
    phrases = read_rows(find_file(folder, PHRASES), "sentence")
    products = [example for example, _ in read_rows(find_file(folder, PRODUCTS))]
    sizes = (1_000, 2_500), (500, 800), (300, 400)
    if quick:
        reviews, phrases, products, sizes = reviews[:400], phrases[:3_000], products[:300], ((20, 40),) * 3
    sentences = [example for example, whole in phrases if whole == ["1"]]
    imdb, sst, goods = (
        divided(examples, choice=choice, test=test, seed=seed, balanced=examples is not products)
        for examples, (choice, test) in zip((reviews, sentences, products), sizes, strict=True)
    )
    learned = without_parts_of((example for example, _ in phrases), [*sst[1], *sst[2]])
    return [
        Kind(template("IMDB"), "review", *imdb, read=imdb[0]),
        Kind(template("SST"), "sentence", learned, *sst[1:], read=sst[0]),
        Kind(template("Hu and Liu 2004"), "sentence", *goods, read=goods[0], times=4),
        Kind("own", "sentence", opinions(200 if quick else OWN, seed=seed), [], [], read=[]),
    ]


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line; the bundle and the texts set aside are on disk afterwards.

    Raises:
        ValueError: the data cannot be read or are too few, or the files of an interrupted run do not fit.
    """
    kinds = read_kinds(chosen.data, quick=chosen.quick, seed=chosen.seed)
    return make_classifier(QUICK if chosen.quick else FULL, kinds, WORDS, chosen, recipe="sentiment")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    needs = f"{REVIEWS}, {PHRASES} and {PRODUCTS}, in it or in its subfolders"
    parser = recipe_parser("sentiment", makes="the sentiment classifier", data=needs, out="sentiment")
    add_parts(parser)
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
