"""A grammar of short reviews: words, clauses and sentence frames, read from assets/corpora/reviews and checked.

A template such as "although {-detail}, {+final}." has slots. A slot with a sign takes an opinion: + agrees with the
review's label, - contradicts it, ? is either. A slot that names a kind of clause is filled by such a clause, whose
signs are inverted where the slot's sign is -. Every template therefore fits both labels and gives no hint of them. A
number asks for a different word of the same list ({thing2}); "a(n)" becomes "a" or "an".
"""

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from transformer_core.config import require_choice
from transformer_core.kept import PROJECT

Language = Literal["en", "zh"]
Part = Literal["train", "held_out"]
CORPORA = PROJECT / "assets" / "corpora"
FEWEST_WORDS = 3
TURNING = ("negation", "contrast", "irony", "hearsay")
CONSTRUCTIONS = ("plain", *TURNING)
POLARITIES = {"negative": 0, "positive": 1}
SLOT = re.compile(r"\{(?P<sign>[+?-]?)(?P<name>[a-z]+)(?P<number>\d*)\}")


@dataclass(frozen=True)
class Words:
    """Words of one list; those that are `unseen` occur in no training review."""

    known: tuple[str, ...]
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parts:
    """Texts for training, and texts that only held-out reviews may use."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]

    def of(self, part: Part) -> tuple[str, ...]:
        """Return the texts of one part alone."""
        return self.train if part == "train" else self.held_out


@dataclass(frozen=True, eq=False)
class Grammar:
    """The reviews of one language.

    Args:
        language: "en" or "zh".
        lists: for each domain, such as "film", its words by list and polarity (None where there is no opinion).
        withheld: for each opinion word, the construction in which training never uses it.
        clauses: by kind, such as "detail".
        templates: by construction.
        proper: beginnings, middles and ends of made-up names, which fill {proper}.
        asides: whole sentences without an opinion.
        articles: words whose indefinite article does not follow from the first letter, by article.
    """

    language: Language
    lists: Mapping[str, Mapping[tuple[str, int | None], Words]]
    withheld: Mapping[str, str]
    clauses: Mapping[str, Parts]
    templates: Mapping[str, Parts]
    proper: Sequence[Sequence[str]]
    asides: Parts
    articles: Mapping[str, Sequence[str]]


@functools.cache
def load_grammar(language: Language) -> Grammar:
    """Read and check the grammar of a language.

    Raises:
        ValueError: there is no such language, or the file contradicts itself; the message says where.
    """
    require_choice("language", language, get_args(Language))
    path = CORPORA / "reviews" / f"{language}.json"
    return parse_grammar(json.loads(path.read_text(encoding="utf-8")))


def parse_grammar(content: Mapping[str, Any]) -> Grammar:
    """Turn the content of a grammar's file into a grammar.

    Raises:
        ValueError: a template or a clause has a slot that no list and no clause fills, or stands in both parts, or a
            list has too few words.
    """
    texts = {
        section: {
            name: Parts(tuple(parts["train"]), tuple(parts["held_out"])) for name, parts in content[section].items()
        }
        for section in ("clauses", "templates")
    }
    grammar = Grammar(
        language=content["language"],
        lists={domain: _lists(content, own) for domain, own in content["domains"].items()},
        withheld=_withheld(content),
        clauses=texts["clauses"],
        templates={construction: texts["templates"][construction] for construction in CONSTRUCTIONS},
        proper=content["proper"],
        asides=Parts(tuple(content["asides"]["train"]), tuple(content["asides"]["held_out"])),
        articles=content["articles"],
    )
    for section in texts.values():
        for name, parts in section.items():
            _check_texts(name, parts, grammar)
    _check_words(grammar)
    return grammar


def _lists(content: Mapping[str, Any], domain: Mapping[str, Any]) -> dict[tuple[str, int | None], Words]:
    general = content["opinions"]["general"]
    lists: dict[tuple[str, int | None], Words] = {}
    for polarity, number in POLARITIES.items():
        for name, words in {**content["opinions"], **content["idioms"]}.items():
            lists[name, number] = Words(tuple(words[polarity]))
        for name in ("adj", "quality"):
            lists[name, number] = Words((*general[polarity], *domain[name][polarity]))
    for name, words in {**content["nouns"], **domain["nouns"]}.items():
        lists[name, None] = Words(tuple(words["known"]), tuple(words.get("unseen", ())))
    for name, phrases in content["phrases"].items():
        lists[name, None] = Words(tuple(phrases))
    return lists


def _withheld(content: Mapping[str, Any]) -> dict[str, str]:
    """Assign the opinion words to the constructions in turn, in the file's order; idioms have one construction only."""
    sections = [*content["opinions"].values()]
    sections += [domain[name] for domain in content["domains"].values() for name in ("adj", "quality")]
    idioms = {word for words in content["idioms"].values() for polarity in POLARITIES for word in words[polarity]}
    withheld: dict[str, str] = {}
    for polarity in POLARITIES:
        words = _unique(word for words in sections for word in words[polarity] if word not in idioms)
        withheld |= {word: TURNING[place % len(TURNING)] for place, word in enumerate(words)}
    return withheld


def _unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _check_texts(name: str, parts: Parts, grammar: Grammar) -> None:
    for text in (*parts.train, *parts.held_out):
        for match in SLOT.finditer(text):
            polarities = (0, 1) if match["sign"] else (None,)
            filled = all((match["name"], p) in lists for p in polarities for lists in grammar.lists.values())
            if not (filled or (match["sign"] and match["name"] in grammar.clauses)):
                raise ValueError(f"{name}: {text!r} has the slot {match[0]}, which no list and no clause fills")
    both = set(parts.train) & set(parts.held_out)
    if both:
        raise ValueError(f"{name}: {min(both)!r} is both for training and held out")


def _check_words(grammar: Grammar) -> None:
    """Every list must leave words for training in every construction, as many as a review may need of one list."""
    for lists in grammar.lists.values():
        for (name, polarity), words in lists.items():
            for construction in TURNING:
                left = sum(grammar.withheld.get(word) != construction for word in words.known)
                if polarity is not None and left < FEWEST_WORDS:
                    raise ValueError(
                        f"list {name!r} leaves {left} words for {construction} in training; {FEWEST_WORDS} are needed"
                    )
