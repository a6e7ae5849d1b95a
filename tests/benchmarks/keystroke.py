"""From a key that changes a word to the new heads on the canvas, in headless Chromium.

Run: python -m tests.benchmarks.keystroke [--changes N]
"""

import argparse
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright

from tests.benchmarks.painted import ACTED, LISTEN, told
from tests.e2e.serving import launch, serving, settle

BOUND_MS = 150
TEXT = (
    "The story was slow at first but the actors were good and I forgot the time and in the end "
    "I wanted to see the film with my friends x"
)

WAIT = """
(ending) => window.vitrinePainted.find(([version, at]) => at > window.vitrineActed && version.includes(ending))
"""


def change_once(page: Page, letter: str) -> float:
    """Replace the last letter of the text; return the milliseconds until the grid with it was painted."""
    box = page.get_by_role("textbox").first
    box.press("Backspace")
    page.wait_for_function(WAIT, arg=f"|{TEXT[:-1]}", polling=20)
    page.wait_for_timeout(250)
    page.evaluate("() => { window.vitrinePainted.length = 0; }")
    box.press(letter)
    found = page.wait_for_function(WAIT, arg=f"friends {letter}", polling=20).json_value()
    milliseconds = found[1] - page.evaluate(ACTED)
    page.wait_for_timeout(250)
    return milliseconds


def main() -> int:
    """Print the median and the 95th percentile; exit status 1 where the bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=60)
    changes = parser.parse_args().changes
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "log") as address,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{address}/attention?text={quote(TEXT)}")
        settle(page)
        page.wait_for_selector(".vm[data-painted]")
        page.wait_for_timeout(1_000)
        page.evaluate(LISTEN)
        page.get_by_role("textbox").first.press("End")
        times = [change_once(page, "abcdefghij"[index % 10]) for index in range(changes + 3)][3:]
        browser.close()
    return 0 if told(f"{len(times)} changed words at 32 tokens", times, BOUND_MS) else 1


if __name__ == "__main__":
    sys.exit(main())
