"""A painter alone in a browser, without a server: what the page would hear is kept in window.told."""

import base64
from dataclasses import replace

import numpy as np
from playwright.sync_api import Page

from pages.figures.standalone import component_assets
from pages.language import strings
from pages.masks.figures import painter
from tests.helpers.figures import ENGLISH_WORDS, attention

SIZE = 8
WORDS = strings("axis", "en") | strings("masks_figure", "en")
HOST = """
window.told = [];
window.matrix = new Matrix(document.getElementById("host"));
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const tell = (name, value) => told.push([name, value]);
window.show = (text, alone) => window.matrix.receive(bytes(text), alone ? null : tell);
"""


def payload(mask: np.ndarray, *, stamp: int = 0, version: str = "first") -> str:
    """Return a painter's figure as the page would send it."""
    explain = attention(size=len(mask), causal=True)
    tokens = tuple(f"w{index}" for index in range(len(mask)))
    figure = painter(mask, vars(explain), tokens, WORDS, note="")
    return base64.b64encode(replace(figure, link=None).to_bytes(ENGLISH_WORDS, stamp=stamp, version=version)).decode()


def show(page: Page, mask: np.ndarray, *, stamp: int = 0, version: str = "first", alone: bool = False) -> None:
    """Hand a figure to the component, mounting it first where it is not there."""
    if not page.evaluate("Boolean(window.matrix)"):
        script, style = component_assets("matrix")
        page.set_content(f"<style>{style}</style><main id='host'></main><script type='module'>{script}{HOST}</script>")
        page.wait_for_function("Boolean(window.matrix)")
    page.evaluate("([text, alone]) => void show(text, alone)", [payload(mask, stamp=stamp, version=version), alone])


def cell(page: Page, row: int, col: int, panel: int = 0) -> tuple[float, float]:
    """Return the middle of a cell on the screen."""
    place = page.evaluate(
        """([panel, row, col]) => {
          const box = matrix.scene.boxes[panel];
          const frame = matrix.canvas.getBoundingClientRect();
          const x = frame.left + box.x + ((col + 0.5) / box.panel.width) * box.w;
          return [x, frame.top + box.y + ((row + 0.5) / box.panel.height) * box.h];
        }""",
        [panel, row, col],
    )
    return place[0], place[1]


def told(page: Page) -> list[dict]:
    """Return every message about painting, in order."""
    return [value for name, value in page.evaluate("told") if name == "painted"]


def on_screen(page: Page) -> np.ndarray:
    """Return the mask that the component shows."""
    values = page.evaluate("[...matrix.figure.panels[0].data]")
    return np.array(values, dtype=bool).reshape(SIZE, SIZE)
