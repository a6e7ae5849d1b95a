"""From a key that changes a word to the new pictures of a part, in headless Chromium: the short way and the old one.

Of both ways, a server each: the old one's has no route of live figures, so that its pages run at every key. In both,
what follows is waited for: matrices painted with the new text, charts and verdicts that have changed.
Run: python -m tests.benchmarks.keystroke [--changes N] [--parts NAME...]
"""

import argparse
import sys
from urllib.parse import urlencode

from playwright.sync_api import Page

from tests.benchmarks.painted import (
    FOLLOWED,
    LETTERS,
    TEXT,
    UNMEASURED,
    WAYS,
    add_changes,
    browsing,
    painted_page,
    run_over,
    told,
)

BOUND_MS = 60
PARTS = {
    "attention.heads": (2, 1),
    "attention.flow": (2, 2),
    "attention.tendencies": (2, 0),
    "attention.effect": (2, 0),
    "masks.paint": (1, 2),
    "home.": (0, 1),
    "embeddings.sentence": (1, 1),
    "encoder.layers": (1, 2),
    "translation.steps": (1, 2),
    "translation.cross": (2, 0),
    "bert.fill": (0, 1),
    "gpt.next": (0, 2),
    "gpt.draw": (0, 2),
    "gpt.why": (0, 1),
    "encoder.sum": (0, 1),
    "one_step.step": (2, 0),
}  # how many versions of matrices follow a key, and how many charts and verdicts

CHOSEN = {"masks.paint": {"masks_preset": "everything"}}  # under a causal mask [CLS], and so the verdict, stays


def change_once(page: Page, letter: str, follow: tuple[int, int]) -> float:
    """Replace the last letter of the text; return the milliseconds until the pictures with it were drawn.

    Args:
        follow: as in PARTS.
    """
    box = page.get_by_role("textbox").first
    box.press("Backspace")
    run_over(page)
    page.evaluate("() => { window.vitrinePainted.length = 0; }")
    box.press(letter)
    milliseconds = page.wait_for_function(FOLLOWED, arg=[f"friends {letter}", *follow], polling=20).json_value()
    run_over(page)
    return milliseconds


def measured(name: str, way: str, letters: str) -> list[float]:
    """Return the milliseconds of each letter on a part of a page."""
    path, _, part = name.partition(".")
    query = {"text": TEXT, "lang": "en"} | ({f"{path}_part": part} if part else {}) | CHOSEN.get(name, {})
    with browsing(way) as (browser, address):
        page = painted_page(browser, f"{address}/{path if part else ''}?{urlencode(query)}")
        page.get_by_role("textbox").first.press("End")
        return [change_once(page, letter, PARTS[name]) for letter in letters][UNMEASURED:]


def main() -> int:
    """Print medians and 95th percentiles of both ways; exit status 1 where the bound of the short way is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=tuple(PARTS), metavar=f"{{{','.join(PARTS)}}}")
    add_changes(parser)
    chosen = parser.parse_args()
    letters, missed = LETTERS[: chosen.changes + UNMEASURED], False
    for name in chosen.parts:
        for way in WAYS:
            bound = {"bound": BOUND_MS} if way == "short way" else {}
            what = f"{name}, {way}: {chosen.changes} changed words at 32 tokens"
            missed |= not told(what, measured(name, way, letters), **bound)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
