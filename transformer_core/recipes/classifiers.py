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
from transformer_core.examples import Example, split
from transformer_core.measured import Measured, Slice, Trained
from transformer_core.recipes.card import OnDisk, commands, list_of, model_facts, write_bundle, write_card
from transformer_core.recipes.command import command_of
from transformer_core.recipes.reviews import SentimentSettings, describe, set_aside, train_in_stages
from transformer_core.recipes.wording import Say, template
from transformer_core.text import Tokenizer
from transformer_core.untrusted.tables.labelled import write_labelled

LABELS = (template("negative"), template("positive"))
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Kind:
    """One kind of data, divided.

    Args:
        name: of the data, marked for say; unit: what a text of it is, as in measured.Slice.
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


@dataclass(frozen=True)
class CardWords:
    """What a classifier's card says of its own; its sentences are marked for say.

    Args:
        title, introduction, data, licence: of the card; data has a place for the size of each kind of data.
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


@dataclass(frozen=True)
class Beside:
    """Further measures of a classifier.

    Args:
        measure: from the trained bundle to accuracies.
        lines: from them to lines of the card.
    """

    measure: Callable[[Bundle], tuple[Slice, ...]]
    lines: Callable[[Sequence[Slice], Say], list[str]]


@dataclass(frozen=True)
class ClassifierMeasures:
    """What measure_classifier found, by the name of the data, and P(positive) of each everyday sentence."""

    on: dict[str, dict[str, Any]]
    probabilities: tuple[float, ...]

    def right(self, sentences: Sequence[tuple[str, int]]) -> list[bool]:
        """Return which of the everyday sentences are classified correctly."""
        return [(chance > 0.5) == bool(label) for chance, (_, label) in zip(self.probabilities, sentences, strict=True)]


@torch.inference_mode()
def chances_of(bundle: Bundle, sentences: Sequence[tuple[str, int]]) -> tuple[float, ...]:
    """Return P(positive) of each sentence."""
    rows = (bundle.tokenizer.encode(text, max_len=bundle.config.max_len).ids for text, _ in sentences)
    return tuple(float(bundle.model(torch.tensor([row])).softmax(-1)[0, 1]) for row in rows)


def everyday_table(measured: ClassifierMeasures, sentences: Sequence[tuple[str, int]], say: Say) -> str:
    """Return a Markdown table of the everyday sentences and what a bundle makes of them."""
    lines = [say("| sentence | meant | P(positive) | right |"), "|---|---|---|---|"]
    rows = zip(sentences, measured.probabilities, measured.right(sentences), strict=True)
    for (text, label), chance, right in rows:
        verdict = say("yes") if right else f"**{say('no')}**"
        lines.append(f"| {text} | {say(LABELS[label])} | {chance:.2f} | {verdict} |")
    return "\n".join(lines)


def classifier_card(
    on_disk: OnDisk[ClassifierMeasures], facts: dict[str, str], words: CardWords, more: Sequence[str], say: Say
) -> str:
    """Return the card's Markdown.

    Args:
        on_disk: the bundle and its measures.
        facts: the rows of its table.
        words: of its own.
        more: lines of quality beside those of the data.
        say: the sentences of a language.
    """
    bundle, measured = on_disk.bundle, on_disk.measured
    lines = [
        say(
            "{name}: accuracy {accuracy:.1%} on {examples:,} texts set aside, cross entropy {loss_nats:.4f} nats a "
            "text; {truncated:,} of them were longer than {longest} tokens and judged by their opening",
            name=say(name),
            longest=bundle.config.max_len,
            **of,
        )
        for name, of in measured.on.items()
    ]
    chosen_by = say(
        "Settings were chosen by other parts of the same data, which were neither learned from nor reported on."
    )
    how = say("To measure it again, let the recipe write the texts set aside with `--held-out FILE.csv`, and then")
    everyday = say(
        "They were written for this card before the training, and neither trained on nor chosen by. {right} of {all} "
        "are right.",
        right=sum(measured.right(words.everyday)),
        all=len(words.everyday),
    )
    return write_card(
        bundle,
        say(words.title),
        say(words.introduction),
        facts,
        {
            say("Measured quality"): f"{list_of([*lines, *more])}\n\n{chosen_by}\n{commands(bundle, how, 'FILE.csv')}",
            say("{count} everyday sentences", count=len(words.everyday)): f"{everyday}\n\n"
            + everyday_table(measured, words.everyday, say),
            say("What it cannot do"): list_of([say(limit) for limit in words.limits]),
        },
    )


def classifier_facts(
    on_disk: OnDisk[ClassifierMeasures],
    settings: SentimentSettings,
    words: CardWords,
    kinds: Sequence[Kind],
    last: Trained,
    say: Say,
    *,
    recipe: str,
    seed: int,
) -> dict[str, str]:
    """Return the rows of a card's table.

    Args:
        on_disk: the bundle.
        settings, words, kinds: of the recipe.
        last: the training's last stage.
        say: the sentences of a language.
        recipe: its command; seed: of everything random.
    """
    sizes = {kind.name.replace(" ", "_"): f"{len(kind.learned):,}" for kind in kinds}
    how = describe(settings, say)
    return {
        say("data"): say(words.data, **sizes),
        say("licence"): say(words.licence),
        say("recipe"): f"`{recipe}`",
        say("training"): say("{how}, {precision}, seed {seed}", how=how, precision=last.precision, seed=seed),
        **model_facts(on_disk, last, say),
        say("classes"): say(", ").join(f"{number} = {say(name)}" for number, name in enumerate(LABELS)),
    }


def train_on_kinds(
    settings: SentimentSettings, kinds: Sequence[Kind], words: CardWords, chosen: argparse.Namespace
) -> tuple[Bundle, list[Trained]]:
    """Train a classifier on several kinds of data; return it, and what each stage took."""
    to_judge = [example for kind in kinds for example in kind.learned * kind.times]
    to_read = [example for kind in kinds for example in kind.read]
    texts = [example.text for kind in kinds for example in kind.learned]
    tokenizer = Tokenizer.train("wordpiece", texts, vocab_size=settings.vocab_size, lowercase=True)
    model, trained = train_in_stages(settings, tokenizer, to_read, to_judge, chosen)
    return Bundle(chosen.out.name, model, tokenizer, LABELS, reads=words.reads), trained


def make_classifier(
    settings: SentimentSettings,
    kinds: Sequence[Kind],
    words: CardWords,
    chosen: argparse.Namespace,
    *,
    recipe: str,
    beside: Beside | None = None,
) -> str:
    """Train a classifier on several kinds of data, write its bundle, and return its measures in one line.

    Args:
        settings: of the recipe.
        kinds: the data.
        words: of the card.
        chosen: arguments of the command line.
        recipe: its module.
        beside: further measures.

    Raises:
        ValueError: the data are too few, or the files of an interrupted run do not fit.
    """
    measured_on = {kind.name: kind.choice if chosen.choice else kind.test for kind in kinds if kind.test}
    if chosen.held_out is not None:
        write_labelled(chosen.held_out, [example for examples in measured_on.values() for example in examples])
    bundle, trained = train_on_kinds(settings, kinds, words, chosen)
    own = beside.measure(bundle) if beside else ()

    def measure(bundle: Bundle) -> ClassifierMeasures:
        found = {name: measure_classifier(bundle, examples) for name, examples in measured_on.items()}
        return ClassifierMeasures(found, chances_of(bundle, words.everyday))

    def card(on_disk: OnDisk[ClassifierMeasures], say: Say) -> str:
        command = command_of(recipe, chosen)
        facts = classifier_facts(on_disk, settings, words, kinds, trained[-1], say, recipe=command, seed=chosen.seed)
        return classifier_card(on_disk, facts, words, beside.lines(own, say) if beside else [], say)

    def weak_sides(bundle: Bundle) -> Measured:
        data = [(kind.name, kind.unit, measured_on[kind.name]) for kind in kinds if kind.test]
        learned = (example.text for kind in kinds for example in kind.learned * kind.times)
        found = measure_beside(bundle, data, learned=learned)
        return replace(found, slices=(*found.slices, *own))

    measured = write_bundle(bundle, chosen.out, measure, card, trained, weak_sides).measured
    shares = {**{name: of["accuracy"] for name, of in measured.on.items()}, **{row.data: row.accuracy for row in own}}
    return (
        f"{chosen.out}: {', '.join(f'{name} {share:.1%}' for name, share in shares.items())}, everyday "
        f"{sum(measured.right(words.everyday))} of {len(words.everyday)}, "
        f"{trained[-1].cpu_minutes:.1f} minutes of processor time"
    )


def add_parts(parser: argparse.ArgumentParser) -> None:
    """Add the arguments on what is measured: the file to write it to, and whether it is the part for choices."""
    parser.add_argument("--held-out", type=Path, help="write the texts that are set aside to this .csv")
    parser.add_argument("--choice", action="store_true", help="measure the part by which settings are chosen instead")
