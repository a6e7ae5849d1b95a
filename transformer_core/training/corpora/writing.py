"""Writing a review: a template's clauses and words chosen by a seeded hand, as its part of the corpus allows.

Read next: reviews.py.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from transformer_core.training.corpora.grammar import SLOT, Grammar, Part, Parts
from transformer_core.training.data import Example

HELD_BACK_SHARE = 0.5
ASIDE_SHARE = 0.3
OF_A_CLAUSE = ("thing", "moment")
NAME = re.compile(r"\{proper\}")
ARTICLE = re.compile(r"\b([Aa])\(n\) (\w+)")
SENTENCE_START = re.compile(r"(?:^|(?<=[.!?] )|(?<=[.!?]\" )|(?<=: (?=\")))\"?[a-z]")
TURNED = {"+": "-", "-": "+", "?": "?", "": ""}


@dataclass(frozen=True)
class Review:
    """A review and how it came about.

    Args:
        text: what stands there.
        label: 0 negative, 1 positive.
        construction: an entry of CONSTRUCTIONS.
        frame: the sentence with its words covered: no signs, no case, no punctuation, no aside.
        words: what fills the slots, each with its list's name and its polarity, None without an opinion.
    """

    text: str
    label: int
    construction: str
    frame: str
    words: tuple[tuple[str, str, int | None], ...]

    @property
    def example(self) -> Example:
        """The review as training wants it."""
        return Example(self.text, self.label)


@functools.lru_cache(maxsize=4_096)
def pools(
    grammar: Grammar, domain: str, name: str, polarity: int | None, construction: str
) -> tuple[list[str], list[str]]:
    """Return the words of a list that training uses in a construction, and those that it does not."""
    words = grammar.lists[domain][name, polarity]
    known = [word for word in words.known if grammar.withheld.get(word) != construction]
    withheld = [word for word in words.known if grammar.withheld.get(word) == construction]
    return known, [*withheld, *words.unseen]


def write_review(grammar: Grammar, construction: str, part: Part, label: int, rng: Random) -> Review:
    """Write a review of a construction for a label; its part decides which templates, clauses and words it may use."""
    text = with_clauses(grammar, rng.choice(grammar.templates[construction].of(part)), part, rng)
    domain = rng.choice(list(grammar.lists))
    chosen: dict[str, tuple[str, str, int | None]] = {}
    for match in SLOT.finditer(text):
        if match[0] not in chosen:
            polarity = {"+": label, "-": 1 - label, "?": rng.randrange(2)}.get(match["sign"])
            known, held_back = pools(grammar, domain, match["name"], polarity, construction)
            used = {word for word, _, _ in chosen.values()}
            chosen[match[0]] = _choose(known, held_back, used, part, rng), match["name"], polarity
    filled = SLOT.sub(lambda match: chosen[match[0]][0], text)
    return Review(
        _in_writing(_with_names(_with_aside(filled, grammar, part, rng), grammar, rng), grammar),
        label,
        construction,
        frame_of(text),
        tuple(chosen.values()),
    )


def with_clauses(grammar: Grammar, text: str, part: Part, rng: Random) -> str:
    """Put clauses into a template until words are all that is left to choose."""
    number = 10
    while match := next((m for m in SLOT.finditer(text) if m["name"] in grammar.clauses), None):
        options = grammar.clauses[match["name"]]
        clause = rng.choice(_allowed(options, part, rng))
        text = text[: match.start()] + in_place(clause, match, number) + text[match.end() :]
        number += 1
    return text


def in_place(clause: str, slot: re.Match[str], number: int) -> str:
    """Return a clause as it stands in a slot: its signs turned round after -, its words of opinion its own."""

    def renamed(match: re.Match[str]) -> str:
        sign, name, own = match["sign"], match["name"], match["number"]
        if sign:
            return f"{{{TURNED[sign] if slot['sign'] == '-' else sign}{name}{own or number}}}"
        return f"{{{name}{slot['number'] if name in OF_A_CLAUSE else own}}}"

    return SLOT.sub(renamed, clause)


def frame_of(text: str) -> str:
    """Return what the eye sees of a sentence when its words are covered."""
    covered = SLOT.sub(lambda match: f" <{match['name']}> ", text)
    return " ".join(re.findall(r"<\w+>|\w+", covered.lower()))


def _allowed(options: Parts, part: Part, rng: Random) -> Sequence[str]:
    if part == "held_out" and options.held_out and rng.random() < HELD_BACK_SHARE:
        return options.held_out
    return options.train


def _choose(known: Sequence[str], held_back: Sequence[str], used: set[str], part: Part, rng: Random) -> str:
    if part == "held_out" and held_back and rng.random() < HELD_BACK_SHARE:
        known = [word for word in held_back if word not in used] or known
    return rng.choice([word for word in known if word not in used])


def _in_writing(text: str, grammar: Grammar) -> str:
    def article(match: re.Match[str]) -> str:
        letter, word = match.groups()
        vowel = (word[0].lower() in "aeiou" and word not in grammar.articles["a"]) or word in grammar.articles["an"]
        return f"{letter}{'n' if vowel else ''} {word}"

    return SENTENCE_START.sub(lambda match: match[0].upper(), ARTICLE.sub(article, text))


def _with_aside(text: str, grammar: Grammar, part: Part, rng: Random) -> str:
    if rng.random() >= ASIDE_SHARE:
        return text
    sentences = [text, rng.choice(grammar.asides.of(part))]
    rng.shuffle(sentences)
    return (" " if grammar.language == "en" else "").join(sentences)


def _with_names(text: str, grammar: Grammar, rng: Random) -> str:
    return NAME.sub(lambda _: "".join(map(rng.choice, grammar.proper)), text)
