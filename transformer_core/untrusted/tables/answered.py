"""A set of texts that somebody gives to measure a model on, each with its right answer, if it has one: a class or a
target.

A table (CSV, TSV, JSON), by its name or because its first line names a column of texts, whose columns are guessed as
preview.py does; or lines: a text, or a text, a tab and its answer. Rows that cannot be used are counted and left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from transformer_core.untrusted.tables.cleaning import SURROGATES, Broken, cleaned
from transformer_core.untrusted.tables.delimited import LABEL_NAMES, TEXT_NAMES
from transformer_core.untrusted.tables.objects import is_lines_of_objects, is_list_of_objects
from transformer_core.untrusted.tables.opening import IntakeError, detect_encoding, open_bytes, open_text
from transformer_core.untrusted.tables.preview import preview
from transformer_core.untrusted.tables.table import batches_of, open_table

MOST_TEXTS, LONGEST = 200, 2_000  # texts of a set, and characters of a text
ANSWER_NAMES = ("target", "answer", "translation", "label", *LABEL_NAMES, "译文", "目标")
SOURCE_NAMES = (*TEXT_NAMES, "source", "src", "原文")
SAMPLE = 1 << 16
TABLES = (".csv", ".tsv", ".json", ".jsonl")


@dataclass(frozen=True, eq=False)
class AnsweredTexts:
    """A set of texts in the order in which it was given.

    Args:
        rows: each text with its answer as it was written, "" where it has none; all have one, or none has.
        there: how many the source has; where those are more than MOST_TEXTS, the rows are drawn at random.
        n_cut: texts that were cut at LONGEST characters.
        broken: rows that were left out.
    """

    rows: tuple[tuple[str, str], ...]
    there: int
    n_cut: int
    broken: Broken


def read_answered(source: bytes, *, name: str, seed: int = 0) -> AnsweredTexts:
    """Read a set of texts.

    Args:
        source: a table, plain or gzipped, or lines.
        name: of the source in messages.
        seed: of the draw, where there are more texts than MOST_TEXTS.

    Raises:
        IntakeError: nothing can be read; or some texts have an answer and others have none.
    """
    raw = open_bytes(source, name)
    encoding = detect_encoding(raw, name)
    with open_text(raw, encoding) as file:
        sample = file.read(SAMPLE)
    broken = Broken()
    named = _has_header(sample)
    if named or name.lower().removesuffix(".gz").endswith(TABLES):
        found = _of_table(raw, name, encoding, named or None, broken)
    else:
        with open_text(raw, encoding) as file:
            found = _of_lines(file.read().splitlines(), broken)
    kept = [(line, cleaned(text)[0].strip(), " ".join(cleaned(answer)[0].split())) for line, text, answer in found]
    rows = []
    for line, text, answer in kept:
        if text and not SURROGATES.search(text + answer):
            rows.append((line, text, answer))
        else:
            broken.add(line, "undecodable" if text else "empty_text", text)
    if not rows:
        why = f": {broken.words()}" if broken else ""
        raise IntakeError(f"{name} has no text that can be used{why}")
    without = [line for line, _, answer in rows if not answer]
    if without and len(without) < len(rows):
        raise IntakeError(f"{name}, row {without[0]:,} has no answer, and others have; all must have one, or none")
    chosen = sorted(Random(seed).sample(range(len(rows)), min(MOST_TEXTS, len(rows))))
    texts = [rows[place] for place in chosen]
    n_cut = sum(len(text) > LONGEST for _, text, _ in texts)
    pairs = tuple((text[:LONGEST].strip(), answer[:LONGEST]) for _, text, answer in texts)
    return AnsweredTexts(pairs, len(rows), n_cut, broken)


def _has_header(sample: str) -> bool:
    """Return whether a sample is JSON, or its first line names a column of texts."""
    if is_list_of_objects(sample) or is_lines_of_objects(sample):
        return True
    first = sample.lstrip("\ufeff\r\n ").partition("\n")[0]
    return any(
        _named([cell.strip().strip('"') for cell in first.split(delimiter)], SOURCE_NAMES) for delimiter in "\t;|,"
    )


def _named(columns: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the column with the first of some names, whatever its case, None where there is none."""
    lower = {column.strip().lower(): column for column in reversed(columns)}
    return next((lower[name] for name in names if name in lower), None)


def _of_table(
    raw: bytes, name: str, encoding: str, has_header: bool | None, broken: Broken
) -> list[tuple[int, str, str]]:
    found = preview(raw, name=name, encoding=encoding, has_header=has_header)
    table = open_table(raw, name=name, encoding=encoding, delimiter=found.delimiter, has_header=found.has_header)
    text = _named(table.columns, SOURCE_NAMES) or found.text_column or table.columns[0]
    others = [column for column in table.columns if column != text]
    guessed = others[0] if len(others) == 1 else found.label_column
    answer = _named(others, ANSWER_NAMES) or guessed
    rows = []
    for lines, cells in batches_of(table, [text] if answer is None else [text, answer], broken, name):
        rows += zip(lines, cells[0], cells[1] if answer is not None else [""] * len(lines), strict=True)
    return rows


def _of_lines(lines: Sequence[str], broken: Broken) -> list[tuple[int, str, str]]:
    rows = []
    for number, line in enumerate(lines, 1):
        text, *answers = line.split("\t")
        if len(answers) > 1:
            broken.add(number, "too_many_cells", line)
        elif line.strip():
            rows.append((number, text, "".join(answers)))
    return rows
