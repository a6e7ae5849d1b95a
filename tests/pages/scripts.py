"""Run the scripts that pages offer and hold what they save against what the page showed."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from tests.paths import ROOT

RUNNER = """
import contextlib, io, json, os, runpy, sys, traceback

for line in sys.stdin:
    asked = json.loads(line)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.path[0] = asked["folder"]
    wrong = ""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path("again.py", run_name="__main__")
    except BaseException:
        wrong = traceback.format_exc()
    print(json.dumps(wrong), flush=True)
"""


@lru_cache(maxsize=1)
def _runner() -> subprocess.Popen[str]:
    """Start the one process for all scripts, which then has torch; it ends with the tests."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", RUNNER], cwd=tempfile.gettempdir(), text=True, **pipes)


def saved_by(script: str) -> dict[str, np.ndarray]:
    """Run a script as a person would, from a folder of its own, and return the arrays that it saves."""
    runner = _runner()
    assert runner.stdin is not None
    assert runner.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "again.py").write_text(script, encoding="utf-8")
        environment = {**os.environ, "VITRINE": str(ROOT)}
        print(json.dumps({"folder": folder, "environment": environment}), file=runner.stdin, flush=True)
        wrong = json.loads(runner.stdout.readline())
        assert not wrong, wrong
        (path,) = Path(folder).glob("*.npz")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)


def repeats(script: str, arrays: Mapping[str, np.ndarray], *, atol: float = 1e-5) -> None:
    """Assert that a script saves the same arrays under the same names."""
    same(saved_by(script), arrays, atol=atol)


def same(saved: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray], *, atol: float = 1e-5) -> None:
    """Assert that arrays are the same under the same names."""
    assert saved.keys() == arrays.keys()
    for name, array in arrays.items():
        if array.dtype.kind in "fc":
            np.testing.assert_allclose(saved[name], array, atol=atol, rtol=1e-4, err_msg=name)
        else:
            np.testing.assert_array_equal(saved[name], array, err_msg=name)
