"""Forecasts of a text's next words, scored in bits: those of people beside a language model's.

A person names one token and how sure they are; the rest of their probability lies evenly on all other tokens. So a
guess is a distribution over the model's own vocabulary, and both are scored alike: -log2 of what came (Good 1952).
People's bits: Shannon 1951.
"""

import math
from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.gpt.kept_logits import kept_logits, labels_after
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding

MOST_WORDS = 10


@dataclass(frozen=True, eq=False)
class Ahead:
    """Some words of a text, and what a model expected in place of each.

    Shapes:
        ids: (word,), the first token of each word, which stands for it
        log_probs: (word, vocab), in nats, given all that comes before it

    Args:
        prompt: the model and the whole text.
        starts: where each word begins in the text, in characters.
        words: as they are written; tokens: labels of `ids`.
    """

    prompt: Prompt
    starts: tuple[int, ...]
    words: tuple[str, ...]
    tokens: tuple[str, ...]
    ids: np.ndarray
    log_probs: np.ndarray

    def text_before(self, place: int) -> str:
        """Return what is read before a word."""
        return self.prompt.text[: self.starts[place]]

    def token_of(self, place: int, guess: str) -> int:
        """Return the id of the token with which a guess would begin there, as the model's own tokenizer cuts it.

        Raises:
            ValueError: the guess is blank, or no token begins with it.
        """
        before = self.text_before(place)
        encoding = self.prompt.bundle.tokenizer.encode(before + guess.strip())
        if not guess.strip() or (found := _token_at(encoding, len(before))) is None:
            raise ValueError(f"guess={guess!r:.40} must be a word")
        return encoding.ids[found]

    def bits(self) -> np.ndarray:
        """Return the model's bits for each word. # (word,)"""
        return -self.log_probs[np.arange(len(self.ids)), self.ids] / math.log(2)

    def likeliest(self, place: int, count: int) -> np.ndarray:
        """Return the ids of the tokens that the model expected most in place of a word. # (count,)"""
        return np.argsort(-self.log_probs[place], kind="stable")[:count]

    def labels(self, place: int, ids: np.ndarray) -> tuple[str, ...]:
        """Return the labels of tokens in place of a word."""
        tokenizer = self.prompt.bundle.tokenizer
        return labels_after(tokenizer, tokenizer.encode(self.text_before(place), add_special=False).ids, ids)


def _token_at(encoding: Encoding, start: int) -> int | None:
    """Return the place of the first token that holds a character from there on, None where there is none."""
    return next((place for place in encoding.own if encoding.offsets[place][1] > start), None)


def _starts(text: str, first: int) -> list[tuple[int, int]]:
    """Return begin and end of the words from a place on; of writing without blanks, of its characters."""
    found, begin = [], None
    for place in range(first, len(text) + 1):
        inside = place < len(text) and not text[place].isspace()
        if inside and begin is None:
            begin = place
        elif not inside and begin is not None:
            found.append((begin, place))
            begin = None
    if len(found) == 1 and len(text[first:].split()) == 1 and not text[first:].isascii():
        return [(place, place + 1) for place in range(*found[0]) if text[place].isalnum()]
    return found


def words_ahead(*, prompt: Prompt, start: int, words: int) -> Ahead:
    """Return the words of a text from a place on, with a language model's distribution in place of each.

    Args:
        prompt: to a language model; the whole text must fit into it.
        start: where the first of them begins, in characters, after at least one token.
        words: how many.

    Raises:
        ValueError: the model is no language model, or the text has not so many words that it can read.
    """
    if not 1 <= words <= MOST_WORDS:
        raise ValueError(f"words={words} must be from 1 to {MOST_WORDS}")
    encoding, kept = prompt.encoding, kept_logits(prompt)
    if encoding.truncated:
        raise ValueError(
            f"text={prompt.text!r:.40} has {len(encoding) + encoding.truncated} tokens; the model reads {len(encoding)}"
        )
    spans = _starts(prompt.text, start)[:words]
    places = [_token_at(encoding, begin) for begin, _ in spans]
    if len(spans) < words or any(not place for place in places):
        raise ValueError(
            f"text={prompt.text!r:.40} must have a beginning and {words} words after it, and has {len(spans)}"
        )
    at = np.array(places, dtype=np.int64)
    ids = np.array(kept.ids)[at]
    log_probs = kept.logits[at - 1].double().log_softmax(-1).numpy()  # (word, vocab)
    tokens = tuple(kept.labels[place] for place in at)
    written = tuple(prompt.text[begin:end] for begin, end in spans)
    return Ahead(prompt, tuple(begin for begin, _ in spans), written, tokens, ids, log_probs)


def given(tokens: np.ndarray, sure: np.ndarray, came: int, vocab: int) -> np.ndarray:
    """Return the probability that each guess gave to what came.

    Shapes:
        tokens, sure, returns: (guess,)

    Args:
        tokens: guessed ids; sure: the probability of each, above 0 and below 1.
        came: the id of the word's token; vocab: how many tokens there are, on which the rest lies evenly.
    """
    return np.where(tokens == came, sure, (1 - sure) / (vocab - 1))


def bits_of_class(tokens: np.ndarray, sure: np.ndarray, came: int, vocab: int) -> tuple[float, float]:
    """Return the bits of a class as one forecaster, the mean of its distributions, and the mean bits of its people.

    The first is never more than the second (Jensen 1906).

    Raises:
        ValueError: there is no guess.
    """
    if not len(tokens):
        raise ValueError("tokens has no guesses; at least 1 is needed")
    probability = given(tokens, sure, came, vocab)
    return float(-np.log2(probability.mean())), float(-np.log2(probability).mean())
