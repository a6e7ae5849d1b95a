"""What the benchmarks of a page share: server and browser, when a key came and the figure was painted, the verdict."""

import argparse
import math
import statistics
import string
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.helpers.browser import launch, settle, started

TEXT = (
    "The story was slow at first but the actors were good and I forgot the time and in the end "
    "I wanted to see the film with my friends x"
)
UNMEASURED = 3
LETTERS = string.ascii_letters + string.digits  # each once: an answer that is remembered takes no time
PLACES = ".stVegaLiteChart, [data-verdict]"
FORMULA = ".st-key-formula_glass_cell"
LISTEN = """
(PLACES) => {
  window.vitrinePainted = [];
  new PerformanceObserver((list) => {
    for (const mark of list.getEntries()) {
      if (mark.name === "vitrine-matrix-painted") window.vitrinePainted.push([mark.detail.version, mark.startTime]);
    }
  }).observe({ type: "mark" });
  for (const kind of ["keydown", "click"]) {
    window.addEventListener(kind, (event) => {
      window.vitrineActed = event.timeStamp;
      window.vitrineDrawn.clear();
    }, true);
  }
  window.vitrineDrawn = new Map();
  const called = (place) => place.dataset.verdict ?? [...document.querySelectorAll(PLACES)].indexOf(place);
  new MutationObserver((changes) => {  // a chart is a thousand changes: to look around at each took 100 ms a chart
    const now = performance.now();
    const places = new Set();
    for (const { target, addedNodes } of changes) {
      const around = (target.closest ? target : target.parentElement)?.closest(PLACES);
      if (around) {
        places.add(around);
        continue;
      }
      for (const node of addedNodes) {
        if (node.querySelectorAll) [node, ...node.querySelectorAll(PLACES)].forEach((one) => places.add(one));
      }
    }
    for (const place of places) {
      const name = place.matches(PLACES) && called(place);
      if (name !== false && !window.vitrineDrawn.has(name)) window.vitrineDrawn.set(name, now);
    }
  }).observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
}
"""
ACTED = "() => window.vitrineActed"
FOLLOWED = """
([said, matrices, others]) => {
  const painted = new Map(
    window.vitrinePainted.filter(([version, at]) => at > window.vitrineActed && version.includes(said)).reverse());
  const times = [...painted.values(), ...window.vitrineDrawn.values()];
  return painted.size >= matrices && window.vitrineDrawn.size >= others && Math.max(...times) - window.vitrineActed;
}
"""  # from the act to when so many matrices are painted, and so many charts and verdicts have changed
WAYS = {"short way": "", "old way": "import pages.kit.live\npages.kit.live.live_routes = lambda parts: []"}


def add_changes(parser: argparse.ArgumentParser) -> None:
    """Add the option --changes: how many letters are typed and measured."""
    most = len(LETTERS) - UNMEASURED
    parser.add_argument("--changes", type=int, default=40, choices=range(1, most + 1), metavar=f"1...{most}")


@contextmanager
def browsing(way: str = "short way") -> Iterator[tuple[Browser, str]]:
    """Start a fresh server and a browser; yield the browser and the server's address.

    Args:
        way: "old way" for a server without the route of live figures.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        started(Path(folder) / "log", first=WAYS[way]) as (address, _),
        sync_playwright() as play,
    ):
        browser = launch(play)
        yield browser, address
        browser.close()


def run_over(page: Page) -> None:
    """Wait until the run of the page that follows an act is over."""
    page.wait_for_timeout(400)  # a hand that rests
    settle(page)
    page.wait_for_timeout(200)


def painted_page(browser: Browser, url: str, *, places: str = PLACES) -> Page:
    """Open a page whose figure is painted, and from now on note when.

    Args:
        places: in CSS, whose changes are noted as well.
    """
    page = browser.new_page(viewport={"width": 1280, "height": 800}, locale="en-GB")
    page.goto(url)
    settle(page)
    page.wait_for_selector(".vm[data-painted], .stVegaLiteChart svg, [data-verdict]")
    page.wait_for_timeout(1_000)
    page.evaluate(LISTEN, places)
    return page


def told(what: str, times: list[float], bound: float = math.inf, note: str = "") -> bool:
    """Print the median and the 95th percentile of milliseconds, and return whether the bound is met.

    Args:
        note: printed after them.
    """
    times = sorted(times)
    p95 = times[min(len(times) - 1, int(0.95 * len(times)))]
    met = p95 <= bound
    bounded = f" <= {bound:g} {'ok' if met else 'MISSED'}" if math.isfinite(bound) else ""
    print(f"{what}: median {statistics.median(times):.0f} ms, 95th percentile {p95:.0f} ms{bounded}{note}", flush=True)
    return met
