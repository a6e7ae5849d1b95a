"""Pasted texts are cleaned, cut at the bound, and refused where they are too short."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_core.training.intake import IntakeError, clean_text


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
