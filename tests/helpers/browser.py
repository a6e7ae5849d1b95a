"""The real app, started as the README says, a real browser, and what the tests do in it, by name."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Locator, Page, Playwright

from tests import helpers
from tests.helpers import ROOT
from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load

PATIENCE = 1_000 * helpers.PATIENCE  # milliseconds
QUIET = "[data-testid=stApp][data-test-script-state=notRunning]"
ALL = """
const all = (root) => [...root.querySelectorAll("*")].flatMap((one) =>
  one.shadowRoot ? [one, ...all(one.shadowRoot)] : [one]);
"""
# Asked at each frame. The script has run, no box is awaited, no live figure, font, module or chart is on its way, and
# three frames show the same.
STILL = (
    """
(quiet) => {
"""
    + ALL
    + """
  const coming = (one) => one.matches("[data-testid=stVegaLiteChart]")
    ? one.checkVisibility() && !one.querySelector("svg, canvas")
    : one.matches("[data-testid=stBidiComponentIsolated]") && !("stands" in one.dataset);
  const waits = () => !document.querySelector(quiet) || document.querySelector(".await, [data-testid=stSkeleton]")
    || window.vitrineAsking > 0 || document.fonts.status !== "loaded";
  if (waits()) return window.sameFrames = 0, false;
  const elements = all(document.body);
  if (elements.some(coming)) return window.sameFrames = 0, false;
  const { width, height } = document.querySelector(".stVerticalBlock")?.getBoundingClientRect() ?? {};
  const canvases = elements.filter((one) => one.matches("canvas")).map((one) => `${one.width}x${one.height}`);
  const seen = [width, height, elements.length, document.body.innerText, ...canvases].join();
  window.sameFrames = window.seenBefore === seen ? window.sameFrames + 1 : 0;
  window.seenBefore = seen;
  return window.sameFrames >= 2;
}
"""
)


def browser_path() -> str | None:
    """Return where Debian's Chromium is, or None; the one without windows takes a sixth less of the processor."""
    return next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)


def free_port() -> int:
    """Return a port that nothing listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def serving(log: Path) -> Iterator[str]:
    """Start a fresh server on a free port and yield its address."""
    with started(log) as (address, _):
        yield address


@contextmanager
def started(log: Path, *options: str, first: str = "", port: int | None = None) -> Iterator[tuple[str, int]]:
    """Start a fresh server; yield its address and the number of its process.

    Args:
        log: file to which it writes.
        options: of `streamlit run`.
        first: Python code that its process runs before anything else.
        port: that it listens to; by default a free one.
    """
    runner = ["-c", f"{first}\nfrom streamlit.web.cli import main\nmain()"] if first else ["-m", "streamlit"]
    with answering([sys.executable, *runner, "run", "app.py"], log, *options, port=port) as found:
        yield found


@contextmanager
def answering(
    command: list[str], log: Path, *options: str, port: int | None = None, cwd: Path = ROOT, env: Any = None
) -> Iterator[tuple[str, int]]:
    """Start a server by a command; yield its address and the number of its process.

    Args:
        log, options, port: as of started.
        cwd, env: its folder and environment.
    """
    port = free_port() if port is None else port
    command = [*command, "--server.port", str(port), *options]
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=cwd, env=env, stdout=output, stderr=subprocess.STDOUT)
    address = f"http://localhost:{port}"
    try:
        _wait_until_healthy(server, f"{address}/_stcore/health", log)
        yield address, server.pid
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE / 1_000)


def _wait_until_healthy(server: subprocess.Popen, health: str, log: Path) -> None:
    end = time.monotonic() + PATIENCE / 1_000
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(health, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the app did not start:\n{log.read_text(errors='replace')}")


def launch(playwright: Playwright, *flags: str) -> Browser:
    """Start headless Chromium without its own background traffic."""
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    return playwright.chromium.launch(executable_path=browser_path(), args=[*quiet, *flags])


def settle(page: Page) -> None:
    """Wait until the script has run and said so."""
    page.wait_for_selector(QUIET, timeout=PATIENCE)


def rest(page: Page) -> None:
    """Wait until the script has run and nothing is on its way to the page: see STILL."""
    page.evaluate("() => { window.sameFrames = 0; }")
    page.wait_for_function(STILL, arg=QUIET, timeout=PATIENCE)


BUNDLE: Bundle = load(ROOT / "assets" / "checkpoints" / "sentiment", device="cpu")


def visit(page: Page, address: str, path: str = "", **query: str) -> None:
    """Open a page of the app and wait until it stands."""
    page.goto(f"{address}/{path}" + (f"?{urlencode(query)}" if query else ""))
    page.get_by_role("textbox").first.wait_for(timeout=PATIENCE)
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
        timeout=PATIENCE,
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


PAGES = (
    "tokens",
    "embeddings",
    "positions",
    "masks",
    "attention",
    "feed_forward",
    "norm",
    "why",
    "encoder",
    "translation",
    "bert",
    "gpt",
    "before",
    "since",
    "one_step",
)
MOST_LINES = 2
FOLD = 800
SEEN = """
(firstPart) => {
  const inside = (root) => [...root.querySelectorAll("*")].flatMap((one) =>
    one.shadowRoot ? [one, ...inside(one.shadowRoot)] : [one]);
  const main = document.querySelector(".stMainBlockContainer");
  const box = (one) => one.getBoundingClientRect();
  const large = (one) => box(one).width > 100 && box(one).height > 20;
  const drawn = "canvas, svg, .vt-rows, .tinted, .tr-line, .masks-batch, .masked-words, [data-testid=stVegaLiteChart]";
  const pictures = window.pictures = () => inside(main).filter((one) => one.matches(drawn) && large(one));
  const order = (a, b) => box(a).top - box(b).top || box(b).height - box(a).height;
  const first = window.firstPicture = () => pictures().sort(order)[0];
  const words = "[data-testid=stMarkdown] p, [data-testid=stCaptionContainer] p, [data-testid=stAlert] p";
  const asked = "[class*=st-key-cover_], [class*=st-key-question_]";
  const titles = (one) => one.childElementCount === 1 && one.firstElementChild.matches("strong");
  const above = () => {
    const picture = box(first());
    return [...main.querySelectorAll(words)].filter((one) => !one.closest("[data-testid=stExpander], button, label"))
      .filter((one) => box(one).bottom <= picture.top + 4 && box(one).right > picture.left && box(one).height > 8)
      .filter((one) => !titles(one) && (firstPart || !one.closest(asked)));
  };
  const linesOf = (one) => {
    const high = parseFloat(getComputedStyle(one).lineHeight);
    const count = Math.round(box(one).height / high);
    return Array.from({ length: count }, (_, line) => Math.round((box(one).top + line * high) / 12));
  };
  const another = main.querySelector("[class*=st-key-needs_]");  // the part reads a model that is not open
  if (!first() && another) return { third: 0, lines: 0, said: [] };
  if (!first()) return null;
  const picture = box(first());
  return {
    third: picture.top + (firstPart ? picture.height : Math.min(picture.height, 450)) / 3,
    lines: new Set(above().flatMap(linesOf)).size, // what stands side by side is one line
    said: above().map((one) => one.textContent),
  };
}
"""


def low(page: Page, name: str, *, first_part: bool) -> list[str]:
    """Say what keeps the first picture from the first screen; in later parts, besides the question that covers it."""
    seen = page.evaluate(SEEN, first_part)
    if seen is None:
        return [f"{name}: no picture"]
    wrong = []
    if seen["third"] > FOLD:
        wrong.append(f"{name}: the picture's upper third ends at {seen['third']:.0f}")
    if seen["lines"] > MOST_LINES:
        wrong.append(f"{name}: {seen['lines']} lines of prose before the picture: {seen['said']}")
    return wrong
