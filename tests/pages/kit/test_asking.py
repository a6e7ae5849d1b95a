"""What a page asks is what its script asks: the same call, the same numbers."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cachetools import LRUCache

from pages.kit import asking
from pages.kit.asking import ask, ask_once, repeating
from pages.kit.exports import caption_of
from pages.kit.models import code_that_opens, open_bundle
from tests.helpers import PATIENCE, ROOT
from tests.helpers.pages import same
from transformer_core.analysis.arithmetic import tensor_of
from transformer_core.prompt import Prompt


@dataclass(frozen=True)
class Count:
    number: int


calls: list[int] = []


def count(*, step: int) -> Count:
    calls.append(step)
    return Count(len(calls))


def test_an_answer_is_remembered_by_its_question_and_at_most_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_kept", LRUCache(2))
    calls.clear()
    first = ask_once(count, step=1)
    assert ask_once(count, step=1).value is first.value
    assert ask(count, step=1).value is not first.value
    ask_once(count, step=2)
    ask_once(count, step=3)
    assert ask_once(count, step=1).value is not first.value


@pytest.mark.parametrize(
    "text", ['"""', "'''\n", "\\", "{layer}", "好 😀", "\ud800".encode("utf-8", "replace").decode()]
)
def test_any_text_leaves_the_script_valid_python(text: str) -> None:
    script = repeating(count, {"bundle": open_bundle("sentiment"), "text": text, "sizes": (1,), "rate": float("inf")})
    compile(script, "script", "exec")
    assert 'load(vitrine / "assets/checkpoints/sentiment")' in script
    assert repr(text) in script


def test_a_notebook_computes_the_same_and_says_of_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, text = open_bundle("sentiment"), "$x$ <b>\u202e not `dull`"
    size = len(bundle.tokenizer.encode(text))
    answer = ask(tensor_of, prompt=Prompt(bundle, text, size), name="encoder.layer1.self_attention.weights")
    notebook = json.loads(answer.notebook(caption_of(answer.arguments)))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    about, *cells = notebook["cells"]
    assert about["cell_type"] == "markdown"
    assert (
        "\n    model sentiment · name=encoder.layer1.self_attention.weights\n    “$x$ <b> not `dull`”\n"
        in about["source"]
    )
    assert {cell["cell_type"] for cell in cells} == {"code"}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(cells) + 1
    monkeypatch.setenv("VITRINE", str(ROOT))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    kept: dict[str, Any] = {}
    for cell in cells:
        exec(compile(cell["source"], "cell", "exec"), kept)
    same(kept["arrays"], answer.arrays)
    with np.load("tensor_of.npz") as saved:
        same(dict(saved), answer.arrays)


def test_a_script_that_finds_no_project_says_how_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "again.py").write_text(repeating(count, {"step": 1}), encoding="utf-8")
    python = Path(sys.executable).resolve()  # of the system, whose folder lies in no project
    environment = {name: value for name, value in os.environ.items() if name != "VITRINE"}
    done = subprocess.run(
        [python, "again.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode != 0
    assert done.stderr.strip() == "Run me in the Vitrine folder or set VITRINE=/path/to/vitrine"


def test_a_script_names_no_folder_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "secret"
    (here / "own").mkdir(parents=True)
    (here / "own" / "config.json").write_text("{}", encoding="utf-8")
    (here / "opened" / "mine").mkdir(parents=True)
    note = {"origin": "folder", "asked": str(here), "folder": str(here), "left_out": [], "fetched": False}
    (here / "opened" / "mine" / "opened.json").write_text(json.dumps(note), encoding="utf-8")
    monkeypatch.setenv("VITRINE_MODELS", str(here))
    monkeypatch.setenv("VITRINE_OPENED", str(here / "opened"))
    for name, opened in (
        ("own", 'load(Path(os.environ["VITRINE_MODELS"]) / "own")'),
        ("mine", 'load(store.OpenedModels(store.default_root()).all()["mine"].folder)'),
    ):
        imports, code = code_that_opens(name)
        assert code == opened
        exec(imports, {})  # what it imports is there
        assert "secret" not in imports + code


def test_what_cannot_be_written_down_is_refused() -> None:
    with pytest.raises(ValueError, match="values is of type ndarray; it must be a prompt"):
        repeating(count, {"values": np.ones(2)})
    with pytest.raises(ValueError, match="values is of type ndarray; it must be a prompt"):
        ask(count, values=np.ones(2))
