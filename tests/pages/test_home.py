"""Home is useful with no click, in both languages, whatever is typed."""

import numpy as np
import pytest

from pages.ui.header import DEFAULT_TEXT, MOST_CHARACTERS
from pages.ui.language import words
from pages.ui.models import open_bundle
from tests.pages.running import run, told
from transformer_core.analysis.attention.occlusion import occlusion


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_screen_needs_no_click(language: str) -> None:
    app = run(lang=language)
    assert not app.exception
    assert app.text_input(key="text@").value == DEFAULT_TEXT
    assert words(language)["home.heading"] in told(app)
    assert words(language)["home.verdict"] in told(app)
    assert "2" in words(language)["diagram.parameters"].format(count="2")


@pytest.mark.parametrize(
    "text",
    [
        "日本語と中文 😀👩‍👩‍👧‍👦",
        "שלום עולם مرحبا",
        "a\x00b\x07\x1b[31m\u202e",
        "<script>alert(1)</script>",
        "=cmd|' /C calc'!A0",
        "𝕬" * 300,
    ],
)
def test_strange_text_is_read(text: str) -> None:
    app = run(text=text)
    assert not app.exception
    assert not app.error
    assert words("en")["home.verdict"] in told(app)


def test_empty_text_is_answered_in_words_and_the_page_lives_on() -> None:
    app = run()
    app.text_input(key="text@").set_value("   ").run()
    assert not app.exception
    assert words("en")["text.empty"] in told(app)
    app.text_input(key="text@").set_value("back again").run()
    assert words("en")["home.verdict"] in told(app)


def test_ten_megabytes_are_refused_in_words() -> None:
    app = run()
    app.text_input(key="text@").set_value("word " * 2_000_000).run()
    assert not app.exception
    assert f"{MOST_CHARACTERS:,}" in told(app)


def test_an_unknown_model_in_the_link_is_named() -> None:
    app = run(model="gpt-9")
    assert not app.exception
    assert "gpt-9" in told(app)
    assert words("en")["home.verdict"] in told(app)


def test_a_broken_bundle_gives_words_and_nothing_else_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    from pages.ui import header
    from transformer_core.checkpoints import BundleError

    def broken(_: str) -> None:
        raise BundleError("model.safetensors is truncated")

    monkeypatch.setattr(header, "open_bundle", broken)
    app = run()
    assert not app.exception
    assert "model.safetensors is truncated" in told(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_word_that_matters_most_is_the_one_that_hiding_says(language: str) -> None:
    app = run(lang=language, home_try="true")
    options = app.radio[0].options
    assert 2 <= len(options) <= 4
    bundle = open_bundle("sentiment")
    change = occlusion(bundle=bundle, text=DEFAULT_TEXT, n_tokens=128).change
    most = int(np.nanargmax(np.abs(change)))
    app.radio[0].set_value(str(most)).run()
    assert not app.exception
    assert words(language)["try.right"] in told(app)
    assert f"{100 * change[most]:+.1f}" in told(app)


@pytest.mark.parametrize("text", ["good", "[MASK] [PAD]", "!"])
def test_with_one_word_there_is_nothing_to_choose_from(text: str) -> None:
    app = run(text=text, home_try="true")
    assert not app.exception
    assert words("en")["home.too_few"] in told(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_words_that_the_model_never_saw_are_told(language: str) -> None:
    text = "这部电影的故事很无聊。"
    unknown = open_bundle("sentiment").tokenizer.encode(text).unknown
    warned = run(lang=language, text=text)
    assert words(language)["text.unknown"].format(count=sum(unknown), all=len(unknown) - 2) in warned.warning[0].value
    assert not run(lang=language).warning
