"""What a run keeps comes back equal; pasted texts are cleaned; no text is in both parts of a split."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_core.recipes.reviews import set_aside
from transformer_core.training.examples import Example, distinct, split
from transformer_core.training.intake import ROWS_FILE, IntakeError, clean_text, read_rows, read_table, write_rows

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
lists = st.lists(st.builds(Example, texts, st.integers(0, 19)), min_size=1)


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


def test_a_pasted_text_is_cleaned_and_counted():
    clean = clean_text("\ufeff  one\r\ntwo\rthree\x00\x07\u2028four\x97\ud83d ", 5, 100)
    assert (clean.text, clean.n_dropped, clean.n_cut) == ("one\ntwo\nthree\nfour—", 4, 0)
    cut = clean_text("x" * 120 + "\n", 5, 100)
    assert (len(cut.text), cut.n_cut) == (100, 20)
    with pytest.raises(IntakeError, match="the text has 3 characters; to learn from it, at least 1,000 are needed"):
        clean_text(" abc\x00\n", 1_000, 2_000)


@settings(deadline=None, max_examples=200)
@given(st.text(st.characters()))
def test_a_cleaned_text_can_be_written_and_is_clean(text):
    clean = clean_text(text, 0, 10_000).text
    clean.encode()
    assert clean_text(clean, 0, 10_000) == type(clean_text("", 0, 1))(clean, 0, 0)
    assert not any(char < " " and char not in "\t\n" for char in clean)


def same(text):
    return " ".join(text.casefold().split())


@settings(deadline=None, max_examples=100)
@given(lists, st.integers(1, 60), st.integers(0, 9))
def test_no_text_is_in_both_parts_and_none_is_lost(examples, held_out, seed):
    counts = Counter(example.label for example in distinct(examples))
    if min(counts.values()) < 2:
        with pytest.raises(ValueError, match="to hold one out, at least 2 are needed"):
            split(examples, held_out, seed)
        return
    train, aside = split(examples, held_out, seed)
    assert not {same(example.text) for example in train} & {same(example.text) for example in aside}
    assert sorted([*train, *aside], key=str) == sorted(distinct(examples), key=str)
    assert {example.label for example in train} == {example.label for example in aside} == counts.keys()
    assert len(aside) <= max(held_out, len(counts))
    assert len(aside) <= max(sum(counts.values()) // 4, len(counts))
    assert (train, aside) == split(examples, held_out, seed)


def test_a_split_keeps_the_shares_of_the_classes():
    examples = [Example(f"text {n}", int(n % 10 == 0) + int(n % 5 == 0)) for n in range(1_000)]
    train, aside = split(examples, 100, 3)
    assert Counter(example.label for example in aside) == {0: 80, 1: 10, 2: 10}
    assert 0.7 < np.mean([example.label == 0 for example in train[:100]]) < 0.9
    assert aside != split(examples, 100, 4)[1]
    with pytest.raises(ValueError, match="held_out=0 must be at least 1"):
        split(examples, 0, 3)


def test_the_first_of_equal_texts_is_kept():
    kept = distinct([Example("A  b", 1), Example("c", 0), Example(" a B", 0)])
    assert set(kept) == {Example("A  b", 1), Example("c", 0)}
    assert len(kept) == 2


def test_what_recipes_set_aside_is_as_it_was_when_they_were_run():
    train, aside = set_aside([Example(f"text {n}", n % 2) for n in range(12)], 2, seed=0)
    assert [example.text for example in aside] == ["text 9", "text 2", "text 7", "text 4"]
    assert len(train) == 8
