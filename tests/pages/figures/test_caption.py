"""Captions: texts of strangers on one line, shortened, without what cannot be seen."""

import pytest

from pages.figures.caption import columns_of, folded, one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a film", "a film"),
        (" a\n\tfilm\x00 \u2028", "a film"),
        ("\u202eabc\u2066", "abc"),
        ("\u202e", ""),
        ("\ud800", ""),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("a" * 80, "a" * 80),
        ("a" * 81, "a" * 79 + "…"),
        ("好" * 41, "好" * 39 + "…"),
    ],
)
def test_a_text_becomes_a_line_that_can_be_read(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_very_long_text_is_no_work() -> None:
    assert columns_of(one_line("word " * 2_000_000)) <= 80


def test_lines_are_broken_at_blanks_and_none_is_lost() -> None:
    lines = ["one two three four", "好" * 9, "x" * 15, ""]
    broken = folded(lines, 10)
    assert max(map(columns_of, broken)) <= 10
    assert broken[:2] == ["one two", "three four"]
    assert "".join(broken).replace(" ", "") == "".join(lines).replace(" ", "")
