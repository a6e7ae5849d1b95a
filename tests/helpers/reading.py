"""Reading back what stands on a page in the browser, and going on there."""

import numpy as np
from playwright.sync_api import Locator, Page

from pages.language import words
from tests.helpers.browser import settle


def metric(page: Page, label: str) -> Locator:
    """Return the number that stands large below a label."""
    return page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue").first


def open_part(page: Page, room: str, part: str, language: str = "en") -> None:
    """Choose a part of the page above its picture."""
    page.get_by_role("radio", name=words(language)[f"{room}.part_{part}"], exact=True).click()
    wait_link(page, **{f"{room}_part": part})


def wait_link(page: Page, **asked: str | None) -> None:
    """Wait until the link says this and the script has run; None is for what it does not name."""
    page.wait_for_function(
        """(asked) => {
          const said = new URLSearchParams(location.search);
          return Object.entries(asked).every(([name, value]) => said.get(name) === value);
        }""",
        arg=asked,
    )
    settle(page)


def floats(cells: Locator) -> np.ndarray:
    """Return the numbers in cells of a figure's table."""
    return np.array([float(cell.replace("−", "-")) for cell in cells.all_inner_texts()])


def table_row(figure: Locator, row: int) -> np.ndarray:
    """Return a row of numbers from a figure's table."""
    return floats(figure.locator(f".vm-table tbody tr:nth-child({row + 1}) td"))


def press(page: Page, canvas: Locator, *keys: str) -> None:
    """Press keys on a figure's canvas, one after the other."""
    canvas.focus()
    for key in keys:
        page.keyboard.press(key)
