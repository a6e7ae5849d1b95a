"""Intake: what people bring to a run, read within bounds: a table, a pasted text, or the IMDB reviews.

Formats: RFC 4180 (CSV), jsonlines.org, RFC 8259 (JSON), RFC 1952 (gzip). Read next: bounds.py.
"""

# ruff: noqa: I001, RUF022  the order is the reading order

from transformer_core.training.intake.bounds import IntakeError
from transformer_core.training.intake.cleaning import CleanText, clean_text
from transformer_core.training.intake.broken import Broken, BrokenRow
from transformer_core.training.intake.decoding import ENCODINGS
from transformer_core.training.intake.dialects import DELIMITERS
from transformer_core.training.intake.preview import Column, Preview, preview
from transformer_core.training.intake.table import Table, read_table
from transformer_core.training.intake.rows import ROWS_FILE, read_rows, write_rows
from transformer_core.training.intake.imdb import read_imdb

__all__ = [
    "IntakeError",
    "CleanText",
    "clean_text",
    "Broken",
    "BrokenRow",
    "ENCODINGS",
    "DELIMITERS",
    "Column",
    "Preview",
    "preview",
    "Table",
    "read_table",
    "ROWS_FILE",
    "read_rows",
    "write_rows",
    "read_imdb",
]
