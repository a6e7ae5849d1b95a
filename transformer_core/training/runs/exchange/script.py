"""A Python script that repeats a run, exactly where machine, versions and threads are the same."""

import io
import json
import zipfile
from typing import Any

from transformer_core.training.runs.store.folder import ORIGIN, SCRIPT, START
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import RunSpec

COMMAND = "python repeat.py"
TEMPLATE = '''"""{title}

It learns from: {learned}.
Prints step, loss, learning rate and norm of the gradient of every step, to the last digit.
{made}; run it where `transformer_core` can be imported.{needs}
"""

import os
import sys
from pathlib import Path

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch

from transformer_core.training.early_stopping import until_over
from transformer_core.training.runs.worker.build_run import build_run, compute_repeatably
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.make import make_task

SPEC = r"""{spec}"""
FOLDER = Path(__file__).parent
NEEDED = {files!r}

missing = [name for name in NEEDED if not (FOLDER / name).exists()]
if missing:
    sys.exit(f"Beside this script must lie, from the run's export: {{', '.join(missing)}}")
device = torch.device({device!r})
compute_repeatably(device, threads={threads})
spec = RunSpec.from_json(SPEC)
task = make_task(spec, FOLDER, device)
run = build_run(spec, task, device, folder=FOLDER, tokenizer_sha256={tokenizer!r})
for step in until_over(run, lambda model: task.measure(model, True)["held_out_loss"], {evaluated!r}):
    print(step.step, step.loss, step.learning_rate, step.gradient_norm, flush=True)
'''


def files_needed(spec: RunSpec) -> list[str]:
    """Return what must lie beside the script of a run, by its names in the run's folder: its data, weights, a model."""
    files = [spec.data.file] if spec.data.file else []
    if spec.takes_weights:
        files.append(ORIGIN)
    if spec.start is not None:
        files.append(START)
    return files


def script_zip(store: RunStore) -> bytes:
    """Return a zip of the script that repeats a run with all that must lie beside it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(SCRIPT, repeat_script(store.spec, store.facts()))
        for path in (store.folder / name for name in files_needed(store.spec)):
            for part in sorted(path.iterdir()) if path.is_dir() else [path]:
                archive.write(part, part.relative_to(store.folder).as_posix())
    return buffer.getvalue()


def repeat_script(spec: RunSpec, facts: dict[str, Any]) -> str:
    """Return a short Python script that repeats a run.

    Args:
        spec: the run's.
        facts: of the run, as RunStore.facts returns them: device, threads and versions.
    """
    files = files_needed(spec)
    needs = f"\nBeside it must lie, from the run's export: {', '.join(files)}." if files else ""
    return TEMPLATE.format(
        title=_plain(f"Repeats the run {spec.name!r}."),
        made=_plain(f"Made with torch {facts.get('torch', '?')} on {facts.get('device_name', '?')}"),
        learned=_plain(spec.data.described),
        device=facts.get("device", "cpu"),
        needs=_plain(needs),
        files=files,
        spec=json.dumps(json.loads(spec.to_json()), indent=2),  # in which three quotes never meet
        threads=int(facts.get("threads", 1)),
        tokenizer=facts.get("tokenizer_sha256", ""),
        evaluated=facts.get("frames_planned", []) if spec.training.stops_early else [],
    )


def _plain(text: str) -> str:
    """Return a text that cannot end the docstring that it stands in."""
    readable = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)
    return readable.replace("\\", "/").replace('"', "'")
