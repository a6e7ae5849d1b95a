"""Every part has its picture on the first screen, and a control never differs from the number that it stands for.

Not after a visit to the page's other parts, either.
"""

import time
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page

from tests.helpers.browser import PAGES, low, rest, settle, visit

SECONDS = 5  # that a busy machine may take for an answer
Controls = dict[str, list[str]]
SHOWN = """() => Object.fromEntries([...document.querySelectorAll('[class*="st-key-"] > [data-testid]')].map((widget) =>
{
  const all = (what) => [...widget.querySelectorAll(what)]
  const read = {
    stSlider: () => all('input').map((one) => one.ariaValueText ?? one.value),
    stCheckbox: () => all('input').map((one) => one.checked ? 'on' : 'off'),
    stTextInput: () => all('input').map((one) => one.value),
    stTextArea: () => all('textarea').map((one) => one.value),
    stSelectbox: () => all('input').map((one) => one.value),
    stMultiSelect: () => [widget.innerText],
    stButtonGroup: () => all('[aria-checked=true], [aria-pressed=true]').map((one) => one.innerText),
  }[widget.dataset.testid]
  const key = [...widget.parentElement.classList].find((name) => name.startsWith('st-key-'))
  return [key.slice(7), [widget.dataset.testid, ...(read ? read() : [])]]
}).filter(([, read]) => read.length > 1))"""


def shown(page: Page) -> Controls:
    """Return what every control on the page shows, by its key."""
    return page.evaluate(SHOWN)


def open_part(page: Page, name: str, place: int) -> None:
    """Choose a part and wait for it: the server writes each part into the link as it draws it."""
    part = page.locator(f"[class*='st-key-{name}-']").get_by_role("radio").nth(place)
    if not part.is_checked():
        link = page.url
        part.click()
        page.wait_for_function("(link) => location.href !== link", arg=link)
    settle(page)


def move(page: Page) -> None:
    """Move the first slider of a part away from where it begins."""
    sliders = page.locator("[data-testid=stSlider] input")
    if sliders.count():
        sliders.first.press("ArrowRight")
        page.wait_for_timeout(150)  # until the browser has sent what was done
        settle(page)


@pytest.mark.parametrize("path", PAGES)
def test_parts_show_their_picture_first_and_the_same_controls_after_a_visit_to_others(
    page: Page, address: str, path: str
) -> None:
    name = "why" if path == "why" else f"{path}_part"
    visit(page, address, path)
    parts = page.locator(f"[class*='st-key-{name}-']").get_by_role("radio")
    parts.first.wait_for()
    before, wrong = [], []
    for place in range(parts.count()):
        open_part(page, name, place)
        if place:  # the first one is looked at while a person types
            rest(page)
            wrong += low(page, f"{path}, {parts.nth(place).inner_text()}", first_part=False)
        move(page)
        before.append(agreed(page, path))
    for place, controls in enumerate(before):
        open_part(page, name, place)
        agreed(page, path, controls)
    assert not wrong, "\n".join(wrong)


def agreed(page: Page, path: str, before: Controls | None = None) -> Controls:
    """Return what the controls show once they agree with the link, and with what they showed before.

    Raises:
        AssertionError: they do not agree after SECONDS.
    """
    end = time.monotonic() + SECONDS
    while True:
        controls = shown(page)
        try:
            check_link(page, controls, path)
            assert before is None or {key: controls.get(key) for key in before} == before
            return controls
        except AssertionError:
            if time.monotonic() > end:
                raise
        page.wait_for_timeout(100)


def check_link(page: Page, controls: Controls, path: str) -> None:
    """Hold sliders and switches against the link, which the server writes from what it computes with."""
    link = {name: values[0] for name, values in parse_qs(urlparse(page.url).query).items()}
    for key, (kind, value, *_) in controls.items():
        name = key.removesuffix(f"-{path}")
        if name in link and kind == "stCheckbox":
            assert value == link[name], key
        elif name in link and kind == "stSlider":
            assert float(value.rstrip("%")) == pytest.approx(float(link[name]), abs=0.006), key
