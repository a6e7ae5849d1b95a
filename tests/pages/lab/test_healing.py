"""A run on somebody's own data is healed by its owner alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pages.lab import weights
from pages.lab.weights import heal
from pages.language import words
from pages.serving import owners
from tests.helpers.made_runs import SPECS, made_run
from transformer_core.training.runs.errors import RunError


@pytest.mark.usefixtures("on_a_network")
@pytest.mark.parametrize("owner", ["mine", "other"])
def test_a_run_on_somebodys_data_is_healed_by_nobody_else(
    owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    monkeypatch.setattr(owners, "_key", lambda: "mine")
    monkeypatch.setattr(weights, "begin_run", lambda *given: begun.append(given))
    rows = [{"text": f"{word} {number}", "label": label} for number in range(40) for label, word in enumerate("ab")]
    data = replace(SPECS["classifier"].data, source="table", file="data.jsonl", labels=("calm", "angry"), held_out=16)
    spec = replace(SPECS["classifier"], data=data)
    text = "\n".join(map(json.dumps, rows)).encode()
    run = made_run(tmp_path, spec, data=text, owner=owners.owner_of(owner))
    name = next(name for name, weight in run.model().model.named_parameters() if weight.dim() == 2)
    changes = (("weights", name, "prune", 0.5, 0, ()),)
    if owner == "mine":
        heal(f"run:{run.id}", changes)
        assert begun[0][1] == run.folder / "data.jsonl"
    else:
        with pytest.raises(RunError) as caught:
            heal(f"run:{run.id}", changes)
        assert str(caught.value) == words("en")["heal.not_yours"]
        assert not begun
