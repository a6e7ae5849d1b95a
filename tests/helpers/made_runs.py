"""Runs as a worker would have left them, made in a moment: a rising curve, a few frames, points in two clouds."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock

from transformer_core.bundle import MODELS
from transformer_core.text import Tokenizer
from transformer_core.training.runs.presets import CHARACTERS, MASKED_WORDS, QUICK, REVERSE
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.settings import change
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.folder import DATABASE, LOCK, TOKENIZER, hold, weights_file
from transformer_core.training.runs.store.records import Frame, Layout, State
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.worker.build_run import fingerprint_of
from transformer_core.training.runs.worker.recorder import save_weights
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.model_config import model_config

STEPS, FRAMES, POINTS = 12, 4, 8
TINY = {"d_model": 8, "n_heads": 2, "d_ff": 8, "n_layers": 1, "max_len": 16}
SPECS = {
    spec.data.kind: change(spec, **TINY, epochs=1, **({"length": 6} if spec is REVERSE else {}))
    for spec in (QUICK, REVERSE, CHARACTERS, MASKED_WORDS)
}
PROMPTS = {"classifier": "a dull film", "translation": "a b c", "gpt": "a dull", "bert": "a [MASK] film"}
TEXTS = ["a dull film", "a fine film", "a b c d e f g h i j k l", "not dull at all", "the film is not fine"]


def held_out_accuracy(frame: int, last: float) -> float:
    """Return a frame's accuracy on the way from a coin's to the last one."""
    return 0.5 + (last - 0.5) * frame / (FRAMES - 1)


def made_run(
    root: Path,
    spec: RunSpec = SPECS["classifier"],
    *,
    state: State = "finished",
    message: str = "",
    train: float = 0.99,
    held_out: float = 0.97,
    data: bytes | None = None,
    owner: str = "",
) -> RunStore:
    """Make a run of four frames that reached these accuracies."""
    store = RunList(root, owner=owner).create(spec, data=data)
    kind = spec.data.kind
    template = {"classifier": "cls", "bert": "cls", "translation": "bos_eos", "gpt": "none"}[kind]
    tokenizer = Tokenizer.train(
        "character" if kind == "gpt" else "word", TEXTS, vocab_size=64, min_frequency=1, template=template
    )
    tokenizer.save(store.folder / TOKENIZER)
    config = model_config(spec, vocab_size=tokenizer.vocab_size)
    writer = RunWriter(store.folder)
    vocabulary = fingerprint_of(store.folder / TOKENIZER)
    writer.set_facts(_facts(spec, vars(config)) | {"tokenizer_sha256": vocabulary})
    if kind == "classifier":
        writer.set_points(
            [f"review {i}" for i in range(POINTS)], [i % 2 for i in range(POINTS)], [i > 3 for i in range(POINTS)]
        )
    writer.set_progress(0, STEPS, 0.0, 0.0)
    writer.add_steps([(i, 1 / i, 1e-3, 0.5, 0.1 * i) for i in range(1, STEPS + 1)], 1.0, None)
    torch.manual_seed(0)
    for number in range(FRAMES):
        save_weights(MODELS[spec.kind](config), weights_file(store.folder, number), vocabulary)
        _add_frame(writer, number, kind, train, held_out)
    writer.set_state(state, message=message)
    writer.close()
    return store


def held(store: RunStore) -> FileLock:
    """Hold a run as its worker would; release() lets go."""
    return hold(store.folder / LOCK)


def _facts(spec: RunSpec, config: dict[str, Any]) -> dict[str, Any]:
    kind = spec.data.kind
    is_classifier = kind == "classifier"
    return {
        "kind": spec.kind,
        "labels": list(spec.data.labels) if is_classifier else [],
        "baselines": {"majority": 0.5, "bag_of_words": 0.8} if is_classifier else {},
        "counts": {"train": 400, "held_out": 600} if is_classifier else {},
        "prompt": PROMPTS[kind],
        "model": config,
        "n_parameters": 1_000,
        "steps_per_epoch": STEPS,
        "total_steps": STEPS,
        "frames_planned": list(range(FRAMES)),
        "bytes_of_weights": 4_000 * FRAMES,
        "notes": [],
        "device": "cpu",
        "device_name": "a processor",
        "threads": 1,
        "torch": torch.__version__,
        "python": "3",
        "started": 0.0,
    }


def _add_frame(writer: RunWriter, number: int, kind: str, train: float, held_out: float) -> None:
    accuracy = {name: held_out_accuracy(number, last) for name, last in (("train", train), ("held_out", held_out))}
    measures = {f"{name}_accuracy": value for name, value in accuracy.items()}
    measures |= {f"{name}_loss": 1 - value for name, value in accuracy.items()}
    step = round(STEPS * number / (FRAMES - 1))
    frame = Frame(number, step, step / STEPS, 0.1 * step, measures)
    if kind != "classifier":
        writer.add_frame(frame, None, None, published=True)
        return
    rng = np.random.default_rng(number)
    vectors = rng.normal(size=(POINTS, TINY["d_model"])).astype(np.float32)
    writer.add_frame(frame, vectors, np.full((POINTS, 2), 0.5, np.float32), published=False)
    trust = {"trustworthiness": 0.96, "displacement": 0.2}
    trust |= {f"neighbours_{name}": value for name, value in accuracy.items()}
    layouts = [
        Layout(number, method, rng.normal(size=(POINTS, 2)).astype(np.float32), trust) for method in ("tsne", "pca")
    ]
    writer.publish(number, layouts)


def spoil_measures(store: RunStore) -> None:
    """Change one character of what the run's first frame measured."""
    with closing(sqlite3.connect(store.folder / DATABASE)) as connection, connection:
        connection.execute("UPDATE frames SET measures = replace(measures, '}', ']') WHERE number = 0")
