"""Reviews whose label cannot be found by counting words, written from a grammar; and a passage of running text.

Half of the reviews are plain ("What a dull film!"), the others are negations ("not a dull scene"), contrasts ("dull at
first, but ..."), irony ("Oh great, another dull film") and hearsay ("My aunt called it dull. I disagree."), in equal
shares. Half of each construction is positive, so no construction gives the label away.

Held out, which means that no training review has it:
- frames: a held-out review, with its words masked, looks like no training review;
- clauses: where held-out clauses fit ("we found it dull"), every second clause is one of them;
- words in constructions: each opinion word is withheld from one of the four turning constructions and occurs in
  training in the other three and in plain reviews; in held-out reviews of that construction every second opinion word
  is such a one, where its list has one. Idioms are exempt: they have only one construction ("lucky me");
- nouns: every second noun from a list with unseen ones ("trattoria") is one of these;
- the sentences without an opinion that stand before or after three reviews in ten.
The words that hold held-out frames together all occur in training frames.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import get_args

from transformer_core.config import require_choice
from transformer_core.examples import Example
from transformer_core.training.corpora.grammar import (
    CORPORA,
    SLOT,
    TURNING,
    Grammar,
    Language,
    Part,
    Parts,
    load_grammar,
)

HELD_BACK_SHARE = 0.5
ASIDE_SHARE = 0.3
OF_A_CLAUSE = ("thing", "moment")
NAME = re.compile(r"\{proper\}")
ARTICLE = re.compile(r"\b([Aa])\(n\) (\w+)")
SENTENCE_START = re.compile(r"(?:^|(?<=[.!?] )|(?<=[.!?]\" )|(?<=: (?=\")))\"?[a-z]")
TURNED = {"+": "-", "-": "+", "?": "?", "": ""}
CYCLE = (*("plain",) * len(TURNING), *TURNING)
MOST_TRIES = 1_000
PASSAGE_REVIEWS = 600


@dataclass(frozen=True)
class Review:
    """A review and how it was written.

    Args:
        text: of the review.
        label: 0 negative, 1 positive.
        construction: an entry of CONSTRUCTIONS.
        frame: the sentence with its words masked; no signs, no case, no punctuation, no aside.
        words: what fills the slots, each with its list's name and its polarity, None without an opinion.
    """

    text: str
    label: int
    construction: str
    frame: str
    words: tuple[tuple[str, str, int | None], ...]

    @property
    def example(self) -> Example:
        """The review as a labelled example."""
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
    """Fill the clause slots of a template until only slots for words are left."""
    number = 10
    while match := next((m for m in SLOT.finditer(text) if m["name"] in grammar.clauses), None):
        options = grammar.clauses[match["name"]]
        clause = rng.choice(_allowed(options, part, rng))
        text = text[: match.start()] + in_place(clause, match, number) + text[match.end() :]
        number += 1
    return text


def in_place(clause: str, slot: re.Match[str], number: int) -> str:
    """Return a clause fitted to a slot: its signs inverted after -, its opinion slots numbered apart from others."""

    def renamed(match: re.Match[str]) -> str:
        sign, name, own = match["sign"], match["name"], match["number"]
        if sign:
            return f"{{{TURNED[sign] if slot['sign'] == '-' else sign}{name}{own or number}}}"
        return f"{{{name}{slot['number'] if name in OF_A_CLAUSE else own}}}"

    return SLOT.sub(renamed, clause)


def frame_of(text: str) -> str:
    """Return a template with its slots masked, without case and punctuation."""
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


def reviews(language: Language, *, train: int, held_out: int, seed: int = 0) -> tuple[list[Example], list[Example]]:
    """Return reviews to train on and reviews that are held out, labelled 0 negative and 1 positive.

    Args:
        language: "en" or "zh".
        train, held_out: how many; all texts differ.
        seed: of every choice; the same seed gives the same reviews.

    Raises:
        ValueError: there is no such language, a number is negative, or there are not so many reviews.
    """
    parts = written_reviews(language, train=train, held_out=held_out, seed=seed)
    return [review.example for review in parts[0]], [review.example for review in parts[1]]


def written_reviews(
    language: Language, *, train: int, held_out: int, seed: int = 0
) -> tuple[list[Review], list[Review]]:
    """Return the same reviews as `reviews`, each with its construction, its frame and its words."""
    grammar = load_grammar(language)
    seen: set[str] = set()
    return _write(grammar, "train", train, seed, seen), _write(grammar, "held_out", held_out, seed, seen)


def facts(language: Language) -> dict[str, int]:
    """Return how large the grammar of a language is: templates and clauses by part, words, and unseen nouns."""
    grammar = load_grammar(language)
    nouns = {(entry, word) for lists in grammar.lists.values() for entry in lists.values() for word in entry.unseen}
    return {
        "train_templates": sum(len(parts.train) for parts in grammar.templates.values()),
        "held_out_templates": sum(len(parts.held_out) for parts in grammar.templates.values()),
        "train_clauses": sum(len(parts.train) for parts in grammar.clauses.values()),
        "held_out_clauses": sum(len(parts.held_out) for parts in grammar.clauses.values()),
        "opinion_words": len(grammar.withheld),
        "unseen_nouns": len({word for _, word in nouns}),
    }


def _write(grammar: Grammar, part: Part, number: int, seed: int, seen: set[str]) -> list[Review]:
    if number < 0:
        raise ValueError(f"{part}={number} must be at least 0")
    rng = Random(f"{grammar.language} {part} {seed}")
    written = []
    for place in range(number):
        construction, label = CYCLE[place // 2 % len(CYCLE)], place % 2
        drawn = (write_review(grammar, construction, part, label, rng) for _ in range(MOST_TRIES))
        review = next((review for review in drawn if review.text not in seen), None)
        if review is None:
            raise ValueError(f"{part}={number} is more than the grammar can write: it ran dry after {place} reviews")
        seen.add(review.text)
        written.append(review)
    rng.shuffle(written)
    return written


@functools.cache
def passage(language: Language) -> str:
    """Return running text for models that predict characters or hidden words: a story of our own, then reviews.

    A paragraph or a review a line; the text is always the same.

    Raises:
        ValueError: there is no such language.
    """
    require_choice("language", language, get_args(Language))
    story = (CORPORA / "stories" / f"{language}.txt").read_text(encoding="utf-8")
    return story + "".join(f"{review.text}\n" for review in reviews(language, train=PASSAGE_REVIEWS, held_out=0)[0])
