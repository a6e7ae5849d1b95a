"""What the tests of the film do in the browser, by name, and the small stage that they play on."""

from playwright.sync_api import Locator, Page

from tests.e2e.film_serving import Stage
from tests.pages.film.films import clouds, followed_of, followed_reversing, reversing

POINTS = 80


def small_stage() -> Stage:
    """Return two runs of a classifier and one that reverses letters, of eight frames each."""
    one = clouds(POINTS, 8, run="runone01")
    two = clouds(POINTS, 8, run="runtwo02", name="same, but", gap=0.5)
    three = reversing(8, run="runthree")
    followed_texts = {"runone01": followed_of(one), "runtwo02": followed_of(two), "runthree": followed_reversing(three)}
    return Stage({film.id: film for film in (one, two, three)}, followed_texts)


def watch(page: Page, address: str, runs: str = "runone01", frame: int | None = None, **query: str) -> None:
    """Open the film and wait until it shows a frame."""
    asked = {"runs": runs, **query} | ({} if frame is None else {"frame": str(frame)})
    page.goto(f"{address}/?" + "&".join(f"{name}={value}" for name, value in asked.items()))
    wait_frame(page, 7 if frame is None else frame)


def wait_frame(page: Page, frame: int) -> None:
    """Wait until this frame is shown, counted from 0."""
    page.locator(f".vf[data-frame='{frame}']:not([data-version='0'])").wait_for(timeout=15_000)


def told(page: Page, name: str) -> list:
    """Return what the page has been told: "view" or "ask"."""
    return page.evaluate("name => window.told[name]", name)


def slider(page: Page) -> Locator:
    """Return the scrubber."""
    return page.get_by_role("slider")
