"""Rows: what a run learns from, kept in its folder in one form, so that the run can be repeated.

Format: jsonlines.org, an object a line with a text and the number of its label. Read next: ../splitting.py.
"""

import json
import os
from collections.abc import Iterable

from transformer_core.training.data import Example, read_labelled
from transformer_core.training.intake.bounds import MOST_LABELS

ROWS_FILE = "rows.jsonl"
NUMBERS = tuple(map(str, range(MOST_LABELS)))


def write_rows(examples: Iterable[Example]) -> bytes:
    """Return examples, such as a Table, as JSONL that read_rows reads back to equal ones."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    lines = (f'{{"text": {encode(example.text)}, "label": {example.label}}}\n' for example in examples)
    return "".join(lines).encode()


def read_rows(path: str | os.PathLike[str]) -> list[Example]:
    """Return the examples that write_rows wrote to a file whose name ends in .jsonl or .jsonl.gz.

    Raises:
        ValueError: with the file, the line and what is wrong with it.
        OSError: the file cannot be opened.
    """
    return list(read_labelled(path, NUMBERS))
