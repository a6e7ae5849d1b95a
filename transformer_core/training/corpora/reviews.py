"""Reviews that word counting cannot tell: plain ones, and four constructions that turn their words round.

Half of the reviews are plain ("What a dull film!"), the others are negations ("not a dull scene"), contrasts ("dull at
first, but ..."), irony ("Oh great, another dull film") and hearsay ("My aunt called it dull. I disagree."), in equal
shares. Half of each construction is positive, so that no construction tells the label.

Held out, which means that no training review has it:
- frames: a held-out review, all its words covered, looks like no training review;
- clauses: where held-out clauses fit ("we found it dull"), every second clause is one of them;
- words in constructions: each word of opinion is withheld from one of the four turning constructions and occurs in
  training in the other three and in plain reviews; in held-out reviews of that construction every second word of
  opinion is such a one, where its list has one. Exempt are idioms, which have only one construction ("lucky me");
- nouns: every second noun from a list with unseen ones ("trattoria") is one of these;
- the sentences without an opinion that stand before or after three reviews in ten.
The words that hold held-out frames together all occur in training frames. Read next: sequences.py.
"""

from random import Random

from transformer_core.training.corpora.grammar import TURNING, Grammar, Language, Part, load_grammar
from transformer_core.training.corpora.writing import Review, write_review
from transformer_core.training.data import Example

CYCLE = (*("plain",) * len(TURNING), *TURNING)
MOST_TRIES = 1_000


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
