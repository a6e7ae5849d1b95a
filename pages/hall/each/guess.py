"""Guess: every phone says which word comes next, and how sure it is; people and the model are scored alike, in bits."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pages.hall.each.frame import (
    BadPartError,
    Body,
    Given,
    Kind,
    Phone,
    Picture,
    Row,
    Slider,
    Task,
    bars,
    bundle_of,
    known,
    prompt_of,
    random_of,
    share_of,
)
from pages.hall.each.written import Each
from transformer_core.analysis.classroom.forecasts import Ahead, bits_of_class, words_ahead
from transformer_core.analysis.classroom.forecasts import given as given_to
from transformer_core.shares import mean_interval

SURE = (0.1, 0.3, 0.5, 0.7, 0.9)
LONGEST_GUESS = 24
TOP = 5  # of the class's tokens, and of the model's


class Guess(Kind[Ahead]):
    """What is kept of a guess is the id of its first token, and how sure it is."""

    def question(self, each: Each, state: Mapping[str, str]) -> tuple[Callable[..., Ahead], Body]:
        """Return what a model expects of the words after the sign | of the text."""
        before, after = each.items[0].split(" | ")
        text = f"{before} {after}" if before.isascii() else before + after
        prompt = prompt_of(bundle_of(each, state), text)
        return words_ahead, {"prompt": prompt, "start": len(text) - len(after), "words": int(each["words"])}

    def rounds(self, each: Each) -> int:
        """Return how many words are guessed."""
        return int(each["words"])

    def slider(self, each: Each) -> Slider:
        """Return which word is looked at."""
        return Slider("word", 1, self.rounds(each), 1, 1)

    def part(self, task: Task[Ahead], phone: Phone, given: Sequence[Any]) -> Body:
        """Return the text up to the next word, and what came of the words before."""
        ahead, here = task.exact, len(given)
        results = []
        for place, (token, sure) in enumerate(given):
            share = float(
                given_to(np.array([token]), np.array([sure]), int(ahead.ids[place]), ahead.log_probs.shape[1])[0]
            )
            results.append(task.say("guessed", word=ahead.words[place], bits=f"{-np.log2(share):.1f}"))
        if here == self.rounds(task.each):
            return {"lines": [ahead.prompt.text], "results": results, "ask": None}
        sure = [[share, f"{share:.0%}"] for share in SURE]
        asked = {
            "type": "text",
            "label": task.say("do_guess"),
            "longest": LONGEST_GUESS,
            "sure": sure,
            "how_sure": task.say("how_sure"),
        }
        place = task.say("word_of", number=here + 1, count=self.rounds(task.each))
        return {"lines": [ahead.text_before(here) + " …", place], "results": results, "ask": asked}

    def take(self, task: Task[Ahead], phone: Phone, place: int, said: Any) -> list[Any]:
        """Return the token with which the guess begins, and how sure it is."""
        word, sure = said if isinstance(said, list) and len(said) == 2 else ("", 0)
        if not isinstance(word, str) or not word.isprintable() or not 1 <= len(word.strip()) <= LONGEST_GUESS:
            raise BadPartError(f"said={said!r:.60} must be a word of at most {LONGEST_GUESS} characters, and how sure")
        try:
            token = task.exact.token_of(place, word)
        except ValueError as error:
            raise BadPartError(str(error)) from None
        return [token, share_of(sure, SURE[0], SURE[-1])]

    def other(self, task: Task[Ahead], phone: Phone) -> list[Any]:
        """Return tokens drawn from the model, each as sure as the model is of it, within SURE."""
        found, rng = [], random_of(phone)
        for row in np.exp(task.exact.log_probs):
            token = int(np.searchsorted(np.cumsum(row), rng.random() * row.sum(), side="right"))
            token = min(token, len(row) - 1)
            found.append([token, float(np.clip(row[token], SURE[0], SURE[-1]))])
        return found

    def picture(self, task: Task[Ahead], given: Sequence[Given]) -> Picture:
        """Return the bits of each word, and once the answers are shown what was expected in place of one."""
        ahead, vocab = task.exact, task.exact.log_probs.shape[1]
        model = ahead.bits()
        rows, table, gaps, alone, exact = [], [], [], [], []
        of_words = _of_words(given, len(ahead.words))
        for place, (word, (tokens, sure)) in enumerate(zip(ahead.words, of_words, strict=True)):
            together, people = (
                bits_of_class(tokens, sure, int(ahead.ids[place]), vocab) if len(tokens) else (float("nan"),) * 2
            )
            label = f"{place + 1}. {word}" if task.open else task.say("word", number=place + 1)
            rows.append(
                {
                    "label": label,
                    "values": [known(together), known(model[place]) if task.open else None],
                    "n": len(tokens),
                }
            )
            table.append(Row(word if task.open else label, len(tokens), known(together), known(model[place]), "bits"))
            if len(tokens):
                gaps.append(together - model[place])
                alone.append(people)
                exact.append(model[place])
        names = [task.say("of_class"), task.say("of_model")]
        figures = [bars(task.say("title_guess"), "bits", names, rows)]
        if task.open:
            figures.append(self._one(task, of_words))
        return task.picture(
            figures, _said(task, np.array(gaps), np.array(alone), np.array(exact), len(given)), table, given
        )

    def _one(self, task: Task[Ahead], of_words: Sequence[tuple[np.ndarray, np.ndarray]]) -> Body:
        """Return what the class and the model expected in place of the word that the slider is at."""
        ahead, place = task.exact, min(int(task.setting or 1), len(task.exact.ids)) - 1
        tokens, sure = of_words[place]
        came, model = int(ahead.ids[place]), np.exp(ahead.log_probs[place])
        counts = np.bincount(tokens, minlength=len(model))
        people = np.zeros(len(model))  # the mean of the class's distributions, of the tokens that somebody named
        for token in np.flatnonzero(counts).tolist():
            people[token] = given_to(tokens, sure, token, len(model)).mean()
        foremost = [int(token) for token in np.argsort(-people, kind="stable")[:TOP] if people[token]]
        ids = np.array(list(dict.fromkeys([came, *foremost, *ahead.likeliest(place, TOP).tolist()])))
        rows = [
            {
                "label": f"{'✓ ' if token == came else ''}“{label}”",
                "values": [known(float(people[token])) if len(tokens) else None, known(float(model[token]))],
                "n": int(counts[token]),
            }
            for token, label in zip(ids.tolist(), ahead.labels(place, ids), strict=True)
        ]
        title = task.say("title_word", number=place + 1, before=ahead.text_before(place)[-40:])
        return bars(title, "share", [task.say("of_class"), task.say("of_model")], rows, most=1.0)


def _of_words(given: Sequence[Given], count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the tokens that were guessed in place of each word, and how sure the guesses were."""
    said: list[list[list[float]]] = [[] for _ in range(count)]
    for one in given:
        said[one.round].append(one.said)
    tables = [np.array(of_word, dtype=np.float64).reshape(-1, 2) for of_word in said]
    return [(table[:, 0].astype(np.int64), table[:, 1]) for table in tables]


def _said(task: Task[Ahead], gaps: np.ndarray, alone: np.ndarray, model: np.ndarray, n: int) -> list[str]:
    if not len(gaps):
        return [task.say("none_guessed")]
    if not task.open:
        return [task.say("even_rest")]
    gap, low, high = mean_interval(gaps)
    values = {
        "words": len(gaps),
        "n": n,
        "together": f"{(gaps + model).mean():.2f}",
        "alone": f"{alone.mean():.2f}",
        "model": f"{model.mean():.2f}",
    }
    found = [task.say("bits_of", **values)]
    if np.isfinite(low):
        key = "class_better" if high < 0 else "model_better" if low > 0 else "undecided"
        found.append(task.say(key, gap=f"{gap:+.2f}", low=f"{low:+.2f}", high=f"{high:+.2f}"))
    return [*found, task.say("even_rest")]
