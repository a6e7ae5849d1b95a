"""The classifiers of opinions: `python -m transformer_core.recipes.sentiment [zh] --data DIR` writes a bundle.

The English one learns from film reviews (Maas et al. 2011), phrases of film critics (Socher et al. 2013), sentences of
product reviews (Hu and Liu 2004) and sentences with a negation, a contrast or irony, which opinions.py writes. The
Chinese one reads character by character; a second one, which never saw two of the subjects, tells how much is lost on a
subject that is not learned from: it is measured and not kept. Each kind of data is divided into a part to learn from,
one by which settings are chosen, and one that is reported on.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.classifier import measure_classifier
from transformer_core.evaluation.weak_sides import measure_on_each
from transformer_core.examples import Example, split
from transformer_core.measured import Measured, Slice
from transformer_core.recipes.captions import find_file
from transformer_core.recipes.card import write_bundle
from transformer_core.recipes.command import command_of, recipe_parser, run_command
from transformer_core.recipes.opinions import opinions
from transformer_core.recipes.reviews import (
    Crops,
    Pretraining,
    SentimentSettings,
    describe,
    quick,
    set_aside,
    train_in_stages,
)
from transformer_core.recipes.texts import Say, read_opinions
from transformer_core.text import Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.untrusted.tables.labelled import read_labelled, read_records, write_labelled

LABELS = ("negative", "positive")
REVIEWS, PHRASES, PRODUCTS = "train25k.csv.gz", "phrases.train.csv.gz", "products/train.csv.gz"
CHINESE_REVIEWS = "zh_reviews/train.csv.gz"
NAMES = {"en": "sentiment", "zh": "sentiment-zh"}  # of the bundles
WRITTEN = 12_000
UNSEEN = {"takeaway": ("takeaway",), "hotels": ("hotels", "hotels2")}
UNSEEN_MARK = ", by a model that did not learn from it"
WORD = re.compile(r"\w+")
JUDGING = TrainConfig(learning_rate=6e-4, warm_up=0.06, weight_decay=0.1, label_smoothing=0.05, batch_size=96, epochs=3)
FULL = {
    "en": SentimentSettings(
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
        training=JUDGING,
        crops=Crops(opening=0.5, window=0.35),
        hide=0.2,
        runs=3,
    ),
    "zh": SentimentSettings(
        vocab_size=6_000,
        model=ModelConfig(
            vocab_size=6_000,
            d_model=128,
            n_heads=8,
            d_ff=512,
            n_layers=4,
            max_len=192,
            dropout=0.1,
            positions="sinusoidal",
            scale_embeddings=True,
        ),
        pretraining=Pretraining(
            TrainConfig(learning_rate=2e-3, warm_up=0.05, weight_decay=0.01, batch_size=128, epochs=8),
            max_len=128,
            hide=0.2,
        ),
        training=replace(JUDGING, batch_size=128, epochs=4),
        crops=Crops(opening=0.6, window=0.4, whole=192),
        hide=0.1,
    ),
}


@dataclass(frozen=True)
class Kind:
    """One kind of data, divided.

    Args:
        name: of the data; unit: what a text of it is, as in measured.Slice.
        learned: to train on; choice: to choose settings by; test: to report on.
        read: what the first stage reads; its labels are not used.
        times: how often an epoch of the second stage has each example.
    """

    name: str
    unit: str
    learned: list[Example]
    choice: list[Example]
    test: list[Example]
    read: list[Example]
    times: int = 1


def divided(
    examples: Iterable[Example], *, choice: int, test: int, seed: int, balanced: bool = True
) -> tuple[list[Example], list[Example], list[Example]]:
    """Return a part to learn from, and one of `choice` and one of `test` examples; no text is in two.

    Args:
        balanced: half of each class; otherwise each class as often as in the data.
        seed: of the choice.

    Raises:
        ValueError: a class has too few examples.
    """

    def cut(whole: Iterable[Example], count: int) -> tuple[list[Example], list[Example]]:
        return set_aside(whole, count // 2, seed=seed) if balanced else split(whole, count, seed)

    rest, tested = cut(examples, test)
    learned, chosen_by = cut(rest, choice)
    return learned, chosen_by, tested


def without_parts_of(phrases: Iterable[Example], sentences: Iterable[Example]) -> list[Example]:
    """Return the phrases of which none, case and signs aside, stands in one of the sentences; single words may."""
    inside: set[tuple[str, ...]] = set()
    for sentence in sentences:
        words = WORD.findall(sentence.text.lower())
        ends = range(2, len(words) + 1)
        inside.update(tuple(words[start:end]) for end in ends for start in range(end - 1))
    return [phrase for phrase in phrases if tuple(WORD.findall(phrase.text.lower())) not in inside]


def read_rows(path: Path, *fields: str) -> list[tuple[Example, list[str]]]:
    """Return the examples of a file that are not blank, each with its values of further fields."""
    rows = (values for _, values in read_records(path, ("text", "label", *fields)))
    return [(Example(text, int(label)), more) for text, label, *more in rows if text.strip()]


def english_kinds(folder: Path, *, quick: bool, seed: int) -> list[Kind]:
    """Return the four kinds of English data, divided.

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
        Kind("IMDB", "review", *imdb, read=imdb[0]),
        Kind("SST", "sentence", learned, *sst[1:], read=sst[0]),
        Kind("Hu and Liu 2004", "sentence", *goods, read=goods[0], times=4),
        Kind("own", "sentence", opinions(200 if quick else WRITTEN, seed=seed), [], [], read=[]),
    ]


def chinese_kind(folder: Path, *, quick: bool, seed: int) -> tuple[Kind, dict[Example, str]]:
    """Return the Chinese reviews, divided, and the subject of each.

    Raises:
        ValueError: the file is missing or broken.
    """
    rows = dict(read_rows(find_file(folder, CHINESE_REVIEWS), "category"))
    subjects = {example: subject for example, (subject,) in [*rows.items()][: 2_000 if quick else None]}
    choice, test = (40, 80) if quick else (1_500, 4_000)
    parts = divided(subjects, choice=choice, test=test, seed=seed)
    return Kind("online reviews", "sentence", *parts, read=parts[0]), subjects


def measure_subjects(
    bundle: Bundle, settings: SentimentSettings, kind: Kind, subjects: Mapping[Example, str], chosen: argparse.Namespace
) -> tuple[Slice, ...]:
    """Return how often a classifier is right on each of UNSEEN, and one trained here that did not learn from them.

    With --again nothing is trained: of the second one, what the bundle on disk says is returned.
    """

    def slices_of(bundle: Bundle, mark: str = "") -> tuple[Slice, ...]:
        rows = []
        for name, categories in UNSEEN.items():
            examples = [example for example in kind.choice if subjects[example] in categories]
            right = round(measure_classifier(bundle, examples)["accuracy"] * len(examples))
            rows.append(Slice(name + mark, kind.unit, (), len(examples), right))
        return tuple(rows)

    known = slices_of(bundle)
    if chosen.again:
        before = load(chosen.out, device="cpu").measured.slices
        return (*known, *(row for row in before if row.data.endswith(UNSEEN_MARK)))
    left_out = {category for categories in UNSEEN.values() for category in categories}
    learned = [example for example in kind.learned if subjects[example] not in left_out]
    model, _ = train_in_stages(settings, bundle.tokenizer, learned, learned, chosen, name="unseen_")
    return (*known, *slices_of(Bundle("unseen", model, bundle.tokenizer, LABELS), UNSEEN_MARK))


@torch.inference_mode()
def chances_of(bundle: Bundle, sentences: Sequence[tuple[str, int]]) -> tuple[float, ...]:
    """Return P(positive) of each sentence."""
    rows = (bundle.tokenizer.encode(text, max_len=bundle.config.max_len).ids for text, _ in sentences)
    return tuple(float(bundle.model(torch.tensor([row])).softmax(-1)[0, 1]) for row in rows)


def right_of(chances: Sequence[float], sentences: Sequence[tuple[str, int]]) -> list[bool]:
    """Return which of some sentences are classified correctly, by P(positive) of each."""
    return [(chance > 0.5) == bool(label) for chance, (_, label) in zip(chances, sentences, strict=True)]


def everyday_rows(chances: Sequence[float], sentences: Sequence[tuple[str, int]], say: Say) -> str:
    """Return the rows of a Markdown table of the everyday sentences and what a bundle makes of them."""
    rows = zip(sentences, chances, right_of(chances, sentences), strict=True)
    return "\n".join(
        f"| {text} | {say(f'label.{LABELS[label]}')} | {chance:.2f} | {say(f'right.{right}')} |"
        for (text, label), chance, right in rows
    )


def measured_lines(found: Mapping[str, Any], longest: int, subjects: Sequence[Slice], say: Say) -> str:
    """Return a line on each kind of data, and one on each subject: of the model, and of the one that never saw it."""
    slices = {row.data: row for row in subjects}
    lines = [say("classifier.measured", name=say(f"data.{name}"), longest=longest, **of) for name, of in found.items()]
    for name in UNSEEN if slices else ():
        pair = {"seen": slices[name], "unseen": slices[name + UNSEEN_MARK]}
        lines.append(say("classifier.subject", subject=say(f"data.{name}"), **pair))
    return "\n".join(lines)


def make_classifier(
    settings: SentimentSettings,
    kinds: Sequence[Kind],
    chosen: argparse.Namespace,
    measure_more: Callable[[Bundle], tuple[Slice, ...]] | None = None,
) -> str:
    """Train a classifier on several kinds of data, write its bundle, and return its measures in one line.

    Args:
        settings: of the recipe.
        kinds: the data.
        chosen: arguments of the command line.
        measure_more: from the trained bundle to how often it is right on subjects, as measure_subjects.

    Raises:
        ValueError: the data are too few, or the files of an interrupted run do not fit.
    """
    measured_on = {kind.name: kind.choice if chosen.choice else kind.test for kind in kinds if kind.test}
    if chosen.held_out is not None:
        write_labelled(chosen.held_out, [example for examples in measured_on.values() for example in examples])
    everyday, name = read_opinions(chosen.language), NAMES[chosen.language]
    to_judge = [example for kind in kinds for example in kind.learned * kind.times]
    to_read = [example for kind in kinds for example in kind.read]
    texts = [example.text for kind in kinds for example in kind.learned]
    tokenizer = Tokenizer.train("wordpiece", texts, vocab_size=settings.vocab_size, lowercase=True)
    model, trained = train_in_stages(settings, tokenizer, to_read, to_judge, chosen)
    bundle = Bundle(chosen.out.name, model, tokenizer, LABELS, reads=chosen.language)
    subjects = measure_more(bundle) if measure_more else ()

    def measure(bundle: Bundle) -> dict[str, Any]:
        chances = chances_of(bundle, everyday)
        return {
            "on": {name: measure_classifier(bundle, examples) for name, examples in measured_on.items()},
            "sizes": {kind.name: len(kind.learned) for kind in kinds},
            "chances": chances,
            "everyday": len(everyday),
            "right": sum(right_of(chances, everyday)),
        }

    def in_words(found: dict[str, Any], say: Say) -> dict[str, Any]:
        how, precision = describe(settings, say), trained[-1].precision
        return {
            "training": say("classifier.precision", how=how, precision=precision, seed=chosen.seed),
            "measured": measured_lines(found["on"], bundle.config.max_len, subjects, say),
            "table": everyday_rows(found["chances"], everyday, say),
        }

    def weak_sides(bundle: Bundle) -> Measured:
        data = [(kind.name, kind.unit, measured_on[kind.name]) for kind in kinds if kind.test]
        found = measure_on_each(bundle, data, learned=(example.text for example in to_judge))
        return replace(found, slices=(*found.slices, *subjects))

    found = write_bundle(
        bundle,
        chosen.out,
        ["classifier", name],
        [(stage, settings.training) for stage in trained],
        measure,
        weak_sides,
        recipe=command_of(name.replace("-", " "), chosen),
        in_words=in_words,
    )
    shares = {name: of["accuracy"] for name, of in found["on"].items()} | {row.data: row.accuracy for row in subjects}
    return (
        f"{chosen.out}: {', '.join(f'{name} {share:.1%}' for name, share in shares.items())}, everyday "
        f"{found['right']} of {len(everyday)}, {trained[-1].cpu_minutes:.1f} minutes of processor time"
    )


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line; the bundle and the texts set aside are on disk afterwards.

    Raises:
        ValueError: the data cannot be read or are too few, or the files of an interrupted run do not fit.
    """
    settings = quick(FULL[chosen.language]) if chosen.quick else FULL[chosen.language]
    options = {"quick": chosen.quick, "seed": chosen.seed}
    if chosen.language == "en":
        return make_classifier(settings, english_kinds(chosen.data, **options), chosen)
    usual, own = NAMES["en"], NAMES["zh"]
    chosen.out, chosen.work = (
        path.with_name(own) if path.name == usual else path for path in (chosen.out, chosen.work)
    )
    kind, subjects = chinese_kind(chosen.data, **options)
    return make_classifier(
        settings, [kind], chosen, lambda bundle: measure_subjects(bundle, settings, kind, subjects, chosen)
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    needs = f"{REVIEWS}, {PHRASES} and {PRODUCTS}, or {CHINESE_REVIEWS}, in it or in its subfolders"
    parser = recipe_parser("sentiment", makes="a classifier of opinions", data=needs, out=NAMES["en"])
    parser.add_argument("language", nargs="?", choices=NAMES, default="en", help="of the opinions; by default en")
    parser.add_argument("--held-out", type=Path, help="write the texts that are set aside to this .csv")
    parser.add_argument("--choice", action="store_true", help="measure the part by which settings are chosen instead")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
