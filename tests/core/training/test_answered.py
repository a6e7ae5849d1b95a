"""A set of texts that somebody gives: tables and lines, what is left out and drawn, and what is refused."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.untrusted.tables import IntakeError
from transformer_core.untrusted.tables.answered import LONGEST, MOST_TEXTS, read_answered

ROWS = (("Good, really.", "positive"), ("Not good.", "negative"))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (b'label,Text\npositive,"Good, really."\nnegative,Not good.\n', "pasted"),
        (b"text\tlabel\nGood, really.\tpositive\nNot good.\tnegative\n", "pasted"),
        (b"Good, really.\tpositive\r\n\r\nNot good.\tnegative\r\n", "pasted"),
        (b'{"text": "Good, really.", "target": "positive"}\n{"text": "Not good.", "target": "negative"}\n', "pasted"),
        (gzip.compress(b'id;text;label\n1;"Good, really.";positive\n2;Not good.;negative\n', mtime=0), "set.csv.gz"),
    ],
)
def test_tables_and_lines_give_the_same_rows(source: bytes, name: str) -> None:
    found = read_answered(source, name=name)
    assert (found.rows, found.there, len(found.broken)) == (ROWS, 2, 0)


def test_a_file_called_csv_needs_no_names_of_columns() -> None:
    source = b'"Good, really.";positive\n"Not good at all.";negative\nI like it a lot.;positive'
    rows = (ROWS[0], ("Not good at all.", "negative"), ("I like it a lot.", "positive"))
    assert read_answered(source, name="set.csv").rows == rows


def test_a_line_with_commas_is_a_text_and_has_no_answer() -> None:
    assert read_answered(b"Good, really.\nNot, good.", name="pasted").rows == (
        ("Good, really.", ""),
        ("Not, good.", ""),
    )


def test_more_texts_than_fit_are_drawn_long_ones_cut_and_broken_rows_counted() -> None:
    lines = [f"text {number}\t{number % 2}" for number in range(MOST_TEXTS + 5)]
    found = read_answered("\n".join([*lines, "one\ttwo\tthree", "\t1"]).encode(), name="pasted")
    assert (len(found.rows), found.there, found.n_cut) == (MOST_TEXTS, MOST_TEXTS + 5, 0)
    assert dict(found.broken.counts) == {"too_many_cells": 1, "empty_text": 1}
    assert found.rows == read_answered("\n".join(lines).encode(), name="pasted").rows
    assert len(read_answered("\n".join(lines[:MOST_TEXTS]).encode(), name="pasted").rows) == MOST_TEXTS
    cut = read_answered(f"{'a' * (LONGEST + 1)}\n{'b' * LONGEST}".encode(), name="pasted")
    assert ([len(text) for text, _ in cut.rows], cut.n_cut) == ([LONGEST, LONGEST], 1)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"  \n ", "pasted is empty"),
        (b"\t1\n\t2", "pasted has no text that can be used"),
        (b"one\t1\ntwo", "pasted, row 2 has no answer, and others have"),
        (b"%PDF-1.7", "pasted is a PDF"),
    ],
)
def test_what_is_no_set_is_refused(source: bytes, said: str) -> None:
    with pytest.raises(IntakeError, match=said):
        read_answered(source, name="pasted")


@given(source=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_whatever_is_given_is_read_or_refused_in_words(source: bytes) -> None:
    for name in ("pasted", "set.csv"):
        try:
            found = read_answered(source, name=name)
        except IntakeError:
            continue
        assert all(text.strip() for text, _ in found.rows)
        assert len({bool(answer) for _, answer in found.rows}) == 1
