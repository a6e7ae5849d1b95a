"""Intake: tables, pasted texts and the IMDB reviews that a run learns from, read within bounds.

Two modes read labelled tables: read_table is tolerant (files that people upload), read_labelled is strict (files of
known form). Formats: RFC 4180 (CSV), jsonlines.org, RFC 8259 (JSON), RFC 1952 (gzip).
"""

# ruff: noqa: I001, RUF022  the order is the reading order

from transformer_core.untrusted.tables.opening import ENCODINGS, MOST_BYTES, IntakeError
from transformer_core.untrusted.tables.cleaning import Broken, BrokenRow, CleanText, clean_text, shown
from transformer_core.untrusted.tables.delimited import DELIMITERS
from transformer_core.untrusted.tables.table import Table, read_table
from transformer_core.untrusted.tables.preview import Column, Preview, preview
from transformer_core.untrusted.tables.labelled import ROWS_FILE, read_labelled, read_rows, write_labelled, write_rows
from transformer_core.untrusted.tables.imdb import read_imdb

__all__ = [
    "ENCODINGS",
    "MOST_BYTES",
    "IntakeError",
    "Broken",
    "BrokenRow",
    "CleanText",
    "clean_text",
    "shown",
    "DELIMITERS",
    "Table",
    "read_table",
    "Column",
    "Preview",
    "preview",
    "ROWS_FILE",
    "read_labelled",
    "read_rows",
    "write_labelled",
    "write_rows",
    "read_imdb",
]
