"""Sets of texts that a model is measured on: those that its run held out, built-in ones, or those of a person."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Literal

import torch

from transformer_core.analysis.lab.cases import (
    MOST_SET_TOKENS,
    MOST_WORDS,
    Cases,
    answer_of,
    batches,
    own_places,
    per_model,
    with_answers,
    with_targets,
)
from transformer_core.bundle import Answered, Bundle
from transformer_core.generation.translate import translate
from transformer_core.text import Encoding
from transformer_core.training.corpora.reviews import passage, reviews
from transformer_core.untrusted.bundle_files import LANGUAGES

MOST_GIVEN_TOKENS = 128  # of a text that somebody gives
MOST_UNKNOWN = 0.3  # of the tokens of texts that are not a run's own
OPINIONS = ("negative", "positive")  # of the built-in reviews, 0 and 1
Among = Literal["held_out", "built_in"] | tuple[Answered, ...] | None  # texts; None: held-out where there are any


def language_read(bundle: Bundle) -> str:
    """Return the language of the built-in texts that suit a model."""
    return bundle.reads if bundle.reads in LANGUAGES else "en"


def class_texts(bundle: Bundle, label: int, count: int = 48, seed: int = 0) -> tuple[str, ...]:
    """Return held-out texts of one class: of the run that a classifier is of, else built-in reviews in the language
    that a model reads, 0 negative and 1 positive.

    Raises:
        ValueError: there is none.
    """
    if bundle.reader.asks == "class" and bundle.read_held_out is not None:
        found = tuple(text for text, answer in bundle.read_held_out() if answer == label)[:count]
        if not found:
            raise ValueError(f"the run that bundle={bundle.name!r} is of held out no text of class {label}")
        return found
    examples = reviews(language_read(bundle), train=0, held_out=2 * count, seed=seed)[1]  # type: ignore[arg-type]
    return tuple(example.text for example in examples if example.label == label)


@per_model
def answered_by(bundle: Bundle, rows: tuple[tuple[str, str], ...]) -> tuple[Answered, ...]:
    """Return a given set with its answers as a model has them: of a classifier the numbers of its classes.

    Args:
        rows: each text with its answer as it was written, "" where it has none: the name of a class, whatever its
            case, or its number from 0; or a target. What a model finds in the text itself needs none.

    Raises:
        ValueError: the model answers nothing, has no such class, or can read too few tokens of the texts.
    """
    bundle.must_ask()
    asks = bundle.reader.asks
    found: list[Answered] = []
    for text, answer in rows:
        known: str | int | None = None
        if answer and asks == "words":
            known = answer
        elif answer and asks == "class":
            known = answer_of(bundle, answer)
        found.append((text, known))
    among = tuple(found)
    _require_known(bundle, _encoded(bundle, [text for text, _ in among], among), among)
    return among


def knows_answers(bundle: Bundle, among: Among = None) -> bool:
    """Return whether right answers to measured_cases are known, or only what the model itself finds.

    Args:
        among: as of measured_cases.
    """
    asks = bundle.reader.asks
    if asks in ("next", "masked"):
        return True
    if isinstance(among, tuple):
        return all(answer is not None for _, answer in among)
    if among != "built_in" and bundle.read_held_out is not None:
        return True
    return asks == "class" and [label.lower() for label in bundle.labels] == list(OPINIONS)


@per_model
def measured_cases(bundle: Bundle, count: int = 48, seed: int = 0, among: Among = None) -> Cases:
    """Return texts that the model never learned from, with their answers: those that its run held out, else built-in
    ones, which no shipped model has learned from; or those that somebody gives.

    A classifier is asked for the label that a text has, a translation for the target. Where nobody knows that, as of
    an opened model, it is asked for what it finds itself. A language model is asked for each next token, and a BERT for
    one hidden token a text.

    Args:
        count: how many at most; of more, so many are drawn.
        seed: of the draw.
        among: which texts: "held_out", "built_in", or a set as answered_by returns it; None for those that were held
            out, and built-in ones where there are none.

    Raises:
        ValueError: the model answers nothing, can read none of the texts, knows too few tokens of those that are not
            its run's own, or is no run's whose held-out texts could be read.
    """
    bundle.must_ask()
    asks = bundle.reader.asks
    texts = _texts_among(bundle, count, seed, among)
    fewest = 2 if asks == "next" else 1
    encodings = sorted((one for one in _encoded(bundle, list(texts), among) if len(one.own) >= fewest), key=len)
    _require_known(bundle, encodings, among)
    if asks == "words":
        if knows_answers(bundle, among):
            return with_targets(bundle, encodings, [str(texts[one.text]) for one in encodings])
        return with_targets(
            bundle, encodings, translate(bundle, [one.text for one in encodings], width=1, most=MOST_WORDS)
        )
    if asks == "class":
        if knows_answers(bundle, among):
            return with_answers(bundle, encodings, [{0: int(texts[one.text] or 0)} for one in encodings])
        cases = with_answers(bundle, encodings, [{0: 0} for _ in encodings])
        with torch.inference_mode():
            found = [part.log_probs(bundle.model(*part.inputs))[:, 0].argmax(-1) for part in batches(cases)]
        return replace(cases, answers=torch.cat(found)[:, None])
    if asks == "masked":
        return _hidden(bundle, encodings, seed)
    return with_answers(bundle, encodings, [_nexts(encoding) for encoding in encodings])


def texts_read(
    bundle: Bundle, count: int = 48, seed: int = 0, among: Among = None
) -> tuple[list[Encoding], list[bool]]:
    """Return texts as a model reads them, and which were cut; a model that answers nothing reads, too.

    A text that is longer than what is read of it is cut: the encoding's own text gives the same tokens.

    Args:
        count, seed, among: as of measured_cases; a set's answers are not asked for.

    Raises:
        ValueError: as of measured_cases.
    """
    found: list[Encoding] = []
    shortened: list[bool] = []
    for one in _encoded(bundle, list(_texts_among(bundle, count, seed, among)), among):
        cut = one.text[: one.offsets[one.own[-1]][1]] if one.own and one.truncated else one.text
        read = bundle.tokenizer.encode(cut, max_len=bundle.config.max_len) if one.truncated else one
        if len(read.own) >= 2:
            found.append(read)
            shortened.append(bool(one.truncated))
    _require_known(bundle, found, among)
    return found, shortened


def _texts_among(bundle: Bundle, count: int, seed: int, among: Among) -> dict[str, str | int | None]:
    """Return so many texts with their answers."""
    if among == "held_out" and bundle.read_held_out is None:
        raise ValueError(f"among='held_out' needs the model of a run; bundle={bundle.name!r} has no held-out texts")
    if isinstance(among, tuple):
        there = dict(among)
    elif among != "built_in" and bundle.read_held_out is not None:
        there = dict(bundle.read_held_out())
    else:
        return _built_in_texts(bundle, count, seed)
    return dict(Random(seed).sample(list(there.items()), min(count, len(there))))


def _encoded(bundle: Bundle, texts: list[str], among: Among) -> Sequence[Encoding]:
    most = MOST_GIVEN_TOKENS if isinstance(among, tuple) else MOST_SET_TOKENS
    return bundle.tokenizer.encode_batch(texts, max_len=min(most, bundle.config.max_len))


def _built_in_texts(bundle: Bundle, count: int, seed: int) -> dict[str, str | int | None]:
    language = language_read(bundle)
    examples = reviews(language, train=0, held_out=count, seed=seed)[1]  # type: ignore[arg-type]
    texts: dict[str, str | int | None] = {example.text: example.label for example in examples}
    if bundle.reader.asks == "next":
        story = [line for line in passage(language).splitlines()[:8] if line.strip()]  # type: ignore[arg-type]
        return dict.fromkeys((*story, *texts)[:count])
    return texts


def _require_known(bundle: Bundle, encodings: Sequence[Encoding], among: Among) -> None:
    own = [one.unknown[place] for one in encodings for place in one.own]
    if not own:
        raise ValueError(f"bundle={bundle.name!r} can read none of the texts that it would be measured on")
    of_run = among in (None, "held_out") and bundle.read_held_out is not None
    if not of_run and sum(own) / len(own) > MOST_UNKNOWN:
        raise ValueError(
            f"{sum(own) / len(own):.0%} of the tokens of these texts are unknown to bundle={bundle.name!r}; "
            f"to be measured on them it must know {1 - MOST_UNKNOWN:.0%}"
        )


def _nexts(encoding: Encoding) -> dict[int, int]:
    return {place: encoding.ids[following] for place, following in pairwise(own_places(encoding))}


def _hidden(bundle: Bundle, encodings: Sequence[Encoding], seed: int) -> Cases:
    mask_id = bundle.tokenizer.mask_id
    if mask_id is None:
        raise ValueError(f"bundle={bundle.name!r} has a vocabulary without [MASK]; it must have that token")
    random, hidden, asked = Random(seed), [], []
    for encoding in encodings:
        place = random.choice(own_places(encoding))
        ids = list(encoding.ids)
        asked.append({place: ids[place]})
        ids[place] = mask_id
        hidden.append(replace(encoding, ids=tuple(ids)))
    return with_answers(bundle, hidden, asked)
