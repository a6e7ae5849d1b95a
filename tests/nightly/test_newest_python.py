"""The newest Python at hand: the requirements install from an empty cache, the engine's tests and a page's way pass."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]
NAMES = ("python3.14", "python3.13", "python3.12", "python3.11")
WAY = (
    "tests/e2e/test_live_rooms.py::test_charts_follow_each_letter_hold_and_go_back_to_the_last_text_that_could_be_read"
)


def newest_python() -> str:
    """Return the Python that VITRINE_NEWEST_PYTHON names, else the newest on the PATH that starts."""
    for name in (os.environ.get("VITRINE_NEWEST_PYTHON", ""), *NAMES):
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], capture_output=True).returncode == 0:
            return path
    return sys.executable


def test_the_engine_and_a_pages_way_pass_on_the_newest_python_installed_from_an_empty_cache(tmp_path: Path) -> None:
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # of this worker

    def run(*command: str | Path) -> None:
        done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]

    python = tmp_path / "venv" / "bin" / "python"
    run(newest_python(), "-m", "venv", tmp_path / "venv")
    run(python, "-m", "pip", "install", "-q", "--no-cache-dir", "-r", "requirements-dev.txt")
    run(python, "-m", "pytest", "-n", "0", "tests/core", WAY)
