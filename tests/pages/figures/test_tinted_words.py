"""Tinted words carry their numbers for everybody, and nothing unescaped."""

from pages.figures.tinted_words import FULL, MOST_HUE, Tinted, points, tinted_words

WORDS = {"label": "<b>", "towards": "to", "against": "from", "unit": "points"}


def test_hue_and_strength_follow_sign_and_size() -> None:
    html = tinted_words(
        [Tinted("a", "", FULL / 2, "a!"), Tinted("b", " ", -2 * FULL, "b!"), Tinted("c", " ", None, "c!")],
        ("#111111", "#222222"),
        WORDS,
    )
    assert f"color-mix(in srgb, #111111 {MOST_HUE / 2:.1f}%, transparent)" in html
    assert f"color-mix(in srgb, #222222 {MOST_HUE:.1f}%, transparent)" in html
    assert "#222222 0.0%" in html
    assert html.count('role="listitem"') == 3
    assert 'aria-label="a!"' in html


def test_nothing_is_left_unescaped() -> None:
    html = tinted_words([Tinted("<i>", "<u>", 0.1, '"<s>')], ("#111111", "#222222"), WORDS)
    assert not any(tag in html for tag in ("<i>", "<u>", "<s>", 'aria-label="<b>'))


def test_points_are_whole_and_signed() -> None:
    assert [points(worth) for worth in (0.124, -0.06, 0.0)] == ["+12", "−6", "+0"]
