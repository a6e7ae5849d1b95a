"""From a key that changes a word to the last stroke of the new picture, on every page of a model, in headless Chromium.

Every stroke on a canvas and every change in a chart's SVG or in a component is noted with its time, up to a frame
before it is seen; the picture is new once the script is over and 500 ms have passed with no other. Where a key leaves
the pictures as they are, the time is that until the script is over. Beside it stands what a key costs in processor
time, of the server and of the browser's page, since that is the same on a machine that does other things, too.
Run: python -m tests.benchmarks.drawn [--changes N] [--pages NAME...]
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from tests.benchmarks.painted import LETTERS, UNMEASURED, add_changes, told
from tests.helpers.browser import launch, settle, started

BOUND_MS = 250
STILL_MS = 500
TEXT = (
    "A man in a red shirt and a woman in a blue dress are sitting on a wooden bench in front of a small brown house "
    "near a green park x"
)
PAGES = {
    "encoder": {},
    "translation": {},
    "bert": {},
    "gpt": {},
    "before": {},
    "since": {},
    "attention": {},
    "masks": {},
    "feed_forward": {},
    "norm": {},
    "tokens": {},
    "embeddings": {},
    "positions": {},
    "why": {},
    "norm.residual": {"norm_part": "residual"},
    "feed_forward.neurons": {"feed_forward_part": "neurons"},
    "masks.batch": {"masks_part": "batch"},
    "encoder.sum": {"encoder_part": "sum"},
    "encoder.tokens": {"encoder_part": "tokens"},
    "encoder.agree": {"encoder_part": "agree"},
    "encoder.edit": {"encoder_part": "edit"},
    "embeddings.row": {"embeddings_part": "row"},
    "embeddings.neighbours": {"embeddings_part": "neighbours"},
    "positions.schemes": {"positions_part": "schemes"},
    "positions.sum": {"positions_part": "sum"},
    "tokens.merges": {"tokens_part": "merges"},
    "tokens.one_hot": {"tokens_part": "one_hot"},
    "why.sentence": {"why": "scaling", "why_scaling_on": "sentence"},
}  # what a page's address says beside the text, by name: the first part of each page, then others that show the text
FIRST_PARTS = tuple(name for name in PAGES if "." not in name)
NOTE_STROKES = """
() => {
  window.vitrineStroke = window.vitrineRested = 0;
  const note = () => { window.vitrineStroke = performance.now(); };
  for (const name of ["clearRect", "fillRect", "fillText", "fill", "stroke", "drawImage", "putImageData"]) {
    const draw = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...values) { note(); return draw.apply(this, values); };
  }
  const inPicture = ({ target, addedNodes }) =>
    target.closest?.("svg.marks") || [...addedNodes].some((node) => node.querySelector?.("svg.marks, canvas"));
  const everything = { attributes: true, characterData: true, childList: true, subtree: true };
  new MutationObserver((changes) => {
    if (changes.some(inPicture)) note();
    if (changes.some(({ attributeName }) => attributeName === "data-test-script-state")) {
      window.vitrineRested = performance.now();
    }
  }).observe(document, everything);
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    new MutationObserver(note).observe(root, everything);
    return root;
  };
  window.addEventListener("keydown", (event) => {
    window.vitrineActed = event.timeStamp;
  }, true);
}
"""
STILL = """
(still) => Math.max(window.vitrineStroke, window.vitrineRested) > window.vitrineActed
  && document.querySelector("[data-test-script-state=notRunning]")
  && performance.now() - Math.max(window.vitrineStroke, window.vitrineRested) > still
"""
TOOK = """
() => [window.vitrineStroke, window.vitrineRested].find((at) => at > window.vitrineActed) - window.vitrineActed
"""


@dataclass(frozen=True)
class Cost:
    """Milliseconds: until the last stroke, and of processors, by the server and by the browser's page."""

    took: float
    server: float
    page: float


def processor_ms(pid: int) -> float:
    """Return the processor time that a process of this machine has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1_000 * sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def change_once(page: Page, letter: str, server: Callable[[], float], renderer: Callable[[], float]) -> Cost:
    """Replace the last letter of the text and return what the new letter cost, until the last stroke."""
    box = page.get_by_role("textbox").first
    before = [0.0, 0.0]
    for key in ("Backspace", letter):
        page.wait_for_timeout(100)
        before = [server(), renderer()]
        box.press(key)
        page.wait_for_function(STILL, arg=STILL_MS, polling=100)
    return Cost(page.evaluate(TOOK), server() - before[0], renderer() - before[1])


def renderer_clock(page: Page) -> Callable[[], float]:
    """Return what tells the milliseconds of processor that the page's process has used."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def read() -> float:
        metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
        return 1_000 * metrics["ProcessTime"]

    return read


def main() -> int:
    """Print the median and the 95th percentile of every page; exit status 1 where the bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", nargs="+", choices=PAGES, default=FIRST_PARTS, metavar=f"{{{','.join(PAGES)}}}")
    add_changes(parser)
    chosen = parser.parse_args()
    letters, missed = LETTERS[: chosen.changes + UNMEASURED], False
    with tempfile.TemporaryDirectory() as log, started(Path(log) / "log") as (address, pid), sync_playwright() as play:
        browser = launch(play)
        for name in chosen.pages:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.add_init_script(f"({NOTE_STROKES})()")
            page.goto(f"{address}/{name.partition('.')[0]}?{urlencode({'text': TEXT} | PAGES[name])}")
            settle(page)
            page.wait_for_function("() => window.vitrineStroke > 0", polling=50)
            page.wait_for_timeout(2_000)
            page.get_by_role("textbox").first.press("End")
            clock = renderer_clock(page)
            costs = [change_once(page, letter, lambda: processor_ms(pid), clock) for letter in letters][UNMEASURED:]
            server, drawing = mean([cost.server for cost in costs]), mean([cost.page for cost in costs])
            note = f"; processor time a key: server {server:.0f} ms, page {drawing:.0f} ms"
            missed |= not told(f"{name}: {len(costs)} changed words", [cost.took for cost in costs], BOUND_MS, note)
            page.close()
        browser.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
