"""The strict mode: files are read as a stream, errors name file and line, and the rows of a run come back equal."""

import csv
import gzip
import json
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_core.training.examples import Example
from transformer_core.training.intake import (
    ROWS_FILE,
    read_labelled,
    read_rows,
    read_table,
    write_labelled,
    write_rows,
)

LABELS = ("negative", "positive")
EXAMPLES = [Example("good, “really”\nso", 1), Example('a "dull" film', 0), Example("你好", 1)]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
lists = st.lists(st.builds(Example, texts, st.integers(0, 19)), min_size=1)


def read(path):
    return list(read_labelled(path, LABELS))


def refusal(path):
    with pytest.raises(ValueError, match=path.name) as error:
        read(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_is_written_is_read_back(tmp_path):
    write_labelled(tmp_path / "a.csv", EXAMPLES)
    assert read(tmp_path / "a.csv") == EXAMPLES


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_all_four_forms_and_both_ways_of_labelling_read_alike(tmp_path, zipped, named):
    def label(example):
        return LABELS[example.label] if named else example.label

    lines = "".join(json.dumps({"label": label(e), "text": e.text, "more": 1}) + "\n" for e in EXAMPLES)
    (tmp_path / "a.jsonl").write_text(lines + "\n", encoding="utf-8")
    with (tmp_path / "a.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([("id", "label", "text"), *((7, label(e), e.text) for e in EXAMPLES)])
    for name in ("a.jsonl", "a.csv"):
        path = tmp_path / name
        if zipped:
            path = tmp_path / f"{name}.gz"
            path.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        assert read(path) == EXAMPLES


def test_a_file_is_read_only_as_far_as_it_is_asked_for(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\ngood,1\nbad,0\nbroken,7\n")
    assert len(list(islice(read_labelled(path, LABELS), 2))) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.csv holds no examples; it needs at least one with text and label"),
        (b"text,label\n", "a.csv holds no examples; it needs at least one with text and label"),
        (b"words,label\nx,1\n", "a.csv, line 1 has no 'text'; it has 'words', 'label'"),
        (b"text\nx\n", "a.csv, line 1 has no 'label'; it has 'text'"),
        (b"text,label\nx,1\ny\n", "a.csv, line 3 has 1 columns; the header has 2"),
        (b"text,label\nx,1\n\xff\xfe,0\n", "a.csv, line 3: byte 1 of the line is not UTF-8; save the file as UTF-8"),
        (b'text,label\n"x\ny",1\n"z,0\n', "a.csv, line 4: the row that begins here is broken: unexpected end of data"),
        (b"text,label\nx,2\n", "a.csv, line 2: label='2' is unknown; it must be one of 0, 1, negative, positive"),
        (b"text,label\n  ,1\n", "a.csv, line 2: text='  ' must be a string that is not blank"),
    ],
)
def test_broken_csv(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    assert refusal(tmp_path / "a.csv") == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"text": "x", "label": 1}\n{"text": ',
            "a.jsonl, line 2 is not JSON: Expecting value: line 1 column 9 (char 8)",
        ),
        ("[1, 2]\n", "a.jsonl, line 1 must be a JSON object, not list"),
        ('{"text": "x"}\n', "a.jsonl, line 1 has no 'label'; it has 'text'"),
        ('{"text": 5, "label": 1}\n', "a.jsonl, line 1: text=5 must be a string that is not blank"),
        (
            '{"text": "x", "label": true}\n',
            "a.jsonl, line 1: label=True is unknown; it must be one of 0, 1, negative, positive",
        ),
        ('{"text": "\\ud800", "label": 1}\n', "a.jsonl, line 1: the text holds half a character (a lone surrogate)"),
    ],
)
def test_broken_jsonl(tmp_path, content, message):
    (tmp_path / "a.jsonl").write_text(content)
    assert refusal(tmp_path / "a.jsonl") == message


def test_broken_gzip(tmp_path):
    whole = gzip.compress(b"text,label\n" + b"".join(b"%d,1\n" % n for n in range(50_000)))
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert "the gzip data is broken" in refusal(tmp_path / "cut.csv.gz")
    (tmp_path / "no.csv.gz").write_bytes(b"text,label\nx,1\n")
    assert refusal(tmp_path / "no.csv.gz").startswith("no.csv.gz, line 1: the gzip data is broken: Not a gzipped file")


def test_a_long_text_is_read_whole(tmp_path):
    write_labelled(tmp_path / "a.csv", [Example("so " * 100_000 + "long", 1)])
    assert read(tmp_path / "a.csv") == [Example("so " * 100_000 + "long", 1)]


def test_an_endless_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_core.training.intake.opening.LONGEST_LINE", 100)
    (tmp_path / "a.csv").write_text("text,label\n" + "x" * 101 + ",1\n")
    assert refusal(tmp_path / "a.csv") == "a.csv, line 2 is longer than 100 bytes, the most that are read"


def test_an_unknown_ending_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert refusal(tmp_path / "a.txt") == "a.txt must end in one of .csv, .jsonl, or in one of these with .gz after it"


@settings(deadline=None, max_examples=100)
@given(examples=lists)
def test_rows_come_back_equal(tmp_path_factory, examples):
    path = tmp_path_factory.mktemp("rows") / ROWS_FILE
    path.write_bytes(write_rows(examples))
    assert read_rows(path) == examples


def test_a_table_comes_back_equal(tmp_path):
    table = read_table('text,label\n"a ""b""\nc",x\n好😀\u2028\\,y\n'.encode(), "text", "label")
    (tmp_path / ROWS_FILE).write_bytes(write_rows(table))
    assert read_rows(tmp_path / ROWS_FILE) == list(table) == [Example('a "b"\nc', 0), Example("好😀\n\\", 1)]


def test_damaged_rows_get_words(tmp_path):
    for raw in (b"", b'{"text": "a"}\n', b'{"text": "a", "label": 20}\n', b'{"text": "a", "label": 1', b"\xff\n"):
        (tmp_path / ROWS_FILE).write_bytes(raw)
        with pytest.raises(ValueError, match=ROWS_FILE):
            read_rows(tmp_path / ROWS_FILE)
