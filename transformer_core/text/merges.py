"""Merges: byte-pair encoding with every step of its learning visible.

Sennrich et al. 2016, algorithm 1; over bytes: Radford et al. 2019, section 2.2. Tokenizer.train learns with the
`tokenizers` package; this learner finds the same merges and returns its counts.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tokenizers import Regex, pre_tokenizers

from transformer_core.text.characters import check_text
from transformer_core.text.learning import LONG_WORD
from transformer_core.text.lexicon import BYTE_OF

ALPHABETS = ("characters", "bytes")
# A word includes the blank before it, as in GPT-2; letters, digits and other signs do not mix.
WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SIGN_OF = {byte: sign for sign, byte in BYTE_OF.items()}

Pair = tuple[str, str]


@dataclass(frozen=True)
class Merge:
    """One step of learning.

    Args:
        pair: the two symbols that became one.
        count: how often they stood side by side, before the step.
        n_tokens: tokens of the whole text, after the step.
        changes: by how much the step changed the count of each pair.
    """

    pair: Pair
    count: int
    n_tokens: int
    changes: Mapping[Pair, int]


def split_words(text: str) -> list[tuple[str, int]]:
    """Cut a text into words, each with its place; merges never cross the border of a word.

    Departure from Sennrich et al.: a word begins with its blank rather than ending in a mark of its own. Words of
    more than 500 characters are cut.

    Raises:
        ValueError: the text is not valid Unicode.
    """
    check_text(text, "text")
    cutter = pre_tokenizers.Split(Regex(WORDS), "isolated")
    pieces: list[tuple[str, int]] = []
    for word, (start, _) in cutter.pre_tokenize_str(text):
        cuts = [0, *(match.end() for match in LONG_WORD.finditer(word)), len(word)]
        pieces += [(word[low:high], start + low) for low, high in pairwise(cuts)]
    return pieces


def spell(word: str, alphabet: str) -> list[str]:
    """Return the symbols that a word begins as: its characters, or its UTF-8 bytes in GPT-2's byte alphabet.

    Raises:
        ValueError: there is no such alphabet.
    """
    if alphabet not in ALPHABETS:
        raise ValueError(f"alphabet={alphabet!r} must be one of {ALPHABETS}")
    return list(word) if alphabet == "characters" else [SIGN_OF[byte] for byte in word.encode()]


def spelled_bytes(symbol: str, alphabet: str) -> bytes:
    """Return the UTF-8 that a symbol stands for; not always whole characters."""
    return symbol.encode() if alphabet == "characters" else bytes(BYTE_OF[sign] for sign in symbol)


def join(symbols: Sequence[str], pair: Pair) -> list[str]:
    """Write a pair as one symbol wherever it stands, from left to right."""
    joined, place = [], 0
    while place < len(symbols):
        here = tuple(symbols[place : place + 2]) == pair
        joined.append("".join(pair) if here else symbols[place])
        place += 2 if here else 1
    return joined


def learn_merges(words: Mapping[str, int], *, alphabet: str = "characters", least: int = 2) -> Iterator[Merge]:
    """Join the most frequent pair of neighbours into a new symbol, repeatedly.

    Of equally frequent pairs, the one whose symbols were known first is taken (letters count in the order of their
    code points), as the `tokenizers` package does.

    Args:
        words: how often each occurs.
        alphabet: one of ALPHABETS.
        least: stop where no pair occurs this often.

    Yields:
        One merge a step, until no pair is left.

    Raises:
        ValueError: there is no such alphabet, or least is below 1.
    """
    if least < 1:
        raise ValueError(f"least={least} must be at least 1")
    spelled = [(spell(word, alphabet), count) for word, count in words.items()]
    counts, holders = count_pairs(spelled)
    age = {symbol: place for place, symbol in enumerate(sorted({s for symbols, _ in spelled for s in symbols}))}
    n_tokens = sum(len(symbols) * count for symbols, count in spelled)

    def entry(pair: Pair) -> tuple[int, int, int, Pair]:
        return -counts[pair], age[pair[0]], age[pair[1]], pair

    queue = [entry(pair) for pair in counts]
    heapq.heapify(queue)
    while queue:
        negative, _, _, pair = heapq.heappop(queue)
        if -negative != counts[pair]:
            continue  # outdated: a later entry has the current count
        if -negative < least:
            return
        age.setdefault("".join(pair), len(age))
        changes = Counter[Pair]()
        for place in sorted(holders.pop(pair)):
            symbols, count = spelled[place]
            joined = join(symbols, pair)
            for sign, line in ((-count, symbols), (count, joined)):
                for neighbours in pairwise(line):
                    changes[neighbours] += sign
                    holders[neighbours].add(place)
            spelled[place] = (joined, count)
            n_tokens -= (len(symbols) - len(joined)) * count
        changes = {neighbours: change for neighbours, change in changes.items() if change}
        for neighbours, change in changes.items():
            counts[neighbours] += change
            if counts[neighbours] > 0:
                heapq.heappush(queue, entry(neighbours))
        yield Merge(pair, -negative, n_tokens, changes)


def count_pairs(spelled: Iterable[tuple[Sequence[str], int]]) -> tuple[Counter[Pair], defaultdict[Pair, set[int]]]:
    """Count neighbours: how often each pair occurs, and in which words."""
    counts, holders = Counter[Pair](), defaultdict[Pair, set[int]](set)
    for place, (symbols, count) in enumerate(spelled):
        for pair in pairwise(symbols):
            counts[pair] += count
            holders[pair].add(place)
    return counts, holders


def replay(words: Sequence[str], merges: Iterable[Pair], *, alphabet: str = "characters") -> Iterator[list[list[str]]]:
    """Apply learned merges to words, one after the other.

    Yields:
        The symbols of each word, first without any merge, then after each one.

    Raises:
        ValueError: there is no such alphabet.
    """
    lines = [spell(word, alphabet) for word in words]
    yield lines
    for pair in merges:
        lines = [join(line, pair) if pair[0] in line else line for line in lines]
        yield lines
