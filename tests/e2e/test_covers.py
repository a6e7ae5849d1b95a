"""A covered picture in a real browser: pale before, whole after a tap, and nothing above it moves."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.browser import settle, visit

COVERED = [
    ("feed_forward", {"feed_forward_part": "dead"}, "feed_forward_dead", ".role-mark"),
    ("encoder", {"encoder_part": "tokens"}, "encoder_tokens", ".vm-canvas"),
    ("masks", {"masks_part": "cheat"}, "masks_cheat", ".mark-line"),  # a training that nobody asked for yet
]


@pytest.mark.parametrize(("path", "query", "name", "mark"), COVERED)
def test_one_tap_shows_a_covered_picture_where_it_stands(
    page: Page, address: str, path: str, query: dict[str, str], name: str, mark: str
) -> None:
    visit(page, address, path, **query)
    picture = page.locator(f".st-key-cover_{name}")
    judged = page.locator(f".st-key-cover_{name}_judged")
    first = picture.locator(mark).first
    first.wait_for(state="attached", timeout=60_000)
    assert float(picture.evaluate("it => getComputedStyle(it).opacity")) < 1
    assert "blur" in first.evaluate("it => getComputedStyle(it).filter")
    assert picture.evaluate("it => getComputedStyle(it).pointerEvents") == "none"
    assert not re.search("[a-mo-z0-9]", judged.inner_text().lower())
    settle(page)
    above = judged.bounding_box()
    place = picture.bounding_box()
    page.get_by_role("button", name="Show me").first.click()
    expect(judged).to_contain_text("Measured:")
    expect(picture).to_have_css("opacity", "1")
    assert "blur" not in first.evaluate("it => getComputedStyle(it).filter")
    settle(page)
    assert above is not None
    assert place is not None
    now_above, now = judged.bounding_box(), picture.bounding_box()
    assert now_above is not None
    assert now is not None
    assert now_above["y"] == pytest.approx(above["y"], abs=1)
    assert now["y"] == pytest.approx(place["y"], abs=28)  # the words may be a line shorter than what stood for them
    assert f"shown={name}" in page.url


def test_a_tap_on_an_option_answers(page: Page, address: str) -> None:
    visit(page, address, "feed_forward", feed_forward_part="dead")
    page.get_by_role("radio", name="none", exact=True).click()
    judged = page.locator(".st-key-cover_feed_forward_dead_judged")
    expect(judged).to_contain_text(re.compile("As you predicted|Not so"))
    page.get_by_role("button", name="Cover again").click()
    expect(page.get_by_role("button", name="Show me")).to_be_visible()
    expect(judged).not_to_contain_text(re.compile("As you predicted|Not so"))


def test_headings_of_a_card_are_smaller_than_the_pages_title(page: Page, address: str) -> None:
    visit(page, address)
    size = "it => parseFloat(getComputedStyle(it).fontSize)"
    title = page.locator(".st-key-title h2").evaluate(size)
    page.get_by_text("The model's card").click()
    heading = page.locator(".stExpander h1").first
    heading.wait_for(state="visible")
    assert heading.evaluate(size) < title
