"""Encodings are told from the bytes, and pasted texts are cleaned."""

import contextlib
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.untrusted.tables import ENCODINGS, IntakeError, clean_text, preview, read_table

SIMPLIFIED = [
    ("这部电影真的很好看，演员的表演非常出色。", "1"),
    ("剧情无聊，看了一半就睡着了。", "0"),
    ("画面很美", "1"),
]
TRADITIONAL = [
    ("這部電影真的很好看，演員的表演非常出色。", "1"),
    ("劇情無聊，看了一半就睡著了。", "0"),
    ("畫面很美", "1"),
]
FRENCH = [("Un film très réussi, drôle et émouvant.", "1"), ("C'était ennuyeux à mourir.", "0"), ("Déçu !", "0")]
GERMAN = [("Ein schöner Film, große Schauspieler.", "1"), ("Langweilig und überflüssig.", "0")]
TYPOGRAPHIC = [("It’s a “great” film – really…", "1"), ("Don’t.", "0")]
RUSSIAN = [
    ("Очень хороший фильм и прекрасные актёры, советую всем посмотреть.", "1"),
    ("Скучно и долго, совсем не понравилось, не тратьте время.", "0"),
]
ARABIC = [("فيلم رائع جدا", "1"), ("ממש משעמם", "0"), ("👩‍👩‍👧 ok", "1")]


def encoded(rows, encoding, delimiter=";"):
    lines = [f"text{delimiter}label", *(f"{text}{delimiter}{label}" for text, label in rows)]
    return "\r\n".join(lines).encode(encoding)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("rows", "encoding", "found"),
    [
        (ARABIC, "utf-8", "utf-8"),
        (ARABIC, "utf-8-sig", "utf-8"),
        (ARABIC, "utf-16", "utf-16"),
        (SIMPLIFIED, "utf-8", "utf-8"),
        (SIMPLIFIED, "gb18030", "gb18030"),
        (SIMPLIFIED[:1], "gbk", "gb18030"),
        (TRADITIONAL, "big5", "big5"),
        (FRENCH, "latin-1", "windows-1252"),
        (GERMAN, "latin-1", "windows-1252"),
        (TYPOGRAPHIC, "windows-1252", "windows-1252"),
        (RUSSIAN, "windows-1251", "windows-1251"),
    ],
)
def test_encodings_are_found(rows, encoding, found, zipped):
    raw = encoded([*rows, ("fine", "0")], encoding)
    raw = gzip.compress(raw) if zipped else raw
    assert preview(raw).encoding == found
    assert read_table(raw, "text", "label").examples == [*rows, ("fine", "0")]


def test_utf16_of_both_ends_and_without_a_mark_when_it_is_named():
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        raw = encoded(SIMPLIFIED, encoding)
        for whole in (read_table(mark + raw, "text", "label"), read_table(raw, "text", "label", encoding=encoding)):
            assert whole.examples == SIMPLIFIED
        with pytest.raises(IntakeError, match="text"):
            read_table(encoded([("a", "1"), ("b", "0")] * 9, encoding), "text", "label")


@pytest.mark.parametrize("broken", [b"\xff\xfe caf\xe9;1\r\n", b"\xc3\x28 \xe4\xbd;0\r\n"])
def test_a_broken_row_in_utf8_is_left_out(broken):
    raw = encoded([*ARABIC, ("last", "1")], "utf-8").replace(b"last;1", broken + b"last;1")
    table = read_table(raw, "text", "label")
    assert table.examples == [*ARABIC, ("last", "1")]
    assert [(row.line, row.reason) for row in table.broken.first] == [(5, "undecodable")]
    table.broken.first[0].beginning.encode()


def test_broken_characters_outside_the_two_columns_do_no_harm():
    table = read_table("好;1;é\n坏;0;".encode() + b"\xff\n", "column 1", "column 2")
    assert table.examples == [("好", "1"), ("坏", "0")]
    assert not table.broken


def test_a_label_that_cannot_be_decoded_is_none():
    table = read_table("text;label\n好;是\n坏;否\n坏;".encode() + b"\xe6\xff\n", "text", "label")
    assert (table.label_names, table.broken.counts) == (("否", "是"), {"undecodable": 1})


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60), st.sampled_from(["utf-8-sig", "utf-16"])
)
def test_unicode_comes_back_as_it_was(text, encoding):
    words = "".join(char for char in text if char.isalnum())
    raw = encoded([(f"a{words}", "1"), ("b", "0")], encoding, "\t")
    assert read_table(raw, "text", "label").texts == [f"a{words}", "b"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_that_is_offered_reads_anything(encoding):
    for raw in (b"text,label\na,1\nb,0\n", bytes(range(1, 256)) * 3, b"\x81a\x81\n" * 400, b"\xff\xfe\x00\xd8\x00"):
        with contextlib.suppress(IntakeError):
            preview(raw, encoding=encoding)


def test_a_pasted_text_is_cleaned_and_counted():
    clean = clean_text("\ufeff  one\r\ntwo\rthree\x00\x07\u2028four\x97\ud83d ", 5, 100)
    assert (clean.text, clean.n_dropped, clean.n_cut) == ("one\ntwo\nthree\nfour—", 4, 0)
    cut = clean_text("x" * 120 + "\n", 5, 100)
    assert (len(cut.text), cut.n_cut) == (100, 20)
    with pytest.raises(IntakeError, match="the text has 3 characters; to learn from it, at least 1,000 are needed"):
        clean_text(" abc\x00\n", 1_000, 2_000)


@given(st.text(st.characters()))
def test_a_cleaned_text_can_be_written_and_is_clean(text):
    clean = clean_text(text, 0, 10_000).text
    clean.encode()
    assert clean_text(clean, 0, 10_000) == type(clean_text("", 0, 1))(clean, 0, 0)
    assert not any(char < " " and char not in "\t\n" for char in clean)
