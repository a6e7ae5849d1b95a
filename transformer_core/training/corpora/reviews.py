"""x

Read next: sequences.py.
"""

import os
from random import Random

from transformer_core.training.corpora.grammar import TURNING, Grammar, Language, Part, load_grammar
from transformer_core.training.corpora.writing import Review, write_review
from transformer_core.training.data import Example

MOST_TRIES = 400
CYCLE = ("plain",) * int(os.environ.get("NP", "4")) + TURNING + ("contrast",) * int(os.environ.get("NC", "1"))


def written(language: Language, *, train: int, held_out: int, seed: int = 0) -> tuple[list[Review], list[Review]]:
    grammar = load_grammar(language)
    seen: set[str] = set()
    parts: list[list[Review]] = []
    for part, number in (("train", train), ("held_out", held_out)):
        rng = Random(f"{language} {part} {seed}")
        reviews = [_new(grammar, part, place, seen, rng) for place in range(number)]
        rng.shuffle(reviews)
        parts.append(reviews)
    return parts[0], parts[1]


def reviews(language: Language, *, train: int, held_out: int, seed: int = 0) -> tuple[list[Example], list[Example]]:
    first, second = written(language, train=train, held_out=held_out, seed=seed)
    return [review.example for review in first], [review.example for review in second]


def _new(grammar: Grammar, part: Part, place: int, seen: set[str], rng: Random) -> Review:
    construction = CYCLE[place // 2 % len(CYCLE)]
    for _ in range(MOST_TRIES):
        review = write_review(grammar, construction, part, place % 2, rng)
        if review.text not in seen:
            seen.add(review.text)
            return review
    raise ValueError("too many")
