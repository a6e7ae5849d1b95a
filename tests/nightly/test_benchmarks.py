"""Every benchmark runs to its end on the least that it can be asked for, and prints its figures."""

import subprocess
import sys

import pytest

from tests.helpers import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]
LEAST = {
    "controls": ("--changes", "1", "--only", "GPT's temperature", "--ways", "short way"),
    "drawn": ("--changes", "1", "--pages", "attention"),
    "engine": ("--seconds", "0.1", "--threads", "1", "--shapes", "small", "--lengths", "32"),
    "film": (),
    "generation": ("--seconds", "0.1", "--threads", "1"),
    "hall": ("--phones", "10"),
    "keystroke": ("--changes", "1", "--parts", "attention.heads"),
    "lab": ("--changes", "1"),
    "layouts": ("--epochs", "1", "--rounds", "1"),
    "painting": ("--strokes", "1"),
    "projector": ("--pause", "0"),
    "runs": (),
    "training": ("--seconds", "0.1", "--threads", "1"),
    "visitors": ("--people", "2", "--seconds", "2"),
}
HELPERS = {"painted", "peers", "timing"}


def test_each_benchmark_is_tried() -> None:
    files = {path.stem for path in (ROOT / "tests" / "benchmarks").glob("*.py")}
    assert files - HELPERS == LEAST.keys()


@pytest.mark.parametrize("name", LEAST)
def test_a_benchmark_runs_to_its_end_and_prints_figures(name: str) -> None:
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", *LEAST[name]]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr  # 1: a bound was missed, which says nothing of so short a run
    assert "Traceback" not in run.stderr, run.stderr
    assert any(character.isdigit() for character in run.stdout)
