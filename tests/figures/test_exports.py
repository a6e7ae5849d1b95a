"""Exports hold the numbers of the screen, and the script recomputes them."""

import csv
import io
import subprocess
import sys

import numpy as np
import pytest

from pages.figures.exports import attention_script, to_csv, to_npz
from tests.e2e.paths import ROOT
from transformer_core.analysis.heads import head_steps
from transformer_core.analysis.reading import read
from transformer_core.checkpoints import load

OPENING = {"imports": "from transformer_core import load", "bundle": 'load("assets/checkpoints/sentiment")'}
TEXT = 'It\'s "fine", \\n 好 😀 — not good at all.'


def test_the_script_recomputes_the_weights_on_the_screen(tmp_path) -> None:
    bundle = load(ROOT / "assets" / "checkpoints" / "sentiment")
    encoding = bundle.tokenizer.encode(TEXT)
    trace = read(bundle, encoding, sites=("encoder.layer2.self_attention.*",)).trace
    shown = head_steps(trace, "encoder.layer2.self_attention", 5).weights
    script = attention_script(**OPENING, text=TEXT, layer=2, head=5, step="weights", n_tokens=len(encoding))
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    np.testing.assert_allclose(np.load(tmp_path / "weights.npy"), shown, atol=1e-6)


def test_csv_reads_back_exactly_and_no_label_is_a_formula() -> None:
    values = np.array([[0.1, 1 / 3], [np.float32(0.7), -np.inf]])
    rows = list(csv.reader(io.StringIO(to_csv(values, ["=1+1", 'a "b",\n'], ["@x", "好"]))))
    assert rows[0] == ["", "'@x", "好"]
    assert [row[0] for row in rows[1:]] == ["'=1+1", 'a "b",\n']
    assert [[float(cell) for cell in row[1:]] for row in rows[1:]] == values.tolist()


def test_npz_reads_back_without_pickle() -> None:
    arrays = {"weights": np.eye(3, dtype=np.float32), "token_ids": np.array([1, 2, 3])}
    loaded = np.load(io.BytesIO(to_npz(arrays)), allow_pickle=False)
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name], array)


@pytest.mark.parametrize("text", ['"""', "'''\n", "\\", "{layer}"])
def test_any_text_leaves_the_script_valid_python(text: str) -> None:
    compile(attention_script(**OPENING, text=text, layer=0, head=0, step="mixture", n_tokens=9), "script", "exec")
