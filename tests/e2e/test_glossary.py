"""A term's meaning comes under the pointer and by keyboard, in both languages; the rest of a page's terms in a list."""

import pytest
from playwright.sync_api import Page, expect

from pages.ui.language import words
from tests.helpers.browser import visit

SHOWN = "(term) => getComputedStyle(term, '::after').content.slice(1, -1)"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_term_says_what_it_means_and_moves_nothing(page: Page, address: str, language: str) -> None:
    said = words(language)
    visit(page, address, "attention", attention_part="flow", lang=language)
    term = page.locator("dfn", has_text=said["term.entropy"]).first
    term.wait_for()
    assert term.evaluate(SHOWN) in ("", "on")  # of "none" or "normal", nothing
    term.scroll_into_view_if_needed()
    before = page.locator(".vm").first.bounding_box()
    term.hover()
    assert term.evaluate(SHOWN) == said["meaning.entropy"]
    page.mouse.move(2, 2)
    term.focus()
    assert term.evaluate(SHOWN) == said["meaning.entropy"]
    assert page.locator(".vm").first.bounding_box() == before
    page.get_by_role("button", name=said["glossary.heading"]).click()
    for name in ("nats", "rho"):
        expect(page.get_by_text(said[f"meaning.{name}"][:20])).to_be_visible()
