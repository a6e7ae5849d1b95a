"""From the key that steps to the next scene's painted picture on the projector, in headless Chromium at 1920 x 1080.

Every lecture that comes with the app is stepped through, forwards and back, with a pause in which the lecturer speaks.
Run: python -m tests.benchmarks.projector [--pause SECONDS]
"""

import argparse
import sys

from playwright.sync_api import Page

from pages.hall.lectures import Lecture, lectures
from tests.benchmarks.painted import browsing, told

BOUND_MS = 300
LISTEN = """
() => {
  addEventListener("keydown", (event) => {
    const was = document.querySelector("h1").textContent;
    const look = () => {
      const frame = document.querySelector("iframe.shown.ready");
      const painted = frame?.contentDocument.querySelector("[data-shown], .st-key-language_and_share");
      if (document.querySelector("h1").textContent === was || !painted) return requestAnimationFrame(look);
      requestAnimationFrame(() => { window.stepped = performance.now() - event.timeStamp; });
    };
    window.stepped = null;
    requestAnimationFrame(look);
  }, true);
}
"""


def step(page: Page, key: str, pause: float) -> float:
    """Press a key after a pause; return the milliseconds until the scene's figures are on the screen."""
    page.wait_for_timeout(1_000 * pause)
    page.keyboard.press(key)
    return page.wait_for_function("() => window.stepped", polling=20, timeout=30_000).json_value()


def main() -> int:
    """Print median and 95th percentile of each lecture; exit status 1 where the bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pause", type=float, default=4.0, help="seconds that a lecturer speaks to a scene")
    pause, missed = parser.parse_args().pause, False
    with browsing() as (browser, address):
        for name, lecture in lectures("en").items():
            assert isinstance(lecture, Lecture)
            page = browser.new_page(viewport={"width": 1920, "height": 1080})
            page.goto(f"{address}/?lecture={name}&scene=1&lang=en")
            page.wait_for_selector("main.screens[data-ready='1']", timeout=60_000)
            page.evaluate(LISTEN)
            keys = ["ArrowRight"] * (len(lecture.scenes) - 1) + ["ArrowLeft"] * 4
            missed |= not told(f"{name}: {len(keys)} steps", [step(page, key, pause) for key in keys], bound=BOUND_MS)
            page.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
