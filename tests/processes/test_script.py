"""The script: it repeats a run to the last digit, and nothing that a run is called gets out of its strings."""

import ast
import io
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import ROOT
from tests.helpers.tiny_runs import SPEC, stored_curve
from transformer_core.examples import Example
from transformer_core.training.runs.exchange.script import repeat_script, script_zip
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.settings import change
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker.layout_thread import LayOut
from transformer_core.training.runs.worker.session import Session
from transformer_core.training.spec import DataSpec, RunSpec
from transformer_core.training.tasks.make import make_task
from transformer_core.untrusted.tables import ROWS_FILE, write_rows

REVERSE = replace(SPEC, data=DataSpec(source="reverse", examples=64, held_out=32, length=5), frames=3)
FACTS = {"device": "cpu", "device_name": "a processor", "threads": 2, "torch": "2", "tokenizer_sha256": "0" * 64}


def no_layouts(store: RunStore) -> LayOut:
    raise AssertionError("a translation has no points")


@pytest.mark.nightly
def test_the_script_repeats_a_run_to_the_last_digit_and_stops_where_early_stopping_stopped_it(tmp_path):
    store = RunList(tmp_path / "runs").create(change(REVERSE, patience=1, min_improvement=9.0, warm_up=0.0))
    Session(store, make_task, no_layouts).work()
    status = store.status()
    assert status.state == "finished", status.message
    assert (status.n_frames, status.step < status.total_steps) == (2, True)
    script = tmp_path / "repeat.py"
    script.write_bytes((store.folder / "repeat.py").read_bytes())
    printed = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [line.split() for line in printed.splitlines()]
    assert [(int(step), *map(float, numbers)) for step, *numbers in rows] == stored_curve(store)


def run_in(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder of its own, where the library can be imported."""
    return subprocess.run(
        [sys.executable, "repeat.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.nightly
def test_the_script_of_a_run_on_own_data_comes_with_them_and_says_what_is_missing(tmp_path: Path) -> None:
    spec = replace(SPEC, data=replace(SPEC.data, source="table", file=ROWS_FILE, labels=("bad", "good")))
    rows = [Example(f"{word} {number}", label) for number in range(80) for label, word in enumerate(("bad", "good"))]
    store = RunList(tmp_path / "runs").create(spec, data=write_rows(rows))
    Session(store, make_task, lambda _: lambda *_: []).work()
    assert store.status().state == "finished", store.status().message
    folder = tmp_path / "empty"
    with zipfile.ZipFile(io.BytesIO(script_zip(store))) as archive:
        assert set(archive.namelist()) == {"repeat.py", ROWS_FILE}
        archive.extractall(folder)
    found = run_in(folder)
    assert found.returncode == 0, found.stderr
    printed = [line.split() for line in found.stdout.splitlines()]
    assert [(int(step), *map(float, numbers)) for step, *numbers in printed] == stored_curve(store)
    (folder / ROWS_FILE).unlink()
    alone = run_in(folder)
    assert alone.returncode == 1
    assert alone.stderr.strip() == f"Beside this script must lie, from the run's export: {ROWS_FILE}"


texts = st.text(min_size=1, max_size=60).filter(lambda text: text.strip())
spiky = st.lists(st.sampled_from(['"', '"""', "'''", "\\", "\n", "{spec}", "#", "é", "\0"]), min_size=1).map("".join)


@given(name=(texts | spiky).filter(lambda name: name.strip() and len(name) <= 80), label=texts, words=texts | spiky)
def test_whatever_a_run_is_called_stays_a_string(name, label, words):
    file = words.replace("/", "").replace("\\", "").replace("\0", "") or "a"
    file = file if file not in (".", "..") else "a"
    data = DataSpec(source="table", file=file, labels=(label, label + "2"))
    spec = RunSpec(name=name, data=data)
    facts = FACTS | {"device": words, "device_name": words, "torch": words, "tokenizer_sha256": words}
    tree = ast.parse(repeat_script(spec, facts))
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [type(node).__name__ for node in tree.body if node not in imports] == [
        *("Expr", "Assign", "Assign", "Assign", "Assign", "Assign", "If"),
        *("Assign", "Expr", "Assign", "Assign", "Assign", "For"),
    ]
    literal = next(node.value for node in tree.body if isinstance(node, ast.Assign) and "SPEC" in ast.unparse(node))
    assert RunSpec.from_json(ast.literal_eval(literal)) == spec
