"""What the tests do in the browser, by name."""

from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page

from tests.e2e.serving import settle
from tests.paths import ROOT
from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load

BUNDLE: Bundle = load(ROOT / "assets" / "checkpoints" / "sentiment", device="cpu")


def visit(page: Page, address: str, path: str = "", **query: str) -> None:
    """Open a page of the app and wait until it stands."""
    page.goto(f"{address}/{path}" + (f"?{urlencode(query)}" if query else ""))
    page.get_by_role("textbox").first.wait_for(timeout=60_000)
    settle(page)


def grid(page: Page) -> Locator:
    """Return the matrix of all heads."""
    return page.locator(".vm").first


def large(page: Page) -> Locator:
    """Return the matrix of the chosen head."""
    return page.locator(".vm").nth(1)


def wait_painted(page: Page, version: str) -> None:
    """Wait until the grid shows this layer, head and text, written ``layer.head|text``."""
    page.wait_for_function(
        "(version) => [...document.querySelectorAll('*')].some((host) => host.shadowRoot?.querySelector('.vm')"
        "?.dataset.painted === version)",
        arg=version,
        timeout=30_000,
    )


def type_text(page: Page, text: str) -> None:
    """Replace the text in the header."""
    page.get_by_role("textbox").first.fill(text)


def weights(text: str, layer: int, head: int):
    """Return the labels and the weights (query_pos, key_pos) that the model computes here, outside the app."""
    encoding = BUNDLE.tokenizer.encode(text)
    trace = read(BUNDLE, encoding, sites=(f"encoder.layer{layer}.self_attention.weights",)).trace
    return encoding.labels, trace[f"encoder.layer{layer}.self_attention.weights"][0, head].numpy()


def download(page: Page, click: Locator, folder: Path) -> Path:
    """Click and return the file that comes."""
    with page.expect_download() as waiting:
        click.click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path
