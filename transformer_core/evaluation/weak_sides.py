"""Where a model is weak: `python -m transformer_core.evaluation.weak_sides BUNDLE --of NAME UNIT FILE` measures it.

How often a classifier is right on texts with a negation, a contrast, a question; how strange texts usually are to it.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median, quantiles

import torch

from transformer_core.analysis.strangeness import measure_of, strangeness
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.evaluation.classifier import class_logits
from transformer_core.evaluation.translation import read_lines
from transformer_core.measured import FEATURES, MEASURED, UNITS, Measured, Slice, Usual, write_measured
from transformer_core.text import Encoding
from transformer_core.text.encoding import words_of
from transformer_core.training.examples import Example
from transformer_core.training.intake.labelled import read_labelled

SHORT = 12  # words, at most
MOST_OF_SENTENCE = 40  # words and signs; more are a review
UNKNOWN = 0.1  # of a text's own tokens, at least
FEWEST = 30  # texts, for a share to be reported
MOST_FOR_USUAL = 1_000
ENCODED_AT_ONCE, READ_AT_ONCE = 512, 32
SIGNS = {
    "negation": re.compile(
        r"\b(?:not|no|never|nothing|nobody|none|nor|neither|without|hardly|barely|cannot|\w+n['’]t)\b|[不没無无別别]",
        re.IGNORECASE,
    ),
    "contrast": re.compile(r"\b(?:but|however|although|though|yet|despite)\b|但|可是|不过|虽然|然而|却", re.IGNORECASE),
    "question": re.compile(r"[?？]"),
}


def features_of(encoding: Encoding) -> tuple[str, ...]:
    """Return which features a text has, in the order of FEATURES, as far as they can be seen in it.

    Args:
        encoding: of the text, cut where the model reads no further.
    """
    words = [word for word in words_of(encoding) if encoding.text[word.start].isalnum()]
    own = sum(not special or unknown for special, unknown in zip(encoding.special, encoding.unknown, strict=True))
    there = {name for name, sign in SIGNS.items() if sign.search(encoding.text)}
    there |= {"cut"} if encoding.truncated else {"short"} if len(words) <= SHORT else set()
    there |= {"unknown"} if own and sum(encoding.unknown) >= UNKNOWN * own else set()
    return tuple(name for name in FEATURES if name in there)


def unit_of(encoding: Encoding) -> str:
    """Return what a text is like by its length: a sentence or a review."""
    return "sentence" if len(words_of(encoding)) <= MOST_OF_SENTENCE else "review"


@torch.inference_mode()
def measure_slices(bundle: Bundle, examples: Iterable[Example], *, data: str, unit: str) -> tuple[Slice, ...]:
    """Count how often a classifier is right on all texts, on those of each feature, and on short ones of each.

    Args:
        data, unit: as in Slice.

    Raises:
        ValueError: the bundle is not a classifier.
    """
    if bundle.kind != "classifier":
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be a classifier")
    texts, right = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    examples = list(examples)
    for start in range(0, len(examples), ENCODED_AT_ONCE):
        chunk = examples[start : start + ENCODED_AT_ONCE]
        encodings = bundle.tokenizer.encode_batch([e.text for e in chunk], max_len=bundle.config.max_len)
        order = sorted(range(len(chunk)), key=lambda place: len(encodings[place]))
        for first in range(0, len(chunk), READ_AT_ONCE):
            places = order[first : first + READ_AT_ONCE]
            predicted = class_logits(bundle, [encodings[place] for place in places]).argmax(-1).tolist()
            for place, winner in zip(places, predicted, strict=True):
                for key in _sorts(features_of(encodings[place])):
                    texts[key] += 1
                    right[key] += winner == chunk[place].label
    keys = sorted((key for key in texts if texts[key] >= FEWEST or not key), key=lambda key: (len(key), key))
    return tuple(Slice(data, unit, key, texts[key], right[key]) for key in keys)


def _sorts(features: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sorts that a text belongs to: of all texts, of each feature, and of each feature of a short one."""
    pairs = [("short", name) for name in features if name != "short"] if "short" in features else []
    return [(), *((name,) for name in features), *pairs]


def measure_usual(bundle: Bundle, texts: Sequence[str], *, data: str, unit: str) -> Usual | None:
    """Measure how strange texts usually are to a model; None where none of them can be measured.

    Args:
        texts: of which the first 1,000 are read.
        data, unit: as in Slice.
    """
    found = [
        strangeness(bundle=bundle, text=text, n_tokens=bundle.config.max_len).value for text in texts[:MOST_FOR_USUAL]
    ]
    values = [value for value in found if value is not None]
    if len(values) < 2:
        return None
    high = quantiles(values, n=20, method="inclusive")[-1]
    return Usual(data, unit, measure_of(bundle), len(values), round(median(values), 4), round(high, 4))


def measure_beside(bundle: Bundle, data: Iterable[tuple[str, str, Sequence[Example]]]) -> Measured:
    """Measure a bundle on several data, each with its name and unit; labels count for a classifier alone."""
    slices, usual = [], []
    for name, unit, examples in data:
        if bundle.kind == "classifier":
            slices += measure_slices(bundle, examples, data=name, unit=unit)
        found = measure_usual(bundle, [example.text for example in examples], data=name, unit=unit)
        usual += [] if found is None else [found]
    return Measured(tuple(slices), tuple(usual))


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
    chosen = parser.parse_args(arguments)
    try:
        if wrong := [unit for _, unit, _ in chosen.of if unit not in UNITS]:
            raise ValueError(f"UNIT={wrong[0]!r} must be one of {', '.join(UNITS)}")
        bundle = load(chosen.bundle, device="cpu")
        measured = measure_beside(bundle, [(name, unit, _read(bundle, Path(file))) for name, unit, file in chosen.of])
        write_measured(chosen.bundle, measured)
    except (ValueError, OSError) as error:
        print(f"weak_sides: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print((chosen.bundle / MEASURED).read_text(encoding="utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
