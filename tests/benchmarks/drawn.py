"""From a key that changes a word to the last stroke of the new picture, on every page of a model, in headless Chromium.

Every stroke on a canvas and every change in a chart's SVG is noted with its time, up to a frame before it is seen; the
picture is new once 500 ms have passed with no other.
Run: python -m tests.benchmarks.drawn [--changes N] [--pages NAME...]
"""

import argparse
import sys
from urllib.parse import quote

from playwright.sync_api import Page

from tests.benchmarks.painted import LETTERS, UNMEASURED, add_changes, browsing, told
from tests.e2e.serving import settle

BOUND_MS = 250
STILL_MS = 500
PAGES = ("encoder", "translation", "bert", "gpt", "before")
TEXT = (
    "A man in a red shirt and a woman in a blue dress are sitting on a wooden bench in front of a small brown house "
    "near a green park x"
)
NOTE_STROKES = """
() => {
  window.vitrineStroke = 0;
  const note = () => { window.vitrineStroke = performance.now(); };
  for (const name of ["clearRect", "fillRect", "fillText", "fill", "stroke", "drawImage", "putImageData"]) {
    const draw = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...values) { note(); return draw.apply(this, values); };
  }
  const inPicture = ({ target, addedNodes }) =>
    target.closest?.("svg.marks") || [...addedNodes].some((node) => node.querySelector?.("svg.marks, canvas"));
  new MutationObserver((changes) => { if (changes.some(inPicture)) note(); })
    .observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
  window.addEventListener("keydown", (event) => { window.vitrineActed = event.timeStamp; }, true);
}
"""
STILL = """
(still) => window.vitrineStroke > window.vitrineActed && performance.now() - window.vitrineStroke > still
"""
TOOK = "() => window.vitrineStroke - window.vitrineActed"


def change_once(page: Page, letter: str) -> float:
    """Replace the last letter of the text; return the milliseconds until the last stroke of the picture with it."""
    box = page.get_by_role("textbox").first
    for key in ("Backspace", letter):
        page.wait_for_timeout(100)
        box.press(key)
        page.wait_for_function(STILL, arg=STILL_MS, polling=50)
    return page.evaluate(TOOK)


def main() -> int:
    """Print the median and the 95th percentile of every page; exit status 1 where the bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", nargs="+", choices=PAGES, default=PAGES)
    add_changes(parser)
    chosen = parser.parse_args()
    letters, missed = LETTERS[: chosen.changes + UNMEASURED], False
    with browsing() as (browser, address):
        for name in chosen.pages:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.add_init_script(f"({NOTE_STROKES})()")
            page.goto(f"{address}/{name}?text={quote(TEXT)}")
            settle(page)
            page.wait_for_function("() => window.vitrineStroke > 0", polling=50)
            page.wait_for_timeout(2_000)
            page.get_by_role("textbox").first.press("End")
            times = [change_once(page, letter) for letter in letters][UNMEASURED:]
            missed |= not told(f"{name}: {len(times)} changed words", times, BOUND_MS)
            page.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
