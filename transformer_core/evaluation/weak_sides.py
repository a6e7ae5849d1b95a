"""Where a model is weak: `python -m transformer_core.evaluation.weak_sides BUNDLE --of NAME UNIT FILE` measures it.

How often a classifier is right on texts with a negation, a contrast, a question; how strange texts usually are to it.
"""

import argparse
import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import torch

from transformer_core.analysis.strangeness import counted, measure_of, own_tokens, strangeness
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.evaluation.classifier import class_logits
from transformer_core.evaluation.translation import read_lines
from transformer_core.examples import Example
from transformer_core.measured import (
    FEATURES,
    FEWEST,
    MEASURED,
    UNITS,
    Confidence,
    Measured,
    Slice,
    TypicalRange,
    write_measured,
)
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.text.encoding import words_of
from transformer_core.untrusted.tables.labelled import read_labelled

SHORT = 12  # words, at most
MOST_OF_SENTENCE = 40  # words and signs; more are a review
UNKNOWN = 0.1  # of a text's own tokens, at least
LENGTHS = ((1, 6), (7, 12), (13, 25), (26, 60), (61, 10_000))  # words, or tokens
ANY_LENGTH = (1, 10_000)
PROBABILITIES = (0.0, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
MOST_FOR_TYPICAL = 1_000
ENCODED_AT_ONCE, READ_AT_ONCE = 512, 32
SIGNS = {
    "negation": re.compile(
        r"\b(?:not|no|never|nothing|nobody|none|nor|neither|without|hardly|barely|cannot|\w+n['’]t)\b|[不没無无別别]",
        re.IGNORECASE,
    ),
    "contrast": re.compile(r"\b(?:but|however|although|though|yet|despite)\b|但|可是|不过|虽然|然而|却", re.IGNORECASE),
    "question": re.compile(r"[?？]"),
}


def word_count(encoding: Encoding) -> int:
    """Return how many words a text has, a Chinese character counting as one; signs do not count."""
    return sum(encoding.text[word.start].isalnum() for word in words_of(encoding))


def features_of(encoding: Encoding) -> tuple[str, ...]:
    """Return which features a text has, in the order of FEATURES, as far as they can be seen in it.

    Args:
        encoding: of the text, cut where the model reads no further.
    """
    own = len(own_tokens(encoding))
    there = {name for name, sign in SIGNS.items() if sign.search(encoding.text)}
    there |= {"cut"} if encoding.truncated else {"short"} if word_count(encoding) <= SHORT else set()
    there |= {"unknown"} if own and sum(encoding.unknown) >= UNKNOWN * own else set()
    return tuple(name for name in FEATURES if name in there)


def unit_of(encoding: Encoding) -> str:
    """Return what a text is like by its length: a sentence or a review."""
    return "sentence" if len(words_of(encoding)) <= MOST_OF_SENTENCE else "review"


class Judged(NamedTuple):
    """A text as a classifier read it, the probabilities of its classes, (class,), and its label."""

    encoding: Encoding
    probabilities: torch.Tensor
    label: int


def _slices(judged: Iterable[Judged], *, data: str, unit: str) -> tuple[Slice, ...]:
    """Count how often a classifier is right on all texts, on those of each feature, and on short ones of each."""
    texts, right = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for encoding, probabilities, label in judged:
        for key in _sorts(features_of(encoding)):
            texts[key] += 1
            right[key] += int(probabilities.argmax()) == label
    keys = sorted((key for key in texts if texts[key] >= FEWEST or not key), key=lambda key: (len(key), key))
    return tuple(Slice(data, unit, key, texts[key], right[key]) for key in keys)


@torch.inference_mode()
def _judged(bundle: Bundle, examples: Iterable[Example]) -> list[Judged]:
    """Let a classifier judge texts, and return them in any order."""
    examples, found = list(examples), []
    for start in range(0, len(examples), ENCODED_AT_ONCE):
        chunk = examples[start : start + ENCODED_AT_ONCE]
        encodings = bundle.tokenizer.encode_batch([e.text for e in chunk], max_len=bundle.config.max_len)
        order = sorted(range(len(chunk)), key=lambda place: len(encodings[place]))
        for first in range(0, len(chunk), READ_AT_ONCE):
            places = order[first : first + READ_AT_ONCE]
            judged = class_logits(bundle, [encodings[place] for place in places]).softmax(-1)  # (text, class)
            rows = zip(places, judged, strict=True)
            found += [Judged(encodings[place], row, chunk[place].label) for place, row in rows]
    return found


def _confidence(judged: Iterable[Judged]) -> tuple[Confidence, ...]:
    """Count how often a classifier is right, by the length of the text and the probability of the chosen class."""
    texts, right = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for encoding, probabilities, label in judged:
        count = word_count(encoding)
        length = next(place for place, (_, most) in enumerate(LENGTHS) if count <= most or most == LENGTHS[-1][1])
        key = length, min(bisect_right(PROBABILITIES, float(probabilities.max())), len(PROBABILITIES) - 1) - 1
        texts[key] += 1
        right[key] += int(probabilities.argmax()) == label
    ranges = tuple(pairwise(PROBABILITIES))
    return tuple(
        Confidence(LENGTHS[length], ranges[place], texts[length, place], right[length, place])
        for length, place in sorted(texts)
    )


def _sorts(features: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sorts that a text belongs to: of all texts, of each feature, and of each feature of a short one."""
    pairs = [("short", name) for name in features if name != "short"] if "short" in features else []
    return [(), *((name,) for name in features), *pairs]


def measure_typical(bundle: Bundle, texts: Sequence[str], *, data: str, unit: str) -> tuple[TypicalRange, ...]:
    """Measure how strange texts usually are to a model; rarity by their length, where there are enough of a length.

    Args:
        texts: of which the first 1,000 are read.
        data, unit: as in Slice.
    """
    measure = measure_of(bundle)
    read = [strangeness(prompt=Prompt(bundle, text, bundle.config.max_len)) for text in texts[:MOST_FOR_TYPICAL]]
    rows = []
    for low, high in LENGTHS if measure == "rarity" else (ANY_LENGTH,):
        values = [one.value for one in read if one.value is not None and low <= one.tokens <= high]
        if len(values) >= (FEWEST if measure == "rarity" else 2):
            top = quantiles(values, n=20, method="inclusive")[-1]
            rows.append(
                TypicalRange(data, unit, measure, (low, high), len(values), round(median(values), 4), round(top, 4))
            )
    return tuple(rows)


def measure_on_each(
    bundle: Bundle, data: Sequence[tuple[str, str, Sequence[Example]]], *, learned: Iterable[str] = ()
) -> Measured:
    """Measure a bundle on several data, each with its name and unit; labels count for a classifier alone.

    Args:
        learned: the texts that it learned from, which tell how rare a token is to it.
    """
    counts = counted(bundle, learned) if measure_of(bundle) == "rarity" else ()
    bundle = replace(bundle, measured=replace(bundle.measured, learned=counts if any(counts) else ()))
    slices, usual, everything = [], [], []
    for name, unit, examples in data:
        if bundle.kind == "classifier":
            judged = _judged(bundle, examples)
            slices += _slices(judged, data=name, unit=unit)
            everything += judged
        usual += measure_typical(bundle, [example.text for example in examples], data=name, unit=unit)
    found = Measured(tuple(slices), tuple(usual), sureness=_confidence(everything))
    return replace(found, learned=bundle.measured.learned)


def _read(bundle: Bundle, path: Path) -> list[Example]:
    if bundle.kind == "classifier":
        return list(read_labelled(path, bundle.labels))
    return [Example(line, 0) for line in read_lines(path) if line.strip()]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = argparse.ArgumentParser(prog="weak_sides", description=f"Measure a bundle; write its {MEASURED}.")
    parser.add_argument("bundle", type=Path, help="folder of the bundle")
    said = f"name of the data, one of {', '.join(UNITS)}, and a file: of text and label for a classifier, else of lines"
    parser.add_argument("--of", nargs=3, action="append", required=True, metavar=("NAME", "UNIT", "FILE"), help=said)
    parser.add_argument("--learned", type=Path, action="append", default=[], help="a file that it learned from")
    chosen = parser.parse_args(arguments)
    try:
        if wrong := [unit for _, unit, _ in chosen.of if unit not in UNITS]:
            raise ValueError(f"UNIT={wrong[0]!r} must be one of {', '.join(UNITS)}")
        bundle = load(chosen.bundle, device="cpu")
        learned = (example.text for file in chosen.learned for example in _read(bundle, file))
        data = [(name, unit, _read(bundle, Path(file))) for name, unit, file in chosen.of]
        measured = measure_on_each(bundle, data, learned=learned)
        measured = replace(measured, trained=bundle.measured.trained, lens=bundle.measured.lens)
        write_measured(chosen.bundle, measured)
    except (ValueError, OSError) as error:
        print(f"weak_sides: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print((chosen.bundle / MEASURED).read_text(encoding="utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
