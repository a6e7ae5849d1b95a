"""Stories are read with their quotation marks mended."""

import pytest

from transformer_core.recipes.captions import MARKS, mended


@pytest.mark.parametrize(
    ("spoilt", "whole"),
    [
        ("â€œRun!â€ said Tom.", '"Run!" said Tom.'),
        ("Itâ€™s a bird.", "It's a bird."),
        ("â€˜Yesâ€™, she said.", "'Yes', she said."),
        ("a well-knownâ€“old dog", "a well-known-old dog"),
        ("They ranâ€”and fell.", "They ran - and fell."),
        ("And thenâ€¦", "And then..."),
        ("“It’s mine,” he said.", '"It\'s mine," he said.'),
    ],
)
def test_signs_that_were_decoded_in_the_wrong_alphabet_are_put_right(spoilt: str, whole: str) -> None:
    assert mended(spoilt) == whole


def test_every_sign_that_was_misread_is_known() -> None:
    """All quotation marks and dashes of which UTF-8 begins with the same two bytes, as Windows-1252 shows them."""
    for sign, whole in {"“": '"', "‘": "'", "’": "'", "–": "-", "—": " - ", "…": "..."}.items():
        spoilt = sign.encode().decode("windows-1252")
        assert mended(f"a{spoilt}b") == f"a{whole}b"
    assert set(MARKS.values()) == {'"', "'", "-", " - ", "..."}


def test_a_sound_text_stays_as_it_is() -> None:
    for text in ('"It is," said Ann - and left...', "à la carte, 20 € a day", "naïve café â la mode", ""):
        assert mended(text) == text
