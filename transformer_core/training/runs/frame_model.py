"""The model of one moment: a frame's weights, put back into the model that they were taken from.

Read next: store.py.
"""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from transformer_core.bundle import MODELS, Bundle, load_weights
from transformer_core.config import ModelConfig
from transformer_core.device import best_device
from transformer_core.text import Tokenizer
from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.folder import ORIGIN, TOKENIZER, weights_file

VOCABULARY = "tokenizer_sha256"


def save_weights(model: nn.Module, path: Path, tokenizer_sha256: str) -> None:
    """Write a model's weights in float32, beside their place and then moved there."""
    tensors = {name: p.detach().to("cpu", torch.float32).contiguous() for name, p in model.named_parameters()}
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".{path.name}")
    try:
        save_file(tensors, draft, metadata={VOCABULARY: tokenizer_sha256})
        draft.chmod(0o644)  # safetensors lets the owner alone read it
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def fingerprint_of(tokenizer_file: Path) -> str:
    """Return the SHA-256 of a run's tokenizer.json: what its ids mean."""
    return hashlib.sha256(tokenizer_file.read_bytes()).hexdigest()


def tokenizer_of(folder: Path) -> Tokenizer:
    """Return a run's tokenizer; it is read once for all its frames.

    Raises:
        OSError, TokenizerError: it cannot be read.
    """
    path = folder / TOKENIZER
    return _tokenizer(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _tokenizer(path: Path, _written: int) -> Tokenizer:
    return Tokenizer.load(path)


def model_of_frame(folder: Path, facts: dict[str, Any], frame: int) -> Bundle:
    """Return the model of a frame, in evaluation mode.

    Raises:
        RunError: its weights were not kept, or something in the folder cannot be read.
    """
    path, name = weights_file(folder, frame), f"frame {frame} of run {folder.name}"
    if not path.is_file():
        raise RunError(f"the weights of {name} were not kept")
    try:
        with in_words(f"{name} cannot be read"):
            model = load_weights(path, MODELS[facts["kind"]], ModelConfig(**facts["model"]))
            tokenizer = tokenizer_of(folder)
    except RunError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{name} cannot be read: {error!s:.300}") from None
    model = model.to(best_device()).eval().requires_grad_(False)
    return Bundle(f"{folder.name}-{frame:03d}", model, tokenizer, tuple(facts.get("labels", ())))


def take_over(model: nn.Module, folder: Path, tokenizer_sha256: str) -> None:
    """Give a fresh model the weights of the moment that its run branches off from.

    Parameters of the same name and shape are taken; the others stay fresh, since one changed setting may well change
    what there is to learn.

    Raises:
        RunError: the weights cannot be read, have nothing in common with the model, or belong to another vocabulary.
    """
    with in_words("the weights that the run begins with cannot be read"), _opened(folder / ORIGIN) as file:
        if (file.metadata() or {}).get(VOCABULARY) != tokenizer_sha256:
            raise RunError(
                "the weights that the run begins with belong to another vocabulary: keep the data of the run that it "
                "branches off from, or begin with fresh weights"
            )
        taken = _common(model, file)
        if not taken:
            raise RunError("the weights that the run begins with do not fit its model anywhere")
        with torch.no_grad():
            for name, parameter in taken.items():
                parameter.copy_(file.get_tensor(name))


def describe_taken(model: nn.Module, folder: Path) -> str:
    """Return how much of a model take_over gives it, in words."""
    with _opened(folder / ORIGIN) as file:
        taken, total = len(_common(model, file)), len(list(model.parameters()))
    return f"{taken} of {total} tensors are those of the moment that it branches off from."


def _common(model: nn.Module, file: Any) -> dict[str, nn.Parameter]:
    shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return {name: weight for name, weight in model.named_parameters() if shapes.get(name) == tuple(weight.shape)}


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except SafetensorError as error:
        raise RunError(f"the weights that the run begins with are damaged: {error!s:.200}") from None
