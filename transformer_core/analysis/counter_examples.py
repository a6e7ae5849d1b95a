"""Counter-examples by one changed word: the closest texts for which a model predicts something else.

After HotFlip (Ebrahimi et al. 2018) and contrast sets (Gardner et al. 2020), by trying a bounded number of texts.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.analysis.outcome import require_outcome
from transformer_core.analysis.parts import input_embedding
from transformer_core.analysis.positions.order_cases import LABELS, LANGUAGES
from transformer_core.analysis.words.vocabulary import embedding_matrix, unit_rows
from transformer_core.bundle import Bundle
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.reader import Outcome
from transformer_core.text import Encoding, make_batch
from transformer_core.text.encoding import WORD, Word, words_of
from transformer_core.training.corpora.grammar import load_grammar

MOST_TRIED, MOST_READ = 64, 2_400  # texts, and tokens of them all
FEWEST_TRIED = 12
NEAREST = 4
SHOWN = 2
LIKE = 0.7  # cosine from which on a word is exchanged as the word of opinion nearest to it is
VOWELS = "aeiou"


@dataclass(frozen=True)
class CounterExample:
    """A text with one word changed.

    Args:
        text: the new one; start, end: where the new word stands in it, equal where the old word was left out.
        old, new: the word that went, and the one that came, empty for none.
        winner: the likeliest outcome of the new text; probability: its own.
        left: the probability that is left to the old text's winner.
    """

    text: str
    start: int
    end: int
    old: str
    new: str
    winner: int
    probability: float
    left: float


@dataclass(frozen=True)
class CounterExamples:
    """What one changed word does to what a model predicts.

    Args:
        winner: the likeliest outcome of the text; before: its probability.
        found: the texts that turn it, those that turn it furthest first; where none does, those that come closest.
        turns: how many of the texts that were tried turn it.
        tried: how many texts were tried.
    """

    winner: int
    before: float
    found: tuple[CounterExample, ...]
    turns: int
    tried: int


@dataclass(frozen=True, eq=False)
class _Lists:
    """The words of the built-in reviews' lists.

    Args:
        others: for each word what may stand in its place, words of the other polarity first.
        opinions: the words that have a polarity.
    """

    others: dict[str, tuple[str, ...]]
    opinions: tuple[str, ...]


@functools.lru_cache(maxsize=1)
def _lists() -> _Lists:
    found: dict[str, dict[str, None]] = {}
    opinions: dict[str, None] = {}
    for language in LANGUAGES:
        for lists in load_grammar(language).lists.values():
            for (name, polarity), words in lists.items():
                other = () if polarity is None else lists[name, 1 - polarity].known
                single = [word for word in (*other, *words.known) if WORD.fullmatch(word) or not word.isascii()]
                opinions |= {} if polarity is None else dict.fromkeys(word.lower() for word in words.known)
                for word in words.known:
                    found.setdefault(word.lower(), {}).update(dict.fromkeys(single))
    others = {word: tuple(other for other in others if other.lower() != word) for word, others in found.items()}
    return _Lists(others, tuple(opinions))


@functools.lru_cache(maxsize=4)
def _opinions_known(bundle: Bundle) -> tuple[tuple[str, ...], Tensor]:
    """Return the words of opinion that are one entry of a vocabulary, and the unit rows of their embeddings."""
    known = {word: bundle.tokenizer.id_of(word) for word in _lists().opinions}
    there = {word: number for word, number in known.items() if number is not None}
    return tuple(there), unit_rows(embedding_matrix(bundle.model))[list(there.values())]


@functools.lru_cache(maxsize=4)
def _whole_words(bundle: Bundle) -> tuple[tuple[str, ...], Tensor, Tensor]:
    """Return the entries of a vocabulary that are words, their ids, and the unit rows of their embeddings."""
    marked = bundle.tokenizer.kind == "bpe"  # there a word begins with a blank
    names, ids = [], []
    for number in range(min(bundle.tokenizer.vocab_size, bundle.config.vocab_size)):
        word = bundle.tokenizer.bytes_of(number).decode("utf-8", "replace")
        if (not marked or word.startswith(" ")) and len(word.strip()) > 1 and WORD.fullmatch(word.strip()):
            names.append(word.strip())
            ids.append(number)
    rows = unit_rows(embedding_matrix(bundle.model))
    return tuple(names), torch.tensor(ids, dtype=torch.long), rows


def _swaps(bundle: Bundle, encoding: Encoding, word: Word) -> tuple[str, ...]:
    """Return what may stand in a word's place: words of its list, or the nearest words of the model's vocabulary."""
    old = encoding.text[word.start : word.end]
    if of_reviews(bundle):
        return _lists().others.get(old.lower(), ())
    names, ids, rows = _whole_words(bundle)
    if not names or len(word.places) != 1 or not WORD.fullmatch(old):
        return ()
    nearest = (rows[ids] @ rows[encoding.ids[word.places[0]]]).topk(min(NEAREST + 1, len(names))).indices.tolist()
    return tuple(names[place] for place in nearest if names[place].lower() != old.lower())[:NEAREST]


def _swaps_of_the_like(bundle: Bundle, encoding: Encoding, word: Word) -> tuple[str, ...]:
    """Return what may stand in the place of the word of opinion that is most like this word to the model."""
    names, rows = _opinions_known(bundle)
    if not names or len(word.places) != 1:
        return ()
    own = input_embedding(bundle.model).token.weight[encoding.ids[word.places[0]]].detach().float().cpu()
    likeness, place = (rows @ unit_rows(own[None])[0]).max(0)
    return _lists().others[names[int(place)]] if float(likeness) >= LIKE else ()


def of_reviews(bundle: Bundle) -> bool:
    """Return whether a model classifies reviews, so that the lists of the built-in ones fit it."""
    return bundle.kind == "classifier" and bundle.labels == LABELS


def _candidates(bundle: Bundle, encoding: Encoding, outcome: Outcome, most: int) -> list[tuple[int, int, str]]:
    """Return where a word goes, and what comes: nothing, or a word; every word has its turn before one has its next."""
    text = encoding.text
    words = [word for word in words_of(encoding) if text[word.start].isalnum() and outcome.place not in word.places]
    swaps = [_swaps(bundle, encoding, word) for word in words]
    opinions = set(_lists().opinions)
    if of_reviews(bundle) and not any(text[word.start : word.end].lower() in opinions for word in words):
        swaps = [there or _swaps_of_the_like(bundle, encoding, word) for there, word in zip(swaps, words, strict=True)]
    queues = [list(_fitting(text, word, there)) for word, there in zip(words, swaps, strict=True)]
    found = [(word.start, word.end, "") for word in words][: most // 2]
    for turn in range(max(map(len, queues), default=0)):
        found += [queue[turn] for queue in queues if turn < len(queue)]
    return found[:most]


def _fitting(text: str, word: Word, swaps: tuple[str, ...]) -> Iterator[tuple[int, int, str]]:
    """Yield the words that may stand in a word's place, so that "a" and "an" before it stay right."""
    article = re.search(r"\b(an?) $", text[: word.start], re.IGNORECASE)
    for new in swaps:
        if article is None or (new[:1].lower() in VOWELS) == (article[1].lower() == "an"):
            yield word.start, word.end, new[:1].upper() + new[1:] if text[word.start].isupper() else new


def _changed(text: str, start: int, end: int, new: str) -> tuple[str, int, int]:
    """Return the new text, and where the new word stands in it; a removed word takes one blank beside it along."""
    if not new:
        before, after = text[:start], text[end:]
        if before.endswith(" ") or not before:
            before, after = before.removesuffix(" "), after if before else after.lstrip()
        return before + after, len(before), len(before)
    return text[:start] + new + text[end:], start, start + len(new)


@torch.inference_mode()
def _probabilities(bundle: Bundle, encodings: list[Encoding]) -> Tensor:
    """Return the probability of every outcome of each text, (text, outcome), each read at its own place."""
    device, reader = bundle.device, bundle.reader
    slots = [reader.required(each).slot for each in encodings]
    parts, at_once = [], reader.at_once(max(map(len, encodings)), MOST_TRIED)
    for start in range(0, len(encodings), at_once):
        ids = make_batch(encodings[start : start + at_once], padding=bundle.config.padding).token_ids
        output, _ = capture(bundle.model, ids.to(device), sites=())
        read = slots[start : start + at_once]
        parts.append(reader.scores(output)[range(len(read)), read])
    return torch.cat(parts).float().softmax(-1).cpu()


def counter_examples(*, prompt: Prompt) -> CounterExamples:
    """Leave each word out, exchange it for others, and find the texts for which the prediction changes.

    A classifier of reviews has the words of the built-in reviews' lists to try, other models the nearest words of their
    own vocabulary. Of several texts with the same word changed, one is shown where another word turns it, too.

    Args:
        prompt: to a model of a kind that predicts something from this text.

    Raises:
        ValueError: the model predicts nothing from the text.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    outcome = require_outcome(bundle, encoding)
    most = max(FEWEST_TRIED, min(MOST_TRIED, MOST_READ // len(encoding)))
    tried = [(place, *_changed(prompt.text, *place)) for place in _candidates(bundle, encoding, outcome, most)]
    tried = [each for each in tried if each[1].strip()]
    texts, longest = [prompt.text, *(each[1] for each in tried)], min(prompt.n_tokens + 8, bundle.config.max_len)
    encodings = bundle.tokenizer.encode_batch(texts, max_len=longest)
    readable = [number for number, each in enumerate(encodings) if bundle.reader.outcome(each) is not None]
    rows = _probabilities(bundle, [encodings[number] for number in readable])  # (text, outcome)
    winner, before = int(rows[0].argmax()), float(rows[0].max())
    found = []
    for row, number in zip(rows[1:], readable[1:], strict=True):
        (start, end, new), changed, there, then = tried[number - 1]
        best = int(row.argmax())
        found.append(
            CounterExample(
                changed, there, then, prompt.text[start:end], new, best, float(row[best]), float(row[winner])
            )
        )
    found.sort(key=lambda each: (each.winner == winner, each.left))
    turning = [each for each in found if each.winner != winner]
    return CounterExamples(winner, before, _of_two_words(turning or found), len(turning), len(found))


def _of_two_words(found: list[CounterExample]) -> tuple[CounterExample, ...]:
    """Return the first, and the first that changes another word or, failing that, changes it in another way."""
    if not found:
        return ()
    first, *rest = found
    other = [each for each in rest if each.old.lower() != first.old.lower()]
    other += [each for each in rest if bool(each.new) != bool(first.new)] + rest
    return (first, *other[: SHOWN - 1])
