"""The real app, started as the README says, and a real browser to look at it."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright

from tests.paths import ROOT

SECONDS_TO_START = 90
STILL = """
() => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((one) =>
    one.shadowRoot ? [one, ...all(one.shadowRoot)] : [one]);
  const { width, height } = document.querySelector(".stVerticalBlock")?.getBoundingClientRect() ?? {};
  const elements = all(document.body);
  const canvases = elements.filter((one) => one.matches("canvas")).map((one) => `${one.width}x${one.height}`);
  if (document.querySelector(".await")) return false;
  const seen = [width, height, elements.length, document.body.innerText, ...canvases].join();
  const before = window.seenBefore;
  if (before?.seen !== seen) window.seenBefore = { seen, since: performance.now() };
  return before?.seen === seen && performance.now() - before.since > 300;
}
"""
QUIET = "[data-testid=stApp][data-test-script-state=notRunning]"


def browser_path() -> str | None:
    """Return where Debian's Chromium is, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


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
    port = free_port() if port is None else port
    runner = ["-c", f"{first}\nfrom streamlit.web.cli import main\nmain()"] if first else ["-m", "streamlit"]
    command = [sys.executable, *runner, "run", "app.py", "--server.port", str(port), *options]
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
    address = f"http://localhost:{port}"
    try:
        _wait_until_healthy(server, f"{address}/_stcore/health", log)
        yield address, server.pid
    finally:
        server.terminate()
        server.wait(timeout=20)


def _wait_until_healthy(server: subprocess.Popen, health: str, log: Path) -> None:
    end = time.monotonic() + SECONDS_TO_START
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
    page.wait_for_selector(QUIET, timeout=60_000)


def rest(page: Page) -> None:
    """Wait until the script has run, nothing is awaited, and no size and no words have changed for 0.3 s."""
    settle(page)
    page.wait_for_function(STILL, polling=100, timeout=60_000)
