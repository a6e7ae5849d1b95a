"""The script: it repeats a run to the last digit, and nothing that a run is called gets out of its strings."""

import ast
import os
import subprocess
import sys
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import ROOT
from tests.helpers.tiny_runs import SPEC, stored_curve
from transformer_core.training.runs.exchange.script import repeat_script
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker.layout_thread import LayOut
from transformer_core.training.runs.worker.session import Session
from transformer_core.training.spec import DataSpec, RunSpec
from transformer_core.training.tasks.make import make_task

REVERSE = replace(SPEC, data=DataSpec(source="reverse", examples=64, held_out=32, length=5), frames=3)
FACTS = {"device": "cpu", "device_name": "a processor", "threads": 2, "torch": "2", "tokenizer_sha256": "0" * 64}


def no_layouts(store: RunStore) -> LayOut:
    raise AssertionError("a translation has no points")


def test_the_script_repeats_the_run_to_the_last_digit(tmp_path):
    store = RunList(tmp_path / "runs").create(REVERSE)
    Session(store, make_task, no_layouts).work()
    assert store.status().state == "finished", store.status().message
    assert store.status().n_frames == 3
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
        *("Expr", "Assign", "Assign", "Assign", "Assign", "Expr", "Assign", "Assign", "Assign", "For"),
    ]
    literal = next(node.value for node in tree.body if isinstance(node, ast.Assign) and "SPEC" in ast.unparse(node))
    assert RunSpec.from_json(ast.literal_eval(literal)) == spec
