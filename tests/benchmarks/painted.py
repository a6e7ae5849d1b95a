"""What the benchmarks of a page share: server and browser, when a key came and the figure was painted, the verdict."""

import argparse
import statistics
import string
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.serving import launch, serving, settle

TEXT = (
    "The story was slow at first but the actors were good and I forgot the time and in the end "
    "I wanted to see the film with my friends x"
)
UNMEASURED = 3
LETTERS = string.ascii_letters + string.digits  # each once: an answer that is remembered takes no time
LISTEN = """
() => {
  window.vitrinePainted = [];
  new PerformanceObserver((list) => {
    for (const mark of list.getEntries()) {
      if (mark.name === "vitrine-matrix-painted") window.vitrinePainted.push([mark.detail.version, mark.startTime]);
    }
  }).observe({ type: "mark" });
  for (const kind of ["keydown", "click"]) {
    window.addEventListener(kind, (event) => { window.vitrineActed = event.timeStamp; }, true);
  }
}
"""
ACTED = "() => window.vitrineActed"


def add_changes(parser: argparse.ArgumentParser) -> None:
    """Add the option --changes: how many letters are typed and measured."""
    most = len(LETTERS) - UNMEASURED
    parser.add_argument("--changes", type=int, default=40, choices=range(1, most + 1), metavar=f"1...{most}")


@contextmanager
def browsing() -> Iterator[tuple[Browser, str]]:
    """Start a fresh server and a browser; yield the browser and the server's address."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "log") as address, sync_playwright() as play:
        browser = launch(play)
        yield browser, address
        browser.close()


def painted_page(browser: Browser, url: str) -> Page:
    """Open a page whose figure is painted, and from now on note when."""
    page = browser.new_page(viewport={"width": 1280, "height": 800}, locale="en-GB")
    page.goto(url)
    settle(page)
    page.wait_for_selector(".vm[data-painted]")
    page.wait_for_timeout(1_000)
    page.evaluate(LISTEN)
    return page


def told(what: str, times: list[float], bound: float, note: str = "") -> bool:
    """Print the median and the 95th percentile of milliseconds, and return whether the bound is met.

    Args:
        note: printed after them.
    """
    times = sorted(times)
    p95 = times[min(len(times) - 1, int(0.95 * len(times)))]
    met = p95 <= bound
    print(
        f"{what}: median {statistics.median(times):.0f} ms, "
        f"95th percentile {p95:.0f} ms <= {bound:g} {'ok' if met else 'MISSED'}{note}"
    )
    return met
