"""From a key that changes a word to the new heads on the canvas, in headless Chromium.

Run: python -m tests.benchmarks.keystroke [--changes N]
"""

import argparse
import sys
from urllib.parse import quote

from playwright.sync_api import Page

from tests.benchmarks.painted import ACTED, LETTERS, TEXT, UNMEASURED, add_changes, browsing, painted_page, told

BOUND_MS = 150
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
    add_changes(parser)
    letters = LETTERS[: parser.parse_args().changes + UNMEASURED]
    with browsing() as (browser, address):
        page = painted_page(browser, f"{address}/attention?text={quote(TEXT)}")
        page.get_by_role("textbox").first.press("End")
        times = [change_once(page, letter) for letter in letters][UNMEASURED:]
    return 0 if told(f"{len(times)} changed words at 32 tokens", times, BOUND_MS) else 1


if __name__ == "__main__":
    sys.exit(main())
