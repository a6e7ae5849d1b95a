"""Merging: what byte-pair encoding knows after its first k merges, and how it cuts a sentence then.

Sennrich et al. 2016, section 3.2.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice

import numpy as np

from transformer_core.analysis.words.tokenizer_comparison import CORPORA, corpus_text
from transformer_core.config import require_choice, require_range
from transformer_core.text.characters import visible
from transformer_core.text.lexicon import BYTE_OF, label_pieces
from transformer_core.text.merges import Pair, count_pairs, learn_merges, replay, spell, spelled_bytes, split_words

OWN = "own"
MOST_MERGES = 1_000
MOST_CHARACTERS = 200_000
MOST_RIVALS = 10


@dataclass(frozen=True, eq=False)
class MergeStep:
    """What has been learned after a number of merges, and the sentence cut with them.

    Shapes:
        n_tokens, sentence_tokens: (merges + 1,), first without any merge
        counts: (merges,)

    Args:
        step: merges made.
        n_words: words of the text, each as often as it occurs.
        n_alphabet: symbols before the first merge.
        n_tokens: of the whole text after each number of merges.
        sentence_tokens: of the sentence, likewise.
        lefts, rights: the pair that each merge joined, readable.
        counts: how often each stood side by side when it was joined.
        rivals: the most frequent pairs from which this step chose, the chosen one first; before any, the first step's.
        rival_counts: how often each occurred.
        labels, ids, starts, ends, unknown, shared, spelled: the sentence's tokens at this step, as in `Cut`; an id is
            the place in the vocabulary, letters first and then what was joined, -1 for a letter that is not in it.
        fresh: whether a token is what this step joined.
    """

    step: int
    n_words: int
    n_alphabet: int
    n_tokens: np.ndarray
    sentence_tokens: np.ndarray
    lefts: tuple[str, ...]
    rights: tuple[str, ...]
    counts: np.ndarray
    rivals: tuple[str, ...]
    rival_counts: tuple[int, ...]
    labels: tuple[str, ...]
    ids: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    unknown: tuple[bool, ...]
    shared: tuple[bool, ...]
    spelled: tuple[str, ...]
    fresh: tuple[bool, ...]


@dataclass(frozen=True, eq=False)
class _Lesson:
    """All merges of a text, and by how much each changed the count of each pair; `changed` begins with the start."""

    alphabet: tuple[str, ...]
    merges: tuple[Pair, ...]
    counts: np.ndarray  # (merge,)
    n_tokens: np.ndarray  # (merge + 1,)
    n_words: int
    pairs: tuple[Pair, ...]
    changed: np.ndarray  # (change,), places in pairs
    changes: np.ndarray  # (change,)
    ends: np.ndarray  # (merge + 1,), how many of the changes had happened after each number of merges


@lru_cache(maxsize=16)
def _lesson(text: str, alphabet: str) -> _Lesson:
    words = Counter(word for word, _ in split_words(text))
    spelled = [(spell(word, alphabet), count) for word, count in words.items()]
    start, _ = count_pairs(spelled)
    merges = list(islice(learn_merges(words, alphabet=alphabet), MOST_MERGES))
    history = [start, *(merge.changes for merge in merges)]
    place = {pair: number for number, pair in enumerate(dict.fromkeys(pair for part in history for pair in part))}
    n_start = sum(len(symbols) * count for symbols, count in spelled)
    return _Lesson(
        alphabet=_letters(spelled, alphabet),
        merges=tuple(merge.pair for merge in merges),
        counts=np.array([merge.count for merge in merges], dtype=np.int64),
        n_tokens=np.array([n_start, *(merge.n_tokens for merge in merges)]),
        n_words=words.total(),
        pairs=tuple(place),
        changed=np.array([place[pair] for part in history for pair in part], dtype=np.int64),
        changes=np.array([change for part in history for change in part.values()], dtype=np.int64),
        ends=np.array(list(accumulate(map(len, history)))),
    )


def _letters(spelled: Iterable[tuple[Sequence[str], int]], alphabet: str) -> tuple[str, ...]:
    """Return the symbols of the start: every byte there is, or the characters of the text."""
    return tuple(sorted(BYTE_OF if alphabet == "bytes" else {symbol for symbols, _ in spelled for symbol in symbols}))


def learnable(*, corpus: str, pasted: str, alphabet: str) -> int:
    """Return how many merges a text has, MOST_MERGES at most; the arguments are those of merge_step.

    Raises:
        ValueError: an argument is out of range, or a text is too long, or no Unicode.
    """
    return len(_lesson(_learned_from(corpus, pasted), alphabet).merges)


def merge_step(*, corpus: str, pasted: str, alphabet: str, merges: int, step: int, text: str) -> MergeStep:
    """Learn merges from a text, and look at one step of that.

    Args:
        corpus: one of CORPORA, or "own" for the pasted text.
        pasted: what to learn from where corpus is "own".
        alphabet: "characters" or "bytes".
        merges: how many to learn; fewer where no pair occurs twice any more.
        step: how many of them have been made.
        text: the sentence to cut.

    Raises:
        ValueError: an argument is out of range, or a text is too long, without a pair that occurs twice, or no Unicode.
    """
    lesson = _lesson(_learned_from(corpus, pasted), alphabet)
    if not lesson.merges:
        raise ValueError(
            f"no two neighbours occur twice among {lesson.n_words} words; there must be text to learn from"
        )
    require_range("merges", merges, 1, MOST_MERGES)
    made = lesson.merges[:merges]
    require_range("step", step, 0, len(made))
    rivals = _rivals(lesson, max(step, 1))
    shown = [label_pieces([spelled_bytes(symbol, alphabet) for symbol in pair]) for pair in made]
    return MergeStep(
        step=step,
        n_words=lesson.n_words,
        n_alphabet=len(lesson.alphabet),
        n_tokens=lesson.n_tokens[: len(made) + 1],
        lefts=tuple(left for left, _ in shown),
        rights=tuple(right for _, right in shown),
        counts=lesson.counts[: len(made)],
        rivals=tuple(
            " + ".join(label_pieces([spelled_bytes(symbol, alphabet) for symbol in pair])) for pair, _ in rivals
        ),
        rival_counts=tuple(count for _, count in rivals),
        **_sentence(lesson, made, step, text, alphabet),
    )


def _learned_from(corpus: str, pasted: str) -> str:
    require_choice("corpus", corpus, (*CORPORA, OWN))
    text = pasted if corpus == OWN else corpus_text(corpus)
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"pasted has {len(text):,} characters; it may have {MOST_CHARACTERS:,}")
    return text


def _rivals(lesson: _Lesson, step: int) -> list[tuple[Pair, int]]:
    """Return the most frequent pairs just before a step, the one that it joined first."""
    end = lesson.ends[step - 1]
    counts = np.zeros(len(lesson.pairs), dtype=np.int64)
    np.add.at(counts, lesson.changed[:end], lesson.changes[:end])
    joined = lesson.pairs.index(lesson.merges[step - 1])
    order = sorted(
        np.argsort(-counts, kind="stable")[: 2 * MOST_RIVALS], key=lambda place: (-counts[place], place != joined)
    )
    order = [joined, *(place for place in order if place != joined)][:MOST_RIVALS]
    return [(lesson.pairs[place], int(counts[place])) for place in order if counts[place] > 0]


def _sentence(lesson: _Lesson, merges: tuple[Pair, ...], step: int, text: str, alphabet: str) -> dict:
    cut = split_words(text)
    words = list(dict.fromkeys(word for word, _ in cut))
    often = Counter(word for word, _ in cut)
    ids = {symbol: id_ for id_, symbol in enumerate(dict.fromkeys([*lesson.alphabet, *map("".join, merges)]))}
    n_tokens, lines = [], {}
    for number, symbols in enumerate(replay(words, merges, alphabet=alphabet)):
        n_tokens.append(sum(len(line) * often[word] for word, line in zip(words, symbols, strict=True)))
        if number == step:
            lines = dict(zip(words, symbols, strict=True))
    tokens = [token for word, start in cut for token in _placed(word, start, lines[word], alphabet)]
    spelled = [spelled_bytes(symbol, alphabet) for symbol, _, _ in tokens]
    starts, ends = [start for _, start, _ in tokens], [end for _, _, end in tokens]
    return {
        "sentence_tokens": np.array(n_tokens),
        "labels": tuple(label_pieces(spelled)) if alphabet == "bytes" else tuple(visible(t) for t, _, _ in tokens),
        "ids": tuple(ids.get(symbol, -1) for symbol, _, _ in tokens),
        "starts": tuple(starts),
        "ends": tuple(ends),
        "unknown": tuple(symbol not in ids for symbol, _, _ in tokens),
        "shared": tuple(
            (place > 0 and ends[place - 1] > starts[place])
            or (place + 1 < len(tokens) and starts[place + 1] < ends[place])
            for place in range(len(tokens))
        ),
        "fresh": tuple(step > 0 and symbol == "".join(merges[step - 1]) for symbol, _, _ in tokens),
        "spelled": tuple(piece.hex(" ").upper() for piece in spelled),
    }


def _placed(word: str, start: int, symbols: list[str], alphabet: str) -> list[tuple[str, int, int]]:
    """Return each symbol of a word with the start and end of the characters that it stands for."""
    owner = [place for place, character in enumerate(word, start) for _ in character.encode()]  # (byte,)
    sizes = [len(spelled_bytes(symbol, alphabet)) for symbol in symbols]
    lows = [0, *accumulate(sizes)]
    return [
        (symbol, owner[low], owner[low + size - 1] + 1) for symbol, low, size in zip(symbols, lows, sizes, strict=False)
    ]
