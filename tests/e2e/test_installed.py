"""What `pip install .` brings: a command that opens the app, the engine for Python, nothing kept beside the code."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.helpers import ROOT
from tests.helpers.browser import answering, visit

pytestmark = pytest.mark.nightly
ASKED = """
import json, torch
from transformer_core import capture, load
logits, _ = capture(load("gpt"), "The cat sat on the")
print(json.dumps([load.__code__.co_filename, list(logits.shape)]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an environment in which pip installed the project; what it requires is that of this one."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "env", with_pip=False)
    pip = [sys.executable, "-m", "pip", "-q"]
    subprocess.run([*pip, "--python", folder / "env", "install", "--no-deps", ROOT], check=True)
    (packages,) = (folder / "env").glob("lib/*/site-packages")
    (packages / "required.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_python_finds_the_engine_and_the_models_that_come_with_it(installed: Path) -> None:
    run = [installed / "env" / "bin" / "python", "-c", ASKED]
    where, shape = json.loads(subprocess.run(run, cwd=installed, capture_output=True, check=True).stdout)
    assert Path(where).is_relative_to(installed)
    assert shape[:2] == [1, 5]


def test_the_command_opens_the_app_which_keeps_what_is_made_in_the_home_folder(own_page: Page, installed: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VITRINE_")}
    command = [str(installed / "env" / "bin" / "vitrine")]
    with answering(command, installed / "log", cwd=installed, env=environment | {"HOME": str(installed)}) as (
        address,
        _,
    ):
        visit(own_page, address, lang="en")
        expect(own_page.get_by_text("positive").first).to_be_visible()
    assert (installed / ".vitrine" / "key").is_file()
