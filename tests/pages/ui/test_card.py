"""A card that may come from anyone: its layout stays, and nothing in it is fetched, followed or executed."""

from dataclasses import replace
from pathlib import Path

import pytest

from pages.ui.card import safe_line
from pages.ui.language import plain, words
from pages.ui.models import MORE_MODELS, forget_models, open_bundle
from tests.helpers.pages import run, told
from transformer_core.bundle import save

CARD = """# Sign in
![picture](https://example.org/seen.png)

[Sign in again](https://example.org/sign-in) or at https://example.org, www.example.org, me@example.org

<img src="https://example.org/html.png"> :red[red]

[later]: https://example.org/later
"""


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with a card of somebody's."""
    save(replace(open_bundle("sentiment"), card=CARD, card_zh=""), tmp_path / "foreign")
    monkeypatch.setenv(MORE_MODELS, str(tmp_path))
    forget_models()


@pytest.mark.parametrize("page", ["home", "my_model"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_card_of_a_model_that_is_not_ours_is_shown_as_plain_text(page: str, language: str, foreign: None) -> None:
    app = run(page, model="foreign", lang=language)
    assert not app.exception
    shown = told(app)
    heading, *lines = [line for line in CARD.splitlines() if line]
    assert f"**{heading.removeprefix('# ')}**" in shown
    for line in lines:
        assert plain(line) in shown
        assert line not in shown


def test_a_model_without_a_card_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(replace(open_bundle("sentiment"), card="", card_zh=""), tmp_path / "bare")
    monkeypatch.setenv(MORE_MODELS, str(tmp_path))
    assert words("en")["model.no_card"] in told(run("home", model="bare"))


def test_a_card_keeps_its_layout_and_nothing_that_reaches_out() -> None:
    assert safe_line("## A [b](http://c.d)") == f"\n**A {plain('[b](http://c.d)')}**\n"
    assert safe_line("| `a*b` | **no** | ![x](y) |") == f"| `a*b` | **no** | {plain('![x](y)')} |"
    assert safe_line("|---|:-:|") == "| --- | :-: |"
    assert safe_line("- <b>x</b> ` :red[y]") == f"- {plain('<b>x</b> ` :red[y]')}"
