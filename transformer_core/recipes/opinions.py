"""A small grammar that writes opinions with negation, contrast and irony, for a classifier to learn from.

Reviews seldom say "not good at all"; people who try a classifier do. Its words and its sentences with slots are in
assets/corpora/recipes: {good} is a word of the list [good], {good2} another, {a:good} one with its article; "+" stands
before kinds of sentences that are positive. No sentence that the card reports on is written.
"""

import random
from collections import Counter
from itertools import count as counting
from typing import NamedTuple

from transformer_core.examples import Example
from transformer_core.recipes.texts import CORPORA, read_opinions, read_sections, signed

SHARES = {"plain": 2, "good denied": 4, "bad denied": 6, "wished": 1, "contrast": 4, "compared": 2, "irony": 1}
LEXICON = {
    name: tuple(text.replace("\n", " ").split(", ")) for name, text in read_sections(CORPORA / "lexicon.en.txt").items()
}


class Template(NamedTuple):
    """A sentence with slots, its kind and its label."""

    kind: str
    label: int
    text: str


GRAMMAR = [
    Template(*signed(heading, "grammar.en.txt"), text)
    for heading, texts in read_sections(CORPORA / "grammar.en.txt").items()
    for text in texts.split("\n")
]


class _Slots(dict[str, str]):
    """Words for the slots of one sentence, drawn as they are asked for; equal names with a digit differ."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    def __missing__(self, slot: str) -> str:
        name = slot.rstrip("2")
        taken = set(self.values())
        self[slot] = next(word for word in iter(lambda: self._rng.choice(LEXICON[name]), None) if word not in taken)
        return self[slot]


class _Words:
    """The slots as format sees them: {a:good} asks "a" to write the word named after the colon with its article."""

    def __init__(self, slots: _Slots) -> None:
        self._slots = slots

    def __format__(self, slot: str) -> str:
        word = self._slots[slot]
        vowel = word.startswith("honest") or (word[0] in "aeiou" and not word.startswith(("use", "one")))
        return f"{'an' if vowel else 'a'} {word}"


def _filled(text: str, rng: random.Random) -> str:
    slots = _Slots(rng)
    slots["a"] = _Words(slots)  # type: ignore[assignment]
    return text.format_map(slots)


def _as_typed(sentence: str, rng: random.Random) -> str:
    """Return a sentence as people type: one in four begins with a small letter and has no stop."""
    if rng.random() < 0.25:
        return (sentence if sentence.startswith("I") else sentence[0].lower() + sentence[1:]).rstrip(".")
    return sentence[0].upper() + sentence[1:]


def opinions(count: int, *, seed: int) -> list[Example]:
    """Write sentences, about half of them positive, all different; the same seed gives the same.

    Of each class, kinds come in the proportions of SHARES: plain ones, a good or a bad word denied, wishes, contrasts,
    comparisons and irony, as far as the class has them.

    Args:
        count: how many; the grammar has many millions.
        seed: of every choice.
    """
    rng = random.Random(seed)
    counts = Counter((row.kind, row.label) for row in GRAMMAR)
    by_label = [[row for row in GRAMMAR if row.label == label] for label in (0, 1)]
    weights = [[SHARES[row.kind] / counts[row.kind, row.label] for row in rows] for rows in by_label]
    kept = {text.casefold() for text, _ in read_opinions("en")}
    found: list[Example] = []
    for number in counting():
        if len(found) == count:
            break
        label = number % 2
        (row,) = rng.choices(by_label[label], weights[label])
        sentence = _as_typed(_filled(row.text, rng), rng)
        if sentence.casefold() not in kept:
            kept.add(sentence.casefold())
            found.append(Example(sentence, label))
    return found
