"""Reading: from bytes of any form to a table whose columns can be read.

Read next: preview.py.
"""

from collections.abc import Iterator, Sequence

from transformer_core.training.intake.bounds import MOST_ROWS, IntakeError
from transformer_core.training.intake.broken import Broken
from transformer_core.training.intake.decoding import detect_encoding, open_text, require_encoding
from transformer_core.training.intake.delimited import SAMPLE, Batch, Delimited, open_delimited
from transformer_core.training.intake.objects import (
    Objects,
    is_lines_of_objects,
    is_list_of_objects,
    open_objects,
)
from transformer_core.training.intake.opening import Source, open_bytes


def open_table(
    source: Source,
    *,
    name: str,
    encoding: str | None = None,
    delimiter: str | None = None,
    has_header: bool | None = None,
) -> Delimited | Objects:
    """Open a table; its form, and what is None here, is found out from its contents, never from its name.

    Args:
        source: bytes or a path, plain or gzipped.
        name: what to call it in messages.
        encoding: an entry of ENCODINGS.
        delimiter: an entry of DELIMITERS; tables of JSON have none.
        has_header: whether the first row names the columns; tables of JSON have none.

    Raises:
        IntakeError: it is no table, or an argument is unknown.
        OSError: the file cannot be read.
    """
    raw = open_bytes(source, name)
    encoding = detect_encoding(raw, name) if encoding is None else require_encoding(encoding)
    with open_text(raw, encoding) as file:
        sample = file.read(SAMPLE)
    if is_list_of_objects(sample):
        return open_objects(raw, encoding, is_list=True, name=name)
    if is_lines_of_objects(sample):
        return open_objects(raw, encoding, is_list=False, name=name)
    return open_delimited(raw, encoding, name=name, delimiter=delimiter, has_header=has_header)


def batches_of(table: Delimited | Objects, columns: Sequence[str], broken: Broken, name: str) -> Iterator[Batch]:
    """Yield the batches of a table as it does itself, but no more than MOST_ROWS rows, whole or broken.

    Raises:
        IntakeError: there are more.
    """
    count = 0
    for lines, cells in table.batches(columns, broken):
        count += len(lines)
        if count + len(broken) > MOST_ROWS:
            raise IntakeError(f"{name} has more than {MOST_ROWS:,} rows, the most that are read")
        yield lines, cells
