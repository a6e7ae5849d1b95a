"""What is too large, empty, packed wrongly or no table at all is refused in words, before it fills the memory."""

import gzip
import time
import tracemalloc

import pytest

from transformer_core.training.intake import IntakeError, preview, read_table
from transformer_core.training.intake.opening import MOST_BYTES


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty"),
        (b" \r\n\t", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"text,label\n", "has no row with a text and a label that can be used$"),
        (b"text,label\n ,1\n", "that can be used: 1 with no text .first in line 2.$"),
        (b"text\ngood\nbad\n", "has one column, 'text'; a text column and a label column are needed"),
        (b"words,label\na,1\n", "text_column='text' must be one of the columns of a.csv: 'words', 'label'"),
        (b"text,label\na,1\nb,1\n", "has 1 different label .'1'.; 2 to 20 are needed"),
        (
            b"text,label\n" + b"".join(b"a,%d\n" % n for n in range(21)),
            "has 21 different labels .'0', '1', '2', '3', '4', ...",
        ),
        (b"text,label\n" + b"".join(b"a,%d\n" % n for n in range(2_000)), "has more than 1,000 different labels"),
        (b"a," * 300 + b"b\n", "has 301 columns; at most 200 are read"),
        (b"x" * (MOST_BYTES + 1), "a.csv has 50.0 MB; at most 50.0 MB are read"),
        (gzip.compress(bytes(101 << 20), 1, mtime=0), "is larger than 100.0 MB when unpacked"),
        (gzip.compress(b"text,label\na,1\n" * 99, mtime=0)[:-9], "the gzip data is broken"),
        (b"PK\x03\x04...", "is a zip archive, as Excel's workbooks are"),
        (b"\x89PNG\r\n\x1a\n", "is a picture"),
        (bytes(range(256)) * 40, "is no text"),
        (bytes(1_000), "is no text"),
    ],
)
def test_what_cannot_be_used_gets_words(tmp_path, raw, message):
    (tmp_path / "a.csv").write_bytes(raw)
    for source in (raw, tmp_path / "a.csv"):
        with pytest.raises(IntakeError, match=message) as error:
            read_table(source, "text", "label", name="a.csv")
        assert "\n" not in str(error.value)


def test_a_bound_on_rows_holds_for_whole_and_broken_ones(monkeypatch):
    monkeypatch.setattr("transformer_core.training.intake.table.MOST_ROWS", 1_000)
    for rows in (b"a,1\nb,0\n", b"a,1\nb\n", b'a,1\n"b\n'):
        with pytest.raises(IntakeError, match="more than 1,000 rows"):
            preview(b"text,label\n" + rows * 1_000)


@pytest.mark.parametrize("ends", [b"\n", b"\r", b"\r\n"])
def test_a_table_of_nothing_but_line_ends_is_refused_at_once(ends):
    start = time.process_time()
    raw = b"text,label\na,1\nb,0\n" + ends * ((49 << 20) // len(ends))
    for read in (preview, lambda raw: read_table(raw, "text", "label")):
        with pytest.raises(IntakeError, match=r"has [0-9,]+ lines; at most 5,000,000 are read"):
            read(raw)
    assert time.process_time() - start < 2


def test_a_packed_bomb_is_not_unpacked():
    bomb = gzip.compress(bytes(120 << 20), 1)
    tracemalloc.start()
    with pytest.raises(IntakeError):
        preview(bomb)
    assert tracemalloc.get_traced_memory()[1] < 230 << 20
    tracemalloc.stop()
