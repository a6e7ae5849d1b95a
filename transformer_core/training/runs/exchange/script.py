"""A Python script that repeats a run, exactly where machine, versions and threads are the same."""

import json
from typing import Any

from transformer_core.training.runs.store.folder import ORIGIN, START
from transformer_core.training.spec import RunSpec

COMMAND = "python repeat.py"
TEMPLATE = '''"""{title}

It learns from: {learned}.
Prints step, loss, learning rate and norm of the gradient of every step, to the last digit.
{made}; run it where `transformer_core` can be imported.{needs}
"""

import os
from pathlib import Path

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch

from transformer_core.training.runs.worker.build_run import build_run, compute_repeatably
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.make import make_task

SPEC = r"""{spec}"""
FOLDER = Path(__file__).parent

device = torch.device({device!r})
compute_repeatably(device, threads={threads})
spec = RunSpec.from_json(SPEC)
task = make_task(spec, FOLDER, device)
run = build_run(spec, task, device, folder=FOLDER, tokenizer_sha256={tokenizer!r})
for step in run.steps():
    print(step.step, step.loss, step.learning_rate, step.gradient_norm, flush=True)
'''


def repeat_script(spec: RunSpec, facts: dict[str, Any]) -> str:
    """Return a short Python script that repeats a run.

    Args:
        spec: the run's.
        facts: of the run, as RunStore.facts returns them: device, threads and versions.
    """
    files = [spec.data.file] if spec.data.file else []
    if spec.takes_weights:
        files.append(ORIGIN)
    if spec.start is not None:
        files.append(f"the folder {START}")
    needs = f"\nBeside it must lie, from the run's export: {', '.join(files)}." if files else ""
    return TEMPLATE.format(
        title=_plain(f"Repeats the run {spec.name!r}."),
        made=_plain(f"Made with torch {facts.get('torch', '?')} on {facts.get('device_name', '?')}"),
        learned=_plain(spec.data.described),
        device=facts.get("device", "cpu"),
        needs=_plain(needs),
        spec=json.dumps(json.loads(spec.to_json()), indent=2),  # in which three quotes never meet
        threads=int(facts.get("threads", 1)),
        tokenizer=facts.get("tokenizer_sha256", ""),
    )


def _plain(text: str) -> str:
    """Return a text that cannot end the docstring that it stands in."""
    readable = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)
    return readable.replace("\\", "/").replace('"', "'")
