"""Every part of every page under a finger: nothing scrolls the page sideways, and no control is too small to hit."""

import re
from collections.abc import Iterator
from itertools import groupby
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.helpers.browser import rest
from tests.helpers.pages import ALL_SCREENS, named

PHONE: ViewportSize = {"width": 390, "height": 844}
TABLET: ViewportSize = {"width": 820, "height": 1180}
PAGES = [(page, [part for _, part in parts]) for page, parts in groupby(ALL_SCREENS, lambda screen: screen[0])]
SMALLEST = 40
# Controls that are seen and lower than that, their room to hit counted; and what is wider than the window.
TOO_SMALL = """
(smallest) => {
  const all = (root) => [...root.querySelectorAll("*")]
    .flatMap((one) => one.shadowRoot ? [one, ...all(one.shadowRoot)] : [one]);
  const seen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const controls = "button, select, input:not([type=checkbox]):not([type=radio]), textarea, summary, [role=radio]";
  return all(document.body).filter((one) => one.matches(controls) && seen(one)).map((one) => {
    const place = one.closest(one.matches("input") ? ".stSlider, .stMultiSelect" : "label") ?? one;
    const more = Math.min(parseFloat(getComputedStyle(one, "::after").inset) || 0, 0);
    return [one.getAttribute("aria-label") || one.innerText || one.className, place.offsetHeight - 2 * more];
  }).filter(([, height]) => height > 1 && height < smallest);
}
"""
SIDEWAYS = """
() => {
  const main = document.querySelector(".stMain");
  return Math.max(document.scrollingElement.scrollWidth - innerWidth, main.scrollWidth - main.clientWidth);
}
"""


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, locale="en-GB")
    yield context.new_page()
    context.close()


def visit(page: Page, address: str, name: str, part: str, language: str) -> None:
    query = urlencode(named(name, part) | {"lang": language})
    page.goto(f"{address}/{'' if name == 'home' else name}?{query}")
    rest(page)


@pytest.mark.parametrize(("name", "parts"), PAGES, ids=[name for name, _ in PAGES])
def test_a_phone_shows_every_part_without_scrolling_sideways(
    phone: Page, address: str, name: str, parts: list[str]
) -> None:
    for number, part in enumerate(parts):
        visit(phone, address, name, part, "zh" if number % 2 else "en")
        expect(phone.get_by_text("Traceback")).to_have_count(0)
        assert phone.evaluate(SIDEWAYS) <= 0, part
        assert phone.evaluate(TOO_SMALL, SMALLEST) == [], part


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_tablet_shows_the_first_parts_without_scrolling_sideways(phone: Page, address: str, language: str) -> None:
    phone.set_viewport_size(TABLET)
    for name, parts in PAGES:
        visit(phone, address, name, parts[0], language)
        assert phone.evaluate(SIDEWAYS) <= 0, name


def test_a_tap_reads_a_cell_and_pins_it_and_two_fingers_zoom(phone: Page, address: str) -> None:
    visit(phone, address, "attention", "heads", "en")
    matrix = phone.locator(".vm").nth(1)
    canvas = matrix.locator("canvas.vm-canvas")
    canvas.scroll_into_view_if_needed()
    canvas.tap(position={"x": 150, "y": 150})
    expect(matrix.locator(".vm-readout").first).to_contain_text("pinned")
    phone.wait_for_url(re.compile("cell="))
    box = canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers = phone.context.new_cdp_session(phone)
    assert canvas.evaluate("(one) => one.style.touchAction") == "pan-x pan-y"
    for kind, apart in (("touchStart", 30), ("touchMove", 60), ("touchMove", 90), ("touchMove", 120)):
        points = [{"x": x - apart / 2, "y": y, "id": 0}, {"x": x + apart / 2, "y": y, "id": 1}]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert canvas.evaluate("(one) => one.style.touchAction") == "none", "one finger moves what two have enlarged"
