"""Two processes behind haproxy, as `make serve` starts them: who visited the one that ends goes on at the other."""

import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from pages.language import words
from tests.helpers import ROOT
from tests.helpers.browser import free_port, settle, visit
from tests.helpers.bundles import zipped
from tests.helpers.engine import small_bundle
from tests.helpers.made_runs import made_run
from tests.helpers.tiny_runs import wait_for
from transformer_core.bundle import save

HAPROXY = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(HAPROXY is None, reason="no haproxy: install Debian's package haproxy"),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="a process is found by what Linux tells of it"),
]
EN = words("en")
COOKIE = "vitrine_process"
TEXT = "Not a good film at all, and not a bad one."


@dataclass(frozen=True)
class Served:
    """What deploy/serve.py has started: the address that visitors come to, the processes' ports, the folder of runs."""

    address: str
    ports: list[int]
    runs: Path

    def answers(self, port: int) -> bool:
        """Tell whether the proxy lets a visitor who was at a process go on there."""
        request = urllib.request.Request(f"{self.address}/_health", headers={"Cookie": f"{COOKIE}=p{port}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return COOKIE not in str(answer.headers["Set-Cookie"])
        except OSError:
            return False

    def kill(self, port: int) -> None:
        """Kill the process at a port, without a word to anybody."""
        asked = f"--server.port\0{port}\0".encode()
        found = [path for path in Path("/proc").glob("[0-9]*/cmdline") if path.read_bytes().endswith(asked)]
        os.kill(int(found[0].parent.name), signal.SIGKILL)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Two processes behind one address."""
    for name in ("RUNS", "OPENED", "ROOMS", "OWN_LECTURES", "KEY"):
        monkeypatch.setenv(f"VITRINE_{name}", str(tmp_path / name.lower()))
    port, ports = free_port(), [first := free_port(), first + 1]
    command = [sys.executable, str(ROOT / "deploy" / "serve.py"), "--port", str(port), "--first-port", str(first)]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    one = Served(f"http://localhost:{port}", ports, tmp_path / "runs")
    try:
        wait_for(lambda: all(map(one.answers, ports)) or server.poll() is not None, 300.0)
        assert server.poll() is None, (tmp_path / "log").read_text()
        yield one
    finally:
        server.terminate()
        server.wait()


def tab(context: BrowserContext, served: Served, port: int) -> Page:
    """Open a tab of a visitor who was at a process before."""
    context.add_cookies([{"name": COOKIE, "value": f"p{port}", "url": served.address}])
    return context.new_page()


def choose(page: Page) -> None:
    """Choose a head on the page Attention."""
    page.get_by_role("radiogroup", name="Head").get_by_text("2", exact=True).click()


def test_when_a_process_is_killed_its_visitors_go_on_at_the_other_and_hear_what_is_lost(
    served: Served, browser: Browser, tmp_path: Path
) -> None:
    run = made_run(served.runs)
    save(small_bundle(), tmp_path / "glass")
    packed = tmp_path / "brought.zip"
    packed.write_bytes(zipped({path.name: path.read_bytes() for path in (tmp_path / "glass").iterdir()}).getvalue())
    killed, left = served.ports
    with browser.new_context() as reads, browser.new_context() as brings, browser.new_context() as elsewhere:
        text, file, other = tab(reads, served, killed), tab(brings, served, killed), tab(elsewhere, served, left)
        film = reads.new_page()
        visit(text, served.address, "attention", text=TEXT)
        visit(other, served.address, "attention", text=TEXT)
        film.goto(f"{served.address}/train?run={run.id}")
        expect(film.locator(".vf canvas").first).to_be_visible()
        file.goto(f"{served.address}/my_model?my_model_from=zip")
        file.locator("input[type=file]").set_input_files(packed)
        expect(file.get_by_role("button", name=EN["my_model.open"])).to_be_visible()
        settle(file)

        served.kill(killed)
        for one in (text, film, file):
            expect(one.get_by_text(EN["session.lost"])).to_be_visible()
        choose(text)
        choose(other)
        expect(text.get_by_role("textbox").first).to_have_value(TEXT)
        text.wait_for_url("**head=2**")
        expect(text.get_by_text("Layer 0, head 2").first).to_be_visible()
        expect(file.get_by_role("button", name=EN["my_model.open"])).to_have_count(0)  # the file is gone
        file.locator("input[type=file]").set_input_files(packed)
        file.get_by_role("button", name=EN["my_model.open"]).click()
        file.wait_for_url("**model=brought**")
        expect(film.locator(".vf canvas").first).to_be_visible()
        expect(other.get_by_text("Layer 0, head 2").first).to_be_visible()
        expect(other.get_by_text(EN["session.lost"])).to_have_count(0)
        assert {one["value"] for one in reads.cookies() if one["name"] == COOKIE} == {f"p{left}"}
