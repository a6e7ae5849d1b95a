"""Tables: delimiter, header and columns are found; what is wrong is said with its line; bounds hold."""

import contextlib
import csv
import gzip
import io
import json
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_core.untrusted.tables import DELIMITERS, ENCODINGS, IntakeError, preview, read_table
from transformer_core.untrusted.tables.opening import LONGEST_TEXT, MOST_BYTES

ROWS = [("good, “really”", "pos"), ('a "dull"\nfilm; long', "neg"), ("你好 | 世界", "pos"), ("שלום 😀", "neg")]
PIECES = [
    "text,label\n",
    "good,1\n",
    "bad\t0\n",
    '"',
    "\0",
    "\r",
    "\n",
    ",",
    ";",
    "|",
    '"a\nb",1\n',
    "{",
    "[",
    "]}",
    "\u202e",
]


def table_bytes(rows, delimiter=",", encoding="utf-8", line_end="\n"):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue().replace("\n", line_end).encode(encoding)


@pytest.mark.parametrize("delimiter", DELIMITERS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_delimiter_quotes_and_line_ends_make_no_difference(delimiter, line_end):
    raw = table_bytes([("id", "text", "label"), *((7, *row) for row in ROWS)], delimiter, line_end=line_end)
    seen = preview(raw)
    assert (seen.delimiter, seen.has_header, seen.n_rows) == (delimiter, True, 4)
    assert (seen.text_column, seen.label_column) == ("text", "label")
    table = read_table(raw, "text", "label")
    assert table.examples == ROWS
    assert table.label_names == ("neg", "pos")
    assert [example.label for example in table] == [1, 0, 1, 0]
    assert not table.broken


def test_a_preview_shows_what_is_there():
    raw = b"stars,review\n" + b"".join(b"%d,%s\n" % (n % 12, b"so " * n) for n in range(1, 101))
    seen = preview(raw)
    assert [column.name for column in seen.columns] == ["stars", "review"]
    assert seen.columns[0].values == tuple(map(str, range(12)))
    assert seen.columns[1].values is None
    assert seen.rows[:2] == (("1", "so"), ("2", "so so"))
    assert (len(seen.rows), seen.n_rows, seen.text_column, seen.label_column) == (8, 100, "review", "stars")
    assert read_table(raw, "review", "stars").label_names == tuple(map(str, range(12)))


@pytest.mark.parametrize(
    ("raw", "has_header"),
    [
        (b"text,label\ngood,1\n", True),
        (b"film,kind\ngood,pos\nbad,neg\n", True),
        (b"good,pos\nbad,neg\nfine,pos\n", False),
        (b"good,1\nbad,0\n", False),
        (b"0,1\ngood,1\n", False),
        (b"x" * 65 + b",pos\nbad,neg\n", False),
    ],
)
def test_a_header_is_told_by_the_stated_rule_and_can_be_overruled(raw, has_header):
    seen = preview(raw)
    assert seen.has_header is has_header
    other = preview(raw, has_header=not has_header)
    assert other.n_rows - seen.n_rows == (1 if has_header else -1)
    columns = [column.name for column in (other if has_header else seen).columns]
    assert columns == ["column 1", "column 2"]


def test_columns_get_names_that_differ():
    seen = preview(b"text,,text,text (2),label\na,b,c,d,1\ne,f,g,h,0\n")
    assert [column.name for column in seen.columns] == ["text", "column 2", "text (2)", "text (2) (2)", "label"]
    assert read_table(b"text,text,label\na,b,1\nc,d,0\n", "text (2)", "label").texts == ["b", "d"]


def test_broken_rows_are_counted_with_line_and_reason():
    raw = b'text,label\ngood,1\nonly\na,b,1\n\n"  ",1\nx,\nbad,0\n"two\nlines",1\ny\n,,\n' + b"z," + b"l" * 81 + b"\n"
    table = read_table(raw, "text", "label")
    assert table.examples == [("good", "1"), ("bad", "0"), ("two\nlines", "1")]
    assert [(row.line, row.reason, row.beginning) for row in table.broken.first] == [
        (3, "too_few_cells", "only"),
        (4, "too_many_cells", "a,b,1"),
        (6, "empty_text", ""),
        (7, "empty_label", "x"),
        (11, "too_few_cells", "y"),
        (12, "too_many_cells", ",,"),
        (13, "long_label", "z"),
    ]
    assert len(table.broken) == 7 == table.broken.counts.total()


def test_only_the_first_broken_rows_are_kept_but_all_are_counted():
    table = read_table(b"text,label\na,1\nb,0\n" + b"x\n" * 5_000, "text", "label")
    assert (len(table.broken), len(table.broken.first), table.broken.first[-1].line) == (5_000, 20, 23)
    assert table.broken.words() == "5,000 with too few cells (first in line 4)"


@pytest.mark.parametrize("rows_after", [3, 3_000])
def test_a_quote_that_never_closes_costs_one_row(rows_after):
    raw = b'text,label\ngood,1\n"stray,1\n' + b'bad,0\n"so, so",1\n' * rows_after
    table = read_table(raw, "text", "label")
    assert table.counts == {"0": rows_after, "1": rows_after + 1}
    assert [(row.line, row.reason) for row in table.broken.first] == [(3, "open_quote")]


def test_quotes_escaped_by_a_backslash_are_quotes_and_others_without_meaning_are_kept():
    raw = b'id\tlabel\treview\n"1"\t1\t"So \\"great\\" a film, \\"really\\""\n"2"\t0\t"A \\"bad\\" one, C:\\new"\n'
    for delimiter in (b"\t", b",", b";"):
        read = read_table(raw.replace(b"\t", delimiter), "review", "label")
        assert read.texts == ['So "great" a film, "really"', 'A "bad" one, C:\\new']
    assert read_table(b'text,label\n"C:\\",1\n"D:\\",0\n', "text", "label").texts == ["C:\\", "D:\\"]
    assert read_table(b'text,label\n5" of \\"it\\",1\nx,0\n', "text", "label").texts == ['5" of \\"it\\"', "x"]


ABOVE = [
    "sep={0}\n",
    '"sep={0}"\n',
    "Reviews of 2026\n",
    "Reviews of 2026{0}\n\n",
    "# exported by a tool\n# on 2026-01-02\n",
    "sep={0}\nReviews of 2026{0}\n{0}\nExported{0}2026-01-02\n\n",
    "Exported{0}2026-01-02\nAuthor{0}Anna\n\n",
]


@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("names", [("text", "label"), ("phrase", "mood"), ("文本", "标签")])
def test_what_stands_above_a_table_is_no_data(above, names):
    rows = [(f"Good{place}; or, well", "neg" if place % 2 else "pos") for place in range(12)]
    for delimiter in ";,\t":
        raw = above.format(delimiter).encode() + table_bytes([names, *rows, ("broken",)], delimiter)
        seen, table = preview(raw), read_table(raw, *names)
        assert tuple(column.name for column in seen.columns) == names
        assert table.examples == rows
        assert [row.line for row in table.broken.first] == [raw.count(b"\n")]
        assert ("2026" in " ".join(seen.preamble)) == ("2026" in above)


@pytest.mark.parametrize(
    ("above", "message"),
    [
        ("sep=~\n", "line 1: sep='~' must be one of"),
        ("Author;Anna\n", "reads like the names"),
        ("A;B\nC;D\n", "delete"),
    ],
)
def test_a_preamble_that_cannot_be_told_from_data_is_refused_in_words(above, message):
    raw = (above + "phrase;mood\n" + "Good;pos\nBad;neg\n" * 6).encode()
    with pytest.raises(IntakeError, match=message):
        read_table(raw, *(column.name for column in preview(raw).columns))


def test_long_texts_are_cut_and_control_characters_dropped_both_counted():
    raw = b"text,label\n" + b"x" * 10_000_000 + b",1\ngo\0od\x1b\x07,0\nb\x00\x0bad ,\x000\n"
    table = read_table(raw, "text", "label")
    assert [len(text) for text in table.texts] == [LONGEST_TEXT, 4, 4]
    assert table.texts[1:] == ["good", "b\nad"]
    assert (table.n_cut, table.n_dropped, table.label_names) == (1, 4, ("0", "1"))


def test_numbers_and_words_stand_in_natural_order():
    def names(labels):
        return read_table(
            table_bytes([("text", "label"), *(("x", label) for label in labels)]), "text", "label"
        ).label_names

    assert names(map(str, reversed(range(11)))) == tuple(map(str, range(11)))
    assert names(["1", "-1", "0.5", " 1 "]) == ("-1", "0.5", "1")
    assert names(["10 stars", "2 stars", "1 star", "2  stars"]) == ("1 star", "2 stars", "10 stars")


def test_choices_are_checked():
    for choice in ({"encoding": "rot13"}, {"delimiter": "x"}):
        with pytest.raises(IntakeError, match="must be one of"):
            preview(b"text,label\na,1\n", **choice)
    with pytest.raises(IntakeError, match="must be another column"):
        read_table(b"text,label\na,1\n", "text", "text")


cells = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(st.lists(st.tuples(cells, st.sampled_from(["a", "b", "c"])), min_size=1), st.sampled_from(DELIMITERS), st.data())
def test_every_row_is_read_or_counted(rows, delimiter, data):
    first = [("first", "a"), ("second", "b"), ("third", "a")]  # a label of one row above all others would be the names
    raw = table_bytes([("text", "label"), *first, *rows], delimiter)
    table = read_table(raw, "text", "label", delimiter=delimiter, encoding="utf-8", has_header=True)
    assert len(table) + table.broken.counts["empty_text"] == len(rows) + 3 == len(table) + len(table.broken)


@given(
    st.one_of(
        st.binary(max_size=80), st.lists(st.sampled_from(PIECES), max_size=20).map(lambda p: "".join(p).encode())
    ),
    st.sampled_from([None, *ENCODINGS]),
    st.sampled_from([None, True, False]),
)
@example(b'{"text": 1}\n{', None, None)
def test_nothing_crashes_it(raw, encoding, has_header):
    with contextlib.suppress(IntakeError):
        seen = preview(raw, encoding=encoding, has_header=has_header)
        assert seen.encoding in ENCODINGS
        assert all(len(row) == len(seen.columns) for row in seen.rows)
        "".join([*(cell for row in seen.rows for cell in row), *(column.name for column in seen.columns)]).encode()
        table = read_table(raw, seen.columns[0].name, seen.columns[-1].name, encoding=encoding, has_header=has_header)
        assert len(table) + len(table.broken) == seen.n_rows + len(seen.broken)


OBJECTS = [{"text": "good", "label": 1}, {"label": 0, "text": "bad\r\nfilm", "more": [1, {"a": None}]}, {"text": "好"}]


def as_lines(objects):
    return "\n".join(json.dumps(o) for o in objects).encode() + b"\n"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("as_list", [False, True])
def test_lines_and_lists_read_alike(indent, as_list):
    raw = json.dumps(OBJECTS, indent=indent, ensure_ascii=False).encode() if as_list else as_lines(OBJECTS)
    seen = preview(raw)
    assert (seen.form, seen.delimiter, seen.n_rows) == ("json" if as_list else "jsonl", None, 3)
    assert [column.name for column in seen.columns] == ["text", "label", "more"]
    assert (seen.text_column, seen.label_column) == ("text", "label")
    assert seen.rows[1] == ("bad film", "0", '[1, {"a": null}]')
    table = read_table(raw, "text", "label")
    assert table.examples == [("good", "1"), ("bad\nfilm", "0")]
    assert table.broken.counts == {"empty_label": 1}


def test_broken_lines_are_counted_with_reason():
    raw = (
        as_lines(OBJECTS[:2])
        + b'{"text": \n[1]\n\n7\n{"text": "\\ud800", "label": 1}\n{"text": null, "label": 1}\n{}{}\n'
    )
    table = read_table(raw, "text", "label")
    assert [(row.line, row.reason) for row in table.broken.first] == [
        (3, "bad_json"),
        (4, "no_object"),
        (6, "no_object"),
        (7, "undecodable"),
        (8, "empty_text"),
        (9, "bad_json"),
    ]
    assert len(table) == 2


def test_a_broken_list_is_read_as_far_as_it_goes():
    raw = b'[{"text": "a", "label": 1},\n {"text": "b", "label": 0},\n {"text": oops}, {"text": "c", "label": 1}]'
    table = read_table(raw, "text", "label")
    assert (len(table), table.broken.first[0].line, table.broken.first[0].reason) == (2, 3, "bad_json")
    assert read_table(raw[:60], "text", "label").broken.counts == {"bad_json": 1}


def test_truth_values_and_numbers_are_labels():
    for values, names in (
        ((True, False), ("false", "true")),
        ((10, 9, -1), ("-1", "9", "10")),
        ((0.5, 1), ("0.5", "1")),
    ):
        raw = as_lines({"text": "x", "label": value} for value in values)
        assert read_table(raw, "text", "label").label_names == names


@pytest.mark.parametrize("depth", [10, 300, 900, 990, 1_100, 100_000])
def test_deep_nesting_is_a_broken_row(depth):
    raw = as_lines(OBJECTS[:2]) + b'{"text": "x", "label": ' + b"[" * depth + b"]" * depth + b"}\n"
    assert preview(raw).n_rows in (2, 3)
    assert len(read_table(raw, "text", "label")) in (2, 3)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{\n "text": "a"\n}\n', "looks like JSON, but none of its first rows is an object: 3 with broken JSON"),
        (b'[{"text": ', "looks like JSON, but none of its first rows is an object: 1 with broken JSON"),
        (
            b'{"words": "a", "label": 1}\n',
            "text_column='text' must be one of the columns of the file: 'words', 'label'",
        ),
        (b'{"": 1, "\\ud800": 2}\n', "none of its first rows"),
    ],
)
def test_json_that_cannot_be_used_gets_words(raw, message):
    with pytest.raises(IntakeError, match=message):
        read_table(raw, "text", "label")


def test_a_text_that_begins_with_a_bracket_is_no_json():
    assert preview(b"[spoiler] good,1\n{odd} bad,0\n").form == "delimited"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.fixed_dictionaries({"text": json_values, "label": json_values}), max_size=8))
def test_any_objects_are_read_or_counted(objects):
    raw = as_lines([*OBJECTS[:2], *objects])
    assert preview(raw).n_rows == len(objects) + 2
    with contextlib.suppress(IntakeError):
        table = read_table(raw, "text", "label")
        assert len(table) + len(table.broken) == len(objects) + 2


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
    monkeypatch.setattr("transformer_core.untrusted.tables.table.MOST_ROWS", 1_000)
    for rows in (b"a,1\nb,0\n", b"a,1\nb\n", b'a,1\n"b\n'):
        with pytest.raises(IntakeError, match="more than 1,000 rows"):
            preview(b"text,label\n" + rows * 1_000)


@pytest.mark.parametrize("ends", [b"\n", b"\r", b"\r\n"])
def test_a_table_of_nothing_but_line_ends_is_refused_at_once(ends):
    raw = b"text,label\na,1\nb,0\n" + ends * ((49 << 20) // len(ends))
    for read in (preview, lambda raw: read_table(raw, "text", "label")):
        with pytest.raises(IntakeError, match=r"has [0-9,]+ lines; at most 5,000,000 are read"):
            read(raw)


def test_a_packed_bomb_is_not_unpacked():
    bomb = gzip.compress(bytes(120 << 20), 1)
    tracemalloc.start()
    with pytest.raises(IntakeError):
        preview(bomb)
    assert tracemalloc.get_traced_memory()[1] < 230 << 20
    tracemalloc.stop()
