"""What README says can be run, runs: its Python examples, one after another, from the project's folder."""

import re
import subprocess
from dataclasses import replace

import pytest
import torch

from tests.helpers import ROOT
from transformer_core.analysis.translation.toy_batch import CONFIG, SOURCE, TARGETS

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_examples_run_and_give_the_shapes_they_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(compile(block, "README.md", "exec"), names)
    n_tokens = len(names["encoding"])
    config = names["bundle"].config
    stacked = torch.Size((config.n_layers, 1, config.n_heads, n_tokens, n_tokens))
    assert names["bundle"].model is not None
    assert names["logits"].shape == (4, 6, 5)
    assert sum(parameter.numel() for parameter in names["model"].parameters()) == 3_700_096
    assert (names["source"].tolist(), names["target"].tolist()) == ([list(SOURCE)] * 4, [list(row) for row in TARGETS])
    assert names["config"] == replace(CONFIG, max_len=names["config"].max_len)
    for weights in (names["encoder_self"], names["decoder_self"], names["cross"]):
        assert weights.shape == (4, 4, 8, 6, 6)
    assert not torch.equal(names["without"], names["verdict"])
    assert names["weights"].shape == stacked


def test_each_command_is_one_line_and_the_gate_runs_the_test_command() -> None:
    commands = re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)[:2]
    assert all(len(command.strip().splitlines()) == 1 for command in commands)
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = re.search(r"sed -n '([^']+)' README.md", gate)
    assert found is not None
    shown = subprocess.run(
        ["sed", "-n", found.group(1), "README.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == commands[1].strip()
