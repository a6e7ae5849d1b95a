"""The state of a training run on disk: tensors as safetensors, the rest as JSON, nothing pickled.

A resumed run gives the same numbers, to the last digit, as one that was never interrupted.
"""

import dataclasses
import json
import os
import tempfile
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Run
from transformer_core.untrusted.bundle_files import check_headers

TENSORS, PLACE = "run.safetensors", "run.json"
FORMAT = 1
REMEDY = "delete the folder to start again"


def save_run(run: Run, folder: str | os.PathLike[str]) -> None:
    """Write model, optimizer, random state and step; the step goes last, so that it never refers to half a file."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    place = {
        "format": FORMAT,
        "step": run.step,
        "steps_per_epoch": run.steps_per_epoch,
        "config": dataclasses.asdict(run.config),
        "tensors": f"{run.step}.{TENSORS}",
    }
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        draft = Path(scratch)
        save_file(_tensors_of(run), draft / TENSORS)
        (draft / PLACE).write_text(json.dumps(place, indent=2) + "\n", encoding="utf-8")
        os.replace(draft / TENSORS, folder / place["tensors"])
        os.replace(draft / PLACE, folder / PLACE)
    for older in folder.glob(f"*.{TENSORS}"):
        if older.name != place["tensors"]:
            older.unlink()


def forget_run(folder: str | os.PathLike[str]) -> None:
    """Delete what save_run wrote in a folder, and nothing else."""
    for file in (Path(folder) / PLACE, *Path(folder).glob(f"*.{TENSORS}")):
        file.unlink(missing_ok=True)


def saved_step(folder: str | os.PathLike[str]) -> int | None:
    """Return the step of what save_run wrote in a folder, None where there is nothing or it cannot be read."""
    try:
        return int(json.loads((Path(folder) / PLACE).read_text(encoding="utf-8"))["step"])
    except (ValueError, KeyError, TypeError, OSError):
        return None


def load_run(run: Run, folder: str | os.PathLike[str]) -> bool:
    """Load what save_run wrote into a fresh run of the same model, config and data.

    Returns:
        Whether there was a saved run.

    Raises:
        ValueError: what is in the folder is broken, or belongs to a run of another model, config or number of batches.
    """
    folder = Path(folder)
    if not (folder / PLACE).is_file():
        return False
    try:
        place = json.loads((folder / PLACE).read_text(encoding="utf-8"))
        step, file = int(place["step"]), folder / Path(place["tensors"]).name
        config = dataclasses.asdict(TrainConfig()) | place["config"]  # an older state lacks the settings added since
        written = (place["format"], config, place["steps_per_epoch"])
        check_headers(file)
        tensors = load_file(file)
    except (ValueError, KeyError, TypeError, OSError, SafetensorError) as error:
        raise ValueError(f"{folder}: the saved run cannot be read: {error!r}; {REMEDY}") from None
    needed = (FORMAT, dataclasses.asdict(run.config), run.steps_per_epoch)
    if written != needed:
        raise ValueError(f"{folder}: the saved run is of {written}; this one is of {needed}: {REMEDY}")
    _restore(run, tensors, folder)
    run.step = step
    return True


def _tensors_of(run: Run) -> dict[str, Tensor]:
    tensors = {f"model.{name}": parameter.detach() for name, parameter in run.model.named_parameters()}
    for index, entries in run.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in entries.items() if value is not None}
    tensors |= {f"random.{name}": state for name, state in (run.random_states or {}).items()}
    return {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}


def _restore(run: Run, tensors: dict[str, Tensor], folder: Path) -> None:
    parameters = dict(run.model.named_parameters())
    found = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name.startswith("model.")}
    shapes = {name: parameter.shape for name, parameter in parameters.items()}
    if {name: tensor.shape for name, tensor in found.items()} != shapes:
        raise ValueError(f"{folder}: the saved run is of another model: {REMEDY}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(found[name])
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, entry = name.split(".")
            state.setdefault(int(index), {})[entry] = tensor
    groups = run.optimizer.state_dict()["param_groups"]
    run.optimizer.load_state_dict({"state": state, "param_groups": groups})
    states = {name.removeprefix("random."): tensor for name, tensor in tensors.items() if name.startswith("random.")}
    run.random_states = states or None
