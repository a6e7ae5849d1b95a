"""From a control that is clicked or slid to the new picture, in headless Chromium: the short way and the old one.

Two sizes of heads: 32 tokens with the shipped model (every layer's 8 heads), and 128 tokens with one layer of 12 heads,
untrained, since it is time that is measured; sliders; and the glass's cell, up to its formula. Of both ways, a server
each. Run: python -m tests.benchmarks.controls [--changes N] [--only NAME...] [--ways WAY...]
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page

from tests.benchmarks.painted import (
    ACTED,
    FOLLOWED,
    FORMULA,
    PLACES,
    TEXT,
    UNMEASURED,
    WAYS,
    browsing,
    painted_page,
    run_over,
    told,
)
from tests.helpers import ROOT
from transformer_core import Classifier, ModelConfig, load, save

SLIDER_MS, CELL_MS = 80, 60
SLIDERS = {
    "GPT's temperature": ("gpt", {"gpt_part": "draw", "gpt_temperature": "0.5"}, "gpt_temperature", 2, 45),
    "GPT's top-p": ("gpt", {"gpt_part": "draw", "gpt_top_p": "0.3", "gpt_temperature": "2"}, "gpt_top_p", 1, 13),
    "a position": ("positions", {"positions_part": "matrix", "positions_pos": "1"}, "positions_pos", 1, 40),
    "Why's reach": ("why", {"why": "projections", "why_projections_reach": "0.1"}, "why_projections_reach", 1, 27),
    "Why's share": ("why", {"why": "symmetry", "why_symmetry_share": "0.1"}, "why_symmetry_share", 1, 17),
    "GELU's x": ("feed_forward", {"feed_forward_part": "bernoulli", "feed_forward_x": "-2"}, "feed_forward_x", 1, 45),
    "the beams' depth": (
        "translation",
        {"translation_part": "beam", "translation_depth": "1"},
        "translation_depth",
        1,
        40,
    ),
}  # page, what its link says, the slider, how many charts follow it, and its steps: each changes them
HEADS, CELL = ("32 x 32, 4 layers of 8 heads", "128 x 128, 12 heads"), "the glass's cell"
GLASS = {"glass_open": "true", "glass": "encoder.layer1.self_attention.weights", "glass_cell": "3.0"}
WAIT = """
(beginning) => window.vitrinePainted.find(([version, at]) => at > window.vitrineActed && version.startsWith(beginning))
"""


def make_wide(folder: Path) -> None:
    """Save a classifier of one layer with twelve heads; nobody reads its verdicts."""
    shipped = load(ROOT / "assets" / "checkpoints" / "sentiment")
    config = ModelConfig(
        vocab_size=shipped.config.vocab_size, d_model=192, n_heads=12, d_ff=384, n_layers=1, max_len=128, dropout=0.0
    )
    save(replace(shipped, name="wide", model=Classifier(config).eval()), folder / "wide")


def measured(page: Page, control: str, options: int, changes: int, version: str) -> list[float]:
    """Click the options of a segmented control in turn; return the milliseconds until each new large head was painted.

    Args:
        version: what the painted figure's version begins with, a place for the option in it.
    """
    group = page.get_by_role("radiogroup", name=control)
    times = []
    for index in range(1, changes + UNMEASURED + 1):
        page.evaluate("() => { window.vitrinePainted.length = 0; window.vitrineActed = Infinity; }")
        group.get_by_role("radio", name=str(index % options), exact=True).click()
        found = page.wait_for_function(WAIT, arg=version.format(index % options), polling=20).json_value()
        times.append(found[1] - page.evaluate(ACTED))
        page.wait_for_timeout(250)
    return times[UNMEASURED:]


def slid(page: Page, slider: str, charts: int, changes: int) -> list[float]:
    """Move a slider, NAME-PAGE, by keys; return the milliseconds until so many charts had changed."""
    page.locator(f".st-key-{slider} input").focus()
    times = []
    for _ in range(changes + UNMEASURED):
        page.keyboard.press("ArrowRight")
        times.append(page.wait_for_function(FOLLOWED, arg=["", 0, charts], polling=20).json_value())
        run_over(page)
    return times[UNMEASURED:]


def explained(page: Page, changes: int) -> list[float]:
    """Pin one cell of the glass's tensor after the other; return the milliseconds until its formula was written."""
    page.locator(".st-key-glass_matrix .vm-canvas").focus()
    times = []
    for step in range(changes + UNMEASURED):
        page.keyboard.press("ArrowDown" if step % 40 < 20 else "ArrowUp")
        page.keyboard.press("Enter")
        times.append(page.wait_for_function(FOLLOWED, arg=["", 0, 1], polling=20).json_value())
        run_over(page)
    return times[UNMEASURED:]


def cases(changes: int) -> Iterator[tuple[str, str, float, Callable[[Page], list[float]]]]:
    """Yield what is measured: its name, its page's address, the bound at the 95th percentile, and how to measure it."""
    heads = {"text": TEXT}, {"text": "good bad film " * 42, "model": "wide"}
    clicks = ("Layer", 4, "weights|{}.0|"), ("Head", 12, "weights|0.{}|")
    for name, query, (control, options, version), bound in zip(HEADS, heads, clicks, (60, 150), strict=True):
        clicked = partial(measured, control=control, options=options, changes=changes, version=version)
        yield name, f"attention?{urlencode(query)}", bound, clicked
    for name, (path, query, slider, charts, steps) in SLIDERS.items():
        moved = partial(slid, slider=f"{slider}-{path}", charts=charts, changes=min(changes, steps - UNMEASURED))
        yield name, f"{path}?{urlencode({'text': TEXT} | query)}", SLIDER_MS, moved
    yield CELL, f"attention?{urlencode({'text': TEXT} | GLASS)}", CELL_MS, partial(explained, changes=changes)


def main() -> int:
    """Print medians and 95th percentiles of both ways; exit status 1 where a bound of the short way is missed."""
    names = (*HEADS, *SLIDERS, CELL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=60)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=tuple(WAYS), metavar="WAY")
    options, missed = parser.parse_args(), False
    with tempfile.TemporaryDirectory() as folder:
        make_wide(Path(folder))
        os.environ["VITRINE_MODELS"] = folder
        for way in options.ways:
            with browsing(way) as (browser, address):
                for name, link, bound, measure in cases(options.changes):
                    if name not in options.only:
                        continue
                    page = painted_page(browser, f"{address}/{link}", places=FORMULA if name == CELL else PLACES)
                    bounds = {"bound": bound} if way == "short way" else {}
                    missed |= not told(f"{name}, {way}", measure(page), **bounds)
                    page.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
