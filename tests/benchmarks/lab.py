"""The Lab: from a click on a head to the painted board and the changed answer, in headless Chromium; and an exact map.

4 layers of 8 heads, the short way and the old one, of both a server each; the map of 16 tokens x 4 layers x 3 places
with its gradient and its heads, on all cores. Run: python -m tests.benchmarks.lab [--changes N]
"""

import argparse
import re
import statistics
import sys
import time
from urllib.parse import urlencode

from playwright.sync_api import Page

from tests.benchmarks.painted import ACTED, UNMEASURED, WAYS, browsing, painted_page, run_over, told
from tests.helpers import ROOT
from transformer_core import load
from transformer_core.analysis.lab.patching import patch_map
from transformer_core.prompt import Prompt

CLICK_MS, MAP_S, MAPS = 150, 3.0, 5
TEXT = "The film was slow at first, but the actors were good."
FIRST = "I think that the film was not good at all and the actors were bad"
OTHER = "I think that the film was so good at all and the actors were fine"
CHANGED = """
([off]) => {
  const board = window.vitrinePainted.find(([version, at]) => at > window.vitrineActed && version.startsWith(off));
  const answer = window.vitrineDrawn.get("lab_after");
  return board && answer && Math.max(board[1], answer);
}
"""


def head_places(page: Page) -> dict[tuple[int, int], tuple[float, float]]:
    """Return where each head's cell of the left board is, as the readout names what is under the pointer."""
    box = page.locator(".vm canvas").first.bounding_box()
    assert box is not None
    found: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for y in range(50, int(box["height"]) - 40, 16):
        for x in range(40, int(box["width"] * 0.5), 14):
            page.mouse.move(box["x"] + x, box["y"] + y)
            said = page.locator(".vm").first.inner_text()
            layer, head = (re.search(rf"{name}\s+(\d+)\b", said) for name in ("layer", "head"))
            if layer and head:
                found.setdefault((int(layer[1]), int(head[1])), []).append((box["x"] + x, box["y"] + y))
    return {cell: places[len(places) // 2] for cell, places in found.items()}


def clicked(page: Page, changes: int) -> list[float]:
    """Switch heads off one after the other; return the milliseconds until board and answer had changed."""
    places = head_places(page)
    off: list[tuple[str, int, int]] = []
    times = []
    for cell in sorted(places, key=lambda one: (one[1], one[0]))[: changes + UNMEASURED]:
        off.append(("encoder", *cell))
        page.mouse.move(*places[cell])
        page.wait_for_timeout(100)
        page.evaluate("() => { window.vitrinePainted.length = 0; window.vitrineActed = Infinity; }")
        page.mouse.click(*places[cell])
        done = page.wait_for_function(CHANGED, arg=[str(sorted(off))], polling=20).json_value()
        times.append(done - page.evaluate(ACTED))
        run_over(page)
    return times[UNMEASURED:]


def mapped() -> list[float]:
    """Return the seconds that exact maps take, each of other texts."""
    bundle = load(ROOT / "assets" / "checkpoints" / "sentiment")
    times = []
    for end in range(MAPS + 1):
        dots = "." * (end + 1)
        prompt = Prompt(bundle, f"{FIRST}{dots}"[:200], 16)
        begun = time.perf_counter()
        found = patch_map(prompt=prompt, other=Prompt(bundle, f"{OTHER}{dots}", 16), stack="encoder")
        times.append(time.perf_counter() - begun)
        assert found.exact.shape == (3, 4, 16), found.exact.shape
    return times[1:]


def main() -> int:
    """Print medians and 95th percentiles; exit status 1 where a bound of the short way or of the map is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=24, choices=range(1, 33 - UNMEASURED))
    changes = parser.parse_args().changes
    seconds = mapped()
    missed = statistics.median(seconds) > MAP_S
    bound = f"<= {MAP_S:g} {'MISSED' if missed else 'ok'}"
    print(
        f"exact map of 16 tokens x 4 layers x 3 places: median {statistics.median(seconds):.2f} s {bound}", flush=True
    )
    query = urlencode({"lab_part": "heads", "model": "sentiment", "text": TEXT, "lang": "en"})
    for way in WAYS:
        with browsing(way) as (browser, address):
            page = painted_page(browser, f"{address}/lab?{query}")
            bounds = {"bound": CLICK_MS} if way == "short way" else {}
            missed |= not told(f"a head clicked off, 4 x 8, {way}", clicked(page, changes), **bounds)
            page.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
