"""From a run's spec to its task: the data are generated or read, and determine what kind of model can learn them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from transformer_core.bundle import Answered, Bundle, load_bundle
from transformer_core.examples import Example, split
from transformer_core.training.corpora.reviews import passage, reviews
from transformer_core.training.spec import START, RunSpec
from transformer_core.training.tasks.characters import character_task, parts_of, pieces
from transformer_core.training.tasks.classification import classification_task
from transformer_core.training.tasks.masked import masked_task, sentence_parts
from transformer_core.training.tasks.pairs import pairs_of
from transformer_core.training.tasks.sequences import letters_of, pair_task, sequence_task
from transformer_core.training.tasks.task import Task
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.tables.labelled import read_rows

UNDAMAGED = "undamaged"  # among a run's baselines: what the model reached as it was
TRAINED_ON = "undamaged_trained"  # and what it reached once it was trained as the damaged one
MOST_BYTES = 512 << 20  # as a run's frames may take


def make_task(spec: RunSpec, folder: Path | None, device: torch.device | None = None) -> Task:
    """Generate or read the data of a run; the same spec and file give the same task.

    Args:
        spec: the run's.
        folder: of the file that spec.data names, and of the model that the run starts from; None where there is none.
        device: of the batches; by default the processor.

    Raises:
        ValueError: the data are missing, too few or short for this spec, or not what it says of them.
        OSError: the file cannot be read.
    """
    device = device or torch.device("cpu")
    spec.data.require_fitting()
    begun = _begun_with(spec, folder, device)
    task = _task(spec, folder, device, begun)
    return task if begun is None else _compared(task, begun)


def _task(spec: RunSpec, folder: Path | None, device: torch.device, begun: Bundle | None) -> Task:
    data = spec.data
    if data.source == "pairs":
        return pair_task(spec, *pairs_of(spec, folder), device, begun)
    if data.kind == "translation":
        return sequence_task(spec, device, begun)
    if data.source in ("characters", "masked_words"):
        text = _passage(spec, folder)
        return (character_task if data.source == "characters" else masked_task)(spec, text, device, begun)
    return classification_task(spec, *_examples(spec, folder), data.labels, device, begun)


def held_out_of(spec: RunSpec, folder: Path) -> Sequence[Answered]:
    """Return the texts that a run never learns from, each with its class or its target, if it has one.

    Raises:
        ValueError, OSError: as of make_task.
    """
    data = spec.data
    if data.source == "pairs":
        return pairs_of(spec, folder)[1]
    if data.kind == "translation":
        return letters_of(spec)[1]
    if data.source in ("characters", "masked_words"):
        text = _passage(spec, folder)
        lines = pieces(parts_of(text)[1]) if data.source == "characters" else sentence_parts(spec, text)[1]
        return [(line, None) for line in lines]
    return [(example.text, example.label) for example in _examples(spec, folder)[1]]


def _examples(spec: RunSpec, folder: Path | None) -> tuple[list[Example], list[Example]]:
    """Return the labelled texts that are learned from, and those that are held out."""
    data, seed = spec.data, spec.training.seed
    if data.source == "reviews":
        return reviews(data.language, train=data.examples, held_out=data.held_out, seed=seed)
    train, held_out = split(_rows(spec, folder), held_out=data.held_out, seed=seed)
    return train[: data.examples], held_out


def _compared(task: Task, begun: Bundle) -> Task:
    """Return a task that knows what the undamaged model reaches, and measures every frame on the same examples."""
    reached = task.measure(begun.model, True)["held_out_accuracy"]
    return replace(
        task,
        measure=lambda model, thorough: task.measure(model, True),
        baselines={UNDAMAGED: reached, **task.baselines},
        begun=begun.model,
    )


def _file(spec: RunSpec, folder: Path | None) -> Path:
    if folder is None or spec.data.file is None:
        raise ValueError(
            f"file={spec.data.file!r} must name the data of source={spec.data.source!r} in the run's folder"
        )
    return folder / spec.data.file


def _passage(spec: RunSpec, folder: Path | None) -> str:
    if spec.data.file is None:
        return passage(spec.data.language)
    text = _file(spec, folder).read_text(encoding="utf-8")
    _require_count(spec, len(text))
    return text


def _rows(spec: RunSpec, folder: Path | None) -> list[Example]:
    rows = read_rows(_file(spec, folder))
    _require_count(spec, len(rows))
    found = {row.label for row in rows}
    if max(found) >= len(spec.data.labels):
        raise ValueError(
            f"labels={spec.data.labels!r:.200} are too few: {spec.data.file} has label number {max(found)}"
        )
    return rows


def _require_count(spec: RunSpec, found: int) -> None:
    given = spec.data.given
    if given is not None and given.count != found:
        raise ValueError(f"given={given!r} is not what lies in {spec.data.file}, which counts {found:,}")


def _begun_with(spec: RunSpec, folder: Path | None, device: torch.device) -> Bundle | None:
    """Return the undamaged model that a run starts from, None where it starts from fresh weights or from a frame.

    Raises:
        ValueError: it is missing, damaged on the disk, or of another kind than the data call for.
    """
    if spec.start is None:
        return None
    if folder is None:
        raise ValueError(f"the model {spec.start.model!r} that the run begins with must lie in the run's folder")
    try:
        bundle = load_bundle(folder / START, device=device.type, max_bytes=MOST_BYTES)
    except BundleError as error:
        raise ValueError(f"the model that the run begins with cannot be read: {error!s:.300}") from None
    if bundle.kind != spec.data.kind:
        raise ValueError(f"the run begins with a {bundle.kind}; its data call for a {spec.data.kind}")
    return bundle
