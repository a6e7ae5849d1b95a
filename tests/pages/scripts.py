"""Run the script that a page offers and hold what it saves against what the page showed.

Read next: test_attention.py.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.e2e.paths import ROOT


def saved_by(script: str) -> dict[str, np.ndarray]:
    """Run a script as a person would, from a folder that sees the project, and return the arrays that it saves."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "assets").symlink_to(ROOT / "assets")
        (here / "again.py").write_text(script, encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(
            [sys.executable, "again.py"], cwd=here, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        (path,) = here.glob("*.npz")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)


def repeats(script: str, arrays: Mapping[str, np.ndarray], *, atol: float = 1e-5) -> None:
    """Assert that a script saves the same arrays under the same names."""
    saved = saved_by(script)
    assert saved.keys() == arrays.keys()
    for name, array in arrays.items():
        if array.dtype.kind in "fc":
            np.testing.assert_allclose(saved[name], array, atol=atol, rtol=1e-4, err_msg=name)
        else:
            np.testing.assert_array_equal(saved[name], array, err_msg=name)
