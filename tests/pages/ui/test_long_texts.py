"""A text longer than a model reads: the window that is read, where it starts and ends, and that no more is shown."""

import pytest

from pages.ui.header import whole_words, word_start
from pages.ui.language import words
from pages.ui.models import open_bundle
from tests.helpers.pages import run, told


def test_a_long_text_is_read_in_a_window_that_moves_back_with_a_shortened_text() -> None:
    app = run("attention", text="good film " * 100)
    assert not app.exception
    assert words("en")["text.part_read"].format(count=202, most=128) in app.get("popover")[0].proto.popover.label
    app.slider(key="start@attention").set_value(70).run()
    assert not app.exception
    app.text_input(key="text@attention").set_value("good film " * 70).run()
    assert not app.exception
    assert app.slider(key="start@attention").value == app.slider(key="start@attention").max


@pytest.mark.parametrize(
    ("text", "place", "start"),
    [("an unwatchability", 8, 3), ("an unwatchability", 3, 3), ("这部电影", 2, 2), ("a.b", 2, 2)],
)
def test_a_window_starts_where_a_word_does(text: str, place: int, start: int) -> None:
    assert word_start(text, place) == start


@pytest.mark.parametrize(
    ("text", "most", "read"),
    [
        ("good films and unwatchability here", 6, "good films and"),
        ("unwatchability", 3, "unwatch"),
        ("good films ", 9, "good films "),
        ("这部电影很好看", 6, "这部电影"),
    ],
)
def test_a_window_ends_where_a_word_does(text: str, most: int, read: str) -> None:
    assert whole_words(open_bundle("sentiment").tokenizer.encode(text, max_len=most)) == read


@pytest.mark.parametrize(
    ("name", "start"), [("gpt", "0"), ("gpt", "50"), ("bert", "7"), ("translation", "3"), ("encoder", "11")]
)
def test_no_page_shows_more_of_a_long_text_than_is_read(name: str, start: str) -> None:
    text = " ".join(f"the old dog sees {number} trees." for number in range(60))
    app = run(name, text=text, start=start, gpt_part="write", encoder_part="edit", translation_part="cross")
    assert not app.exception
    blocks = [block.value for block in app.code] + [block.proto.body for block in app.get("html")]
    assert "59 trees" not in "".join([told(app), *blocks])
