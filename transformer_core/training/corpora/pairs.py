"""Short sentences in English with their translation: a small grammar of words that agree, move and surround.

In French, adjectives agree with their noun and most follow it, and "does not" becomes two words around the verb; in
Chinese, nouns take measure words, and the place stands before the verb. A model that translates has to learn all that.
"""

import functools
import json
from collections.abc import Mapping
from random import Random
from typing import Any, Literal

from transformer_core.kept import PROJECT
from transformer_core.training.corpora.sequences import Pair

Into = Literal["fr", "zh"]
WORDS = PROJECT / "assets" / "corpora" / "translations" / "words.json"
VOWELS = "aeiouhéèêœ"  # an h is mute in all nouns and verbs of the list
TRIES = 50  # for each pair, until it is a new one
Word = Mapping[str, Any]


@functools.cache
def _lists() -> dict[str, list[dict[str, Any]]]:
    return json.loads(WORDS.read_text(encoding="utf-8"))


def translation_pairs(into: Into, *, train: int, held_out: int, seed: int = 0) -> tuple[list[Pair], list[Pair]]:
    """Return English sentences with their translations to train on, and others that are held out; all differ.

    Args:
        into: "fr", French, or "zh", Chinese.
        train, held_out: how many pairs.
        seed: of the choice; the same seed gives the same pairs.

    Raises:
        ValueError: a number is below 0, or there are too few different sentences.
    """
    if min(train, held_out) < 0:
        raise ValueError(f"train={train} and held_out={held_out} must be at least 0")
    rng, found = Random(f"pairs {into} {seed}"), {}
    for _ in range(TRIES * (train + held_out)):
        if len(found) == train + held_out:
            break
        english, other = _sentence(into, rng)
        found.setdefault(english, other)
    if len(found) < train + held_out:
        raise ValueError(f"train and held_out together are {train + held_out}; only {len(found)} sentences were found")
    pairs = list(found.items())
    return pairs[:train], pairs[train:]


def _sentence(into: Into, rng: Random) -> Pair:
    lists = _lists()
    subject = _noun(into, rng, "doers", definite=rng.random() < 0.5)
    if rng.random() < 0.5:
        act, place = rng.choice(lists["acts"]), rng.choice(lists["places"])
        english = f"{subject[0]} {act['en']} {place['en']}"
        other = f"{subject[1]} {act['fr']} {place['fr']}" if into == "fr" else subject[1] + place["zh"] + act["zh"]
    else:
        verb, negated = rng.choice(lists["does"]), rng.random() < 0.35
        thing = _noun(into, rng, "things", definite=negated or rng.random() < 0.5)
        does = f"does not {verb['bare']}" if negated else verb["en"]
        english = f"{subject[0]} {does} {thing[0]}"
        if into == "fr":
            other = f"{subject[1]} {_french_verb(verb['fr'], negated)} {thing[1]}"
        else:
            other = subject[1] + verb["zh_not" if negated else "zh"] + thing[1]
    if rng.random() < 0.35:
        time = rng.choice(lists["times"])
        english, other = f"{time['en']} {english}", f"{time['fr']} {other}" if into == "fr" else time["zh"] + other
    return english, other


def _french_verb(verb: str, negated: bool) -> str:
    if not negated:
        return verb
    return f"n'{verb} pas" if verb[0] in VOWELS else f"ne {verb} pas"


def _noun(into: Into, rng: Random, kind: str, *, definite: bool) -> Pair:
    """Return a noun with its article, and perhaps an adjective, in both languages."""
    lists = _lists()
    noun = rng.choice(lists[kind])
    fitting = [one for one in lists["adjectives"] if noun["kind"] in one["of"]]
    adjective = rng.choice(fitting) if rng.random() < 0.6 else None
    english = noun["en"] if adjective is None else f"{adjective['en']} {noun['en']}"
    article = "the" if definite else "an" if english[0] in "aeiou" else "a"
    other = (_french if into == "fr" else _chinese)(noun, adjective, definite)
    return f"{article} {english}", other


def _french(noun: Word, adjective: Word | None, definite: bool) -> str:
    feminine, vowel = noun["gender"] == "f", noun["fr"][0] in VOWELS
    words = noun["fr"]
    if adjective is not None:
        form = adjective["feminine"] if feminine else adjective["masculine"]
        if adjective["place"] == "after":
            words = f"{words} {form}"
        else:
            words = f"{adjective['before_vowel'] if vowel and not feminine else form} {words}"
    if not definite:
        return f"{'une' if feminine else 'un'} {words}"
    return f"l'{words}" if words[0] in VOWELS else f"{'la' if feminine else 'le'} {words}"


def _chinese(noun: Word, adjective: Word | None, definite: bool) -> str:
    quality = "" if adjective is None else adjective["zh"]
    return f"{'这' if definite else '一'}{noun['measure']}{quality}{noun['zh']}"
