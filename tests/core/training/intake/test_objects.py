"""JSON tables: objects on lines or in a list become rows; what is none is counted with its line."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_core.training.intake import IntakeError, preview, read_table

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
def test_what_cannot_be_used_gets_words(raw, message):
    with pytest.raises(IntakeError, match=message):
        read_table(raw, "text", "label")


def test_a_text_that_begins_with_a_bracket_is_no_json():
    assert preview(b"[spoiler] good,1\n{odd} bad,0\n").form == "delimited"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.fixed_dictionaries({"text": json_values, "label": json_values}), max_size=8))
def test_any_objects_are_read_or_counted(objects):
    raw = as_lines([*OBJECTS[:2], *objects])
    assert preview(raw).n_rows == len(objects) + 2
    with contextlib.suppress(IntakeError):
        table = read_table(raw, "text", "label")
        assert len(table) + len(table.broken) == len(objects) + 2
