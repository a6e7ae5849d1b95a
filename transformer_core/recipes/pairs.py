"""Pairs of sentences for translation: read from JSON lines, and their Chinese in simplified characters.

Read next: translation.py.
"""

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from transformer_core.evaluation.translation import Pairs, read_lines


def read_objects(path: Path, source: str, target: str) -> Pairs:
    """Return the pairs of a file of JSON lines: its two named values, line by line.

    Raises:
        ValueError: a line is no JSON object with both as texts.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            row = json.loads(line)
            pairs.append((row[source], row[target]))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path.name}, line {number}: an object with {source} and {target} is needed") from error
        if not all(isinstance(text, str) for text in pairs[-1]):
            raise ValueError(f"{path.name}, line {number}: {source} and {target} must be texts")
    return pairs


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines of text, gzipped where the name ends in .gz."""
    text = "".join(f"{line}\n" for line in lines)
    with gzip.open(path, "wt", encoding="utf-8") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as file:
        file.write(text)


def simplifier() -> Callable[[str], str]:
    """Return what turns traditional Chinese characters into simplified ones.

    Raises:
        ValueError: the package opencc, which only this recipe needs, is not installed.
    """
    try:
        import opencc
    except ImportError:
        raise ValueError("opencc, which turns Chinese into simplified characters, is not installed") from None
    return opencc.OpenCC("t2s").convert
