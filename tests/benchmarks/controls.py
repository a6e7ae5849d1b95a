"""From a control that is clicked or slid to the new picture, in headless Chromium: the short way and the old one.

Two sizes of heads: 32 tokens with the shipped model (every layer's 8 heads), and 128 tokens with one layer of 12 heads,
untrained, since it is time that is measured; and the temperature of GPT. Of both ways, a server each.
Run: python -m tests.benchmarks.controls [--changes N]
"""

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page

from tests.benchmarks.painted import ACTED, FOLLOWED, TEXT, UNMEASURED, WAYS, browsing, painted_page, run_over, told
from tests.paths import ROOT
from transformer_core import Classifier, ModelConfig, load, save

SLIDER_MS = 80
MOST_STEPS = 45  # from where the slider begins to its right end; nearer to 0, a step may leave a chart as it was
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


def slid(page: Page, changes: int) -> list[float]:
    """Move the slider of GPT's temperature by keys; return the milliseconds until both charts had changed."""
    page.locator(".st-key-gpt_temperature-gpt input").focus()
    times = []
    for _ in range(changes + UNMEASURED):
        page.keyboard.press("ArrowRight")
        times.append(page.wait_for_function(FOLLOWED, arg=["", 0, 2], polling=20).json_value())
        run_over(page)
    return times[UNMEASURED:]


def main() -> int:
    """Print medians and 95th percentiles of both ways; exit status 1 where a bound of the short way is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=60)
    changes = parser.parse_args().changes
    cases = (
        ("32 x 32, 4 layers of 8 heads", {"text": TEXT}, "Layer", 4, "weights|{}.0|", 60),
        ("128 x 128, 12 heads", {"text": "good bad film " * 42, "model": "wide"}, "Head", 12, "weights|0.{}|", 150),
    )
    slider = urlencode({"text": TEXT, "gpt_part": "draw", "gpt_temperature": "0.5"})
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        make_wide(Path(folder))
        os.environ["VITRINE_MODELS"] = folder
        for way in WAYS:
            with browsing(way) as (browser, address):
                for name, query, control, options, version, bound in cases:
                    page = painted_page(browser, f"{address}/attention?{urlencode(query)}")
                    bounds = {"bound": bound} if way == "short way" else {}
                    times = measured(page, control, options, changes, version)
                    missed |= not told(f"{name}, {way}", times, **bounds)
                    page.close()
                page = painted_page(browser, f"{address}/gpt?{slider}")
                bounds = {"bound": SLIDER_MS} if way == "short way" else {}
                missed |= not told(f"GPT's temperature, {way}", slid(page, min(changes, MOST_STEPS)), **bounds)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
