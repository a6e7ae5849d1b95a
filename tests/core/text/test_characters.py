import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.text import visible


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("cat", "cat"),
        (" the cat", "␣the␣cat"),
        ("\n", "⏎"),
        ("a\t\n", "a⇥⏎"),
        ("\u200b", "<U+200B>"),
        ("\x00", "<U+0000>"),
        ("\u202eabc", "<U+202E>abc"),
        ("\u200d", "<U+200D>"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("\ufe0f", "<U+FE0F>"),
        ("\u0301", "◌\u0301"),
        (" \u0301", "␣◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("\u3000", "<U+3000>"),
        ("\u3164", "<U+3164>"),
        ("\U000e0041", "<U+E0041>"),
        ("", "<empty>"),
    ],
)
def test_marks(text: str, label: str) -> None:
    assert visible(text) == label


@given(st.characters(exclude_categories=["Cs"]))
def test_every_single_character_leaves_ink(char: str) -> None:
    label = visible(char)
    assert label.isprintable()
    assert " " not in label
    assert not unicodedata.category(label[0]).startswith("M")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_only_joiners_stay_unprintable(text: str) -> None:
    assert visible(text).replace("\u200c", "").replace("\u200d", "").isprintable()
