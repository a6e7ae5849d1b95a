"""From a painted cell of a mask to the weights that the model computes under it, in headless Chromium.

Run: python -m tests.benchmarks.painting [--strokes N]
"""

import argparse
import sys
from urllib.parse import quote

from playwright.sync_api import Page

from tests.benchmarks.painted import ACTED, TEXT, UNMEASURED, browsing, painted_page, told

BOUND_MS = 150
AGAIN = """
([before]) => window.vitrinePainted.find(([version, at]) => at > window.vitrineActed && version !== before)
"""
NOW = """
() => {
  const figures = [...document.querySelectorAll("*")].map((host) => host.shadowRoot?.querySelector(".vm"));
  return figures.find(Boolean).dataset.painted;
}
"""


def stroke(page: Page) -> float:
    """Toggle the next cell of the mask; return the milliseconds until the weights under it were painted."""
    page.keyboard.press("ArrowRight")
    before = page.evaluate(NOW)
    page.evaluate("() => { window.vitrinePainted.length = 0; }")
    page.keyboard.press("Space")
    found = page.wait_for_function(AGAIN, arg=[before], polling=20).json_value()
    milliseconds = found[1] - page.evaluate(ACTED)
    page.wait_for_timeout(250)
    return milliseconds


def main() -> int:
    """Print the median and the 95th percentile; exit status 1 where the bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strokes", type=int, default=60)
    strokes = parser.parse_args().strokes
    with browsing() as (browser, address):
        page = painted_page(browser, f"{address}/masks?lang=en&text={quote(TEXT)}&masks_preset=everything")
        page.locator(".vm-canvas").first.focus()
        page.keyboard.press("Home")
        times = [stroke(page) for _ in range(strokes + UNMEASURED)][UNMEASURED:]
    return 0 if told(f"{len(times)} strokes at 32 tokens", times, BOUND_MS) else 1


if __name__ == "__main__":
    sys.exit(main())
