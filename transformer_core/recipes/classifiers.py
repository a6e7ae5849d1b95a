"""What the recipes of both classifiers share: data in three parts, measures, and the card.

Each kind of data is divided into a part to learn from, one by which settings are chosen, and one that is reported on.
"""

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from transformer_core.bundle import Bundle
from transformer_core.evaluation.classifier import measure_classifier
from transformer_core.evaluation.weak_sides import measure_beside
from transformer_core.measured import Measured, Slice
from transformer_core.recipes.card import OnDisk, list_of, model_facts, write_bundle, write_card
from transformer_core.recipes.command import command_of
from transformer_core.recipes.reviews import SentimentSettings, describe, set_aside, train_in_stages
from transformer_core.text import Tokenizer
from transformer_core.training.examples import Example, split
from transformer_core.training.intake.labelled import write_labelled

LABELS = ("negative", "positive")
WORD = re.compile(r"\w+")


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


@torch.inference_mode()
def everyday_table(bundle: Bundle, sentences: Sequence[tuple[str, int]]) -> tuple[int, str]:
    """Return how many everyday sentences a bundle judges rightly, and a Markdown table of all."""
    lines, n_right = ["| sentence | meant | P(positive) | right |", "|---|---|---|---|"], 0
    for text, label in sentences:
        ids = bundle.tokenizer.encode(text, max_len=bundle.config.max_len).ids
        probabilities = bundle.model(torch.tensor([ids])).softmax(-1)[0]  # (class,)
        right = int(probabilities.argmax()) == label
        n_right += right
        lines.append(f"| {text} | {bundle.labels[label]} | {probabilities[1]:.2f} | {'yes' if right else '**no**'} |")
    return n_right, "\n".join(lines)


@dataclass(frozen=True)
class CardWords:
    """What a classifier's card says of its own.

    Args:
        title, introduction, data, licence: of the card.
        reads: the language, as in Bundle.
        everyday: sentences that it lists, with their labels.
        limits: what it cannot do.
    """

    title: str
    introduction: str
    data: str
    licence: str
    reads: str
    everyday: tuple[tuple[str, int], ...]
    limits: tuple[str, ...]


def classifier_card(
    on_disk: OnDisk[dict[str, dict[str, Any]]], facts: dict[str, str], words: CardWords, more: Sequence[str] = ()
) -> str:
    """Return the card's Markdown.

    Args:
        on_disk: the bundle, and what measure_classifier returned for it, by the name of the data.
        facts: the rows of its table.
        words: of its own.
        more: lines of quality beside those of the data.
    """
    bundle = on_disk.bundle
    lines = [
        f"{name}: accuracy {of['accuracy']:.1%} on {of['examples']:,} texts set aside, cross "
        f"entropy {of['loss_nats']:.4f} nats a text; {of['truncated']:,} of them were longer than "
        f"{bundle.config.max_len} tokens and judged by their opening"
        for name, of in on_disk.measured.items()
    ]
    n_right, table = everyday_table(bundle, words.everyday)
    quality = f"""{list_of([*lines, *more])}

Settings were chosen by other parts of the same data, which were neither learned from nor reported on.
To measure it again, let the recipe write the texts set aside with `--held-out FILE.csv`, and then

    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} FILE.csv"""
    everyday = f"""They were written for this card before the training, and neither trained on nor chosen by. \
{n_right} of {len(words.everyday)} are right.

{table}"""
    return write_card(
        f"{bundle.name}: {words.title}",
        words.introduction,
        {**facts, "classes": ", ".join(f"{number} = {name}" for number, name in enumerate(bundle.labels))},
        {
            "Measured quality": quality,
            f"{len(words.everyday)} everyday sentences": everyday,
            "What it cannot do": list_of(list(words.limits)),
        },
    )


def make_classifier(
    settings: SentimentSettings,
    kinds: Sequence[Kind],
    words: CardWords,
    chosen: argparse.Namespace,
    *,
    recipe: str,
    beside: Callable[[Bundle], tuple[Slice, ...]] = lambda bundle: (),
) -> str:
    """Train a classifier on several kinds of data, write its bundle, and return its measures in one line.

    Args:
        settings: of the recipe.
        kinds: the data.
        words: of the card.
        chosen: arguments of the command line.
        recipe: its module.
        beside: from the trained bundle to further measures.

    Raises:
        ValueError: the data are too few, or the files of an interrupted run do not fit.
    """
    measured_on = {kind.name: kind.choice if chosen.choice else kind.test for kind in kinds if kind.test}
    if chosen.held_out is not None:
        write_labelled(chosen.held_out, [example for examples in measured_on.values() for example in examples])
    to_judge = [example for kind in kinds for example in kind.learned * kind.times]
    to_read = [example for kind in kinds for example in kind.read]
    texts = [example.text for kind in kinds for example in kind.learned]
    tokenizer = Tokenizer.train("wordpiece", texts, vocab_size=settings.vocab_size, lowercase=True)
    model, trained = train_in_stages(settings, tokenizer, to_read, to_judge, chosen)
    bundle = Bundle(chosen.out.name, model, tokenizer, LABELS, reads=words.reads)
    own = beside(bundle)

    def measure(bundle: Bundle) -> dict[str, dict[str, Any]]:
        return {name: measure_classifier(bundle, examples) for name, examples in measured_on.items()}

    def card(on_disk: OnDisk) -> str:
        facts = {
            "data": words.data.format(**{kind.name.replace(" ", "_"): f"{len(kind.learned):,}" for kind in kinds}),
            "licence": words.licence,
            "recipe": f"`{command_of(recipe, chosen)}`",
            "training": f"{describe(settings)}, {trained[-1].precision}, seed {chosen.seed}",
            **model_facts(on_disk, trained[-1]),
        }
        more = [f"{row.data}: {row.accuracy:.1%} of {row.texts:,}" for row in own]
        return classifier_card(on_disk, facts, words, more)

    def weak_sides(bundle: Bundle) -> Measured:
        found = measure_beside(bundle, [(kind.name, kind.unit, measured_on[kind.name]) for kind in kinds if kind.test])
        return replace(found, slices=(*found.slices, *own))

    on_disk = write_bundle(bundle, chosen.out, measure, card, trained, weak_sides)
    shares = ", ".join(f"{name} {of['accuracy']:.1%}" for name, of in on_disk.measured.items())
    n_right, _ = everyday_table(on_disk.bundle, words.everyday)
    return (
        f"{chosen.out}: {shares}, everyday {n_right} of {len(words.everyday)}, "
        + "".join(f"{row.data} {row.accuracy:.1%}, " for row in own)
        + f"{trained[-1].cpu_minutes:.1f} minutes of processor time"
    )


def add_parts(parser: argparse.ArgumentParser) -> None:
    """Add the arguments on what is measured: the file to write it to, and whether it is the part for choices."""
    parser.add_argument("--held-out", type=Path, help="write the texts that are set aside to this .csv")
    parser.add_argument("--choice", action="store_true", help="measure the part by which settings are chosen instead")
