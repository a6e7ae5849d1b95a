"""One corpus for two embeddings: the built-in reviews as words, with what their grammar uses each word for.

Read next: tiny_training.py.
"""

import functools
from dataclasses import dataclass

from transformer_core.text import Tokenizer
from transformer_core.training.corpora import Language, reviews
from transformer_core.training.corpora.grammar import load_grammar

REVIEWS = 4_000
LEAST_OFTEN = 8
MOST_WORDS = 1_000
KINDS = ("praise", "blame", "thing", "other")


@dataclass(frozen=True, eq=False)
class Corpus:
    """The built-in reviews of one language, cut into words.

    Chinese is cut into characters: its words are not told apart by blanks.

    Args:
        language: "en" or "zh".
        texts: as they were written.
        tokenizer: knows every word that occurs at least 8 times.
        rows: the ids of each text.
        kinds: of each id, what the grammar uses the word for: "praise", "blame", "thing" or "other".
    """

    language: Language
    texts: tuple[str, ...]
    tokenizer: Tokenizer
    rows: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]


@functools.cache
def one_corpus(language: Language) -> Corpus:
    """Write the reviews and cut them; always the same.

    Raises:
        ValueError: there is no such language.
    """
    texts = tuple(example.text for example in reviews(language, train=REVIEWS, held_out=0)[0])
    options = {"vocab_size": MOST_WORDS, "lowercase": True, "min_frequency": LEAST_OFTEN, "template": "none"}
    tokenizer = Tokenizer.train("word", texts, **options)
    rows = tuple(encoding.ids for encoding in tokenizer.encode_batch(texts))
    return Corpus(language, texts, tokenizer, rows, _kinds(tokenizer, language))


def _kinds(tokenizer: Tokenizer, language: Language) -> tuple[str, ...]:
    uses: dict[int, set[str]] = {}
    for lists in load_grammar(language).lists.values():
        for (_, polarity), words in lists.items():
            for word in words.known:
                id_ = tokenizer.id_of(word.lower())
                if id_ is not None:
                    uses.setdefault(id_, set()).add("thing" if polarity is None else ("blame", "praise")[polarity])
    single = {id_: next(iter(kinds)) for id_, kinds in uses.items() if len(kinds) == 1}
    return tuple(single.get(id_, "other") for id_ in range(tokenizer.vocab_size))
