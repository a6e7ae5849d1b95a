"""Importing a run's zip, of which nothing is trusted: every name, size, record and array is checked before it is used.

No foreign database is opened and nothing is unpickled: records are JSON lines; an array is read only when its header
says the shape and type that the records call for.
"""

import json
import math
import re
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated, Any, NoReturn, get_args

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict

from transformer_core.bundle import MODELS, load_weights, make_config
from transformer_core.checkpoints import load
from transformer_core.text import Tokenizer, TokenizerError
from transformer_core.text.trial import try_out
from transformer_core.training.histograms import BINS, MOST_GROUPS, QUANTITIES, Histograms
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.exchange.export_run import CURVES, FORMAT, array_name
from transformer_core.training.runs.exchange.facts import check_facts
from transformer_core.training.runs.store.database import COUNT, FLOAT, RunWriter
from transformer_core.training.runs.store.folder import (
    ABOUT,
    ARRAYS,
    BUNDLE,
    DATABASE,
    FRAMES,
    ID,
    MOST_BYTES_OF_DATA,
    ORIGIN,
    RECORDS,
    RESERVED_NAMES,
    SCRIPT,
    SPEC,
    START,
    STATE,
    TOKENIZER,
    new_id,
)
from transformer_core.training.runs.store.records import ENDED, Frame, Layout, Method, State, Status
from transformer_core.training.spec import BOUNDS, MOST_STEPS, RunSpec
from transformer_core.trial import try_numbers
from transformer_core.untrusted import archives
from transformer_core.untrusted.archives import MB, ArchiveError, extract, open_zip
from transformer_core.untrusted.schema import Finite, checked

MOST_PACKED, MOST_UNPACKED, MOST_ENTRIES = 500 * MB, 1_024 * MB, 256
WEIGHTS = 400 * MB
SIZES = {
    re.escape(ABOUT): MB,
    re.escape(SPEC): MB,
    re.escape(SCRIPT): MB,
    re.escape(RECORDS): 64 * MB,
    re.escape(ARRAYS): 400 * MB,
    re.escape(TOKENIZER): 32 * MB,
    re.escape(ORIGIN): WEIGHTS,
    rf"{FRAMES}/[0-9]{{3}}\.safetensors": WEIGHTS,
    rf"({BUNDLE}|{START})/(config\.json|tokenizer\.json|card\.md)": 32 * MB,
    rf"({BUNDLE}|{START})/model\.safetensors": WEIGHTS,
    rf"{STATE}/run\.json": MB,
    rf"{STATE}/[0-9]{{1,9}}\.run\.safetensors": 3 * WEIGHTS,
}
NOT_EXTRACTED = {ABOUT, SCRIPT, SPEC}
MOST_FRAMES = BOUNDS["frames"][1]
MOST_RECORDS = {"format": 1, "status": 1, "facts": 1, "curves": 1, "point": BOUNDS["points"][1], "frame": MOST_FRAMES}
MOST_RECORDS |= {"layout": MOST_FRAMES * len(get_args(Method)), "histograms": MOST_FRAMES}
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(
    rb"\{'descr': '([<>=|][a-zA-Z][0-9]{0,9})', 'fortran_order': (True|False), 'shape': \(([0-9, ]{0,100})\), \} *\n"
)
LONGEST_LINE = MB
STEPS_AT_ONCE = 10_000
Count = Annotated[int, Meta(ge=0, le=sys.maxsize)]
Text = Annotated[str, Meta(max_length=10_000)]
Measures = Annotated[
    dict[Annotated[str, Meta(max_length=100)], Finite],
    Meta(max_length=32, description="an object of at most 32 finite numbers with short names"),
]


class _Status(Struct, forbid_unknown_fields=True):
    state: State
    step: Count
    total_steps: Count
    epoch: Finite
    seconds: Finite
    message: Text
    updated: Finite


class _Curves(Struct, forbid_unknown_fields=True):
    steps: Count


class _Point(Struct, forbid_unknown_fields=True):
    text: Text
    label: Count
    held_out: bool


class _Frame(Struct, forbid_unknown_fields=True):
    number: Count
    step: Count
    epoch: Finite
    seconds: Finite
    measures: Measures
    published: bool


class _Layout(Struct, forbid_unknown_fields=True):
    frame: Count
    method: Method
    measures: Measures


class _Histograms(Struct, forbid_unknown_fields=True):
    frame: Count
    groups: Annotated[list[Annotated[str, Meta(max_length=40)]], Meta(max_length=MOST_GROUPS)]


FORMS = {"format": dict, "status": _Status, "facts": dict}
FORMS |= {"curves": _Curves, "point": _Point, "frame": _Frame, "layout": _Layout, "histograms": _Histograms}
Records = dict[str, list[Any]]


def import_run(file: Path | IO[bytes], folder: Path) -> tuple[RunSpec, str]:
    """Check a zip and write its run into an empty folder, all but spec.json and run.json, which the caller writes.

    Returns:
        The spec and the id.

    Raises:
        RunError: what is wrong with the zip.
    """
    try:
        with open_zip(file, most_bytes=MOST_PACKED) as archive:
            spec, about = _extract(archive, folder)
        facts = _Contents(folder, spec).write()
    except ArchiveError as error:
        raise RunError(str(error)) from None
    for name in (RECORDS, ARRAYS):
        (folder / name).unlink()
    _check_models(folder, facts)
    named = re.search(r'"id": "([a-z0-9]*)"', about)
    return spec, named[1] if named and ID.fullmatch(named[1]) else new_id()


def _extract(archive: zipfile.ZipFile, folder: Path) -> tuple[RunSpec, str]:
    """Extract the files of a run; return its spec and the content of run.json."""
    entries = archives.entries(archive, most=MOST_ENTRIES, most_bytes=MOST_UNPACKED)
    if DATABASE in entries:
        raise RunError(
            f"the zip has {DATABASE}, so it was exported by an older version of Vitrine; such zips are no longer "
            "imported: export the run again with this version"
        )
    for name in (SPEC, RECORDS, ARRAYS):
        if name not in entries:
            raise RunError(f"the zip has no {name}: it is not an exported run")
    spec = _spec(archive, entries[SPEC])
    for name, entry in entries.items():
        limit = _limit(name, spec)
        if entry.file_size > limit:
            raise RunError(f"{name:.100} has {entry.file_size:,} bytes; at most {limit:,} are taken in")
        if name not in NOT_EXTRACTED:
            extract(archive, entry, folder / name)
    return spec, archive.read(entries[ABOUT]).decode("utf-8", "replace") if ABOUT in entries else ""


def _spec(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> RunSpec:
    if entry.file_size > SIZES[re.escape(SPEC)]:
        raise RunError(f"{SPEC} has {entry.file_size:,} bytes; it must be small")
    try:
        return RunSpec.from_json(archive.read(entry).decode("utf-8"))
    except ValueError as error:
        raise RunError(f"{SPEC}: {error!s:.300}") from None


def _limit(name: str, spec: RunSpec) -> int:
    """Return how large a file of this name may be."""
    if name == spec.data.file and name not in RESERVED_NAMES and not name.startswith("."):
        return MOST_BYTES_OF_DATA
    for pattern, limit in SIZES.items():
        if re.fullmatch(pattern, name):
            return limit
    raise RunError(f"the zip has {name!r:.100}, which no run has")


def _check_models(folder: Path, facts: dict[str, Any]) -> None:
    """Raise RunError unless every model in the folder can be loaded and is of the kind that the facts name."""
    brought = []
    try:
        if (folder / TOKENIZER).exists():
            brought.append(_tokenizer(folder / TOKENIZER))
        for name in (BUNDLE, START):
            if (folder / name).exists():
                bundle = load(folder / name, device="cpu")
                try_numbers(bundle)
                brought.append(bundle.tokenizer)
        for tokenizer in {tokenizer.to_json(): tokenizer for tokenizer in brought}.values():
            try_out(tokenizer)
        for path in sorted((folder / FRAMES).glob("*")):
            if not facts:
                raise RunError("the zip has frames but no facts about their model")
            load_weights(path, MODELS[facts["kind"]], make_config(facts["kind"], facts["model"]))
    except RunError:
        raise
    except ValueError as error:
        raise RunError(f"a model in the zip cannot be read: {error!s:.300}") from None


def _tokenizer(path: Path) -> Tokenizer:
    try:
        return Tokenizer.load(path)
    except TokenizerError as error:
        raise RunError(f"a model in the zip cannot be read: {path.name}: {error!s:.400}") from None


class _Contents:
    """The records and arrays of a zip, written into a new database as they are checked."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        self._folder, self._spec = folder, spec
        self._used: set[str] = set()

    def write(self) -> dict[str, Any]:
        """Write the database and return the facts.

        Raises:
            RunError, ArchiveError: a record or an array cannot be one of this spec's run.
        """
        try:
            records = _read_records(self._folder / RECORDS)
            facts = records["facts"][0]
            if facts:
                check_facts(facts, self._spec)
            with open_zip(self._folder / ARRAYS, most_bytes=SIZES[re.escape(ARRAYS)]) as self._archive:
                most = len(CURVES) + 4 * MOST_FRAMES + MOST_RECORDS["layout"]
                self._entries = archives.entries(self._archive, most=most, most_bytes=SIZES[re.escape(ARRAYS)])
                with closing(RunWriter(self._folder)) as writer:
                    self._write(records, facts, writer)
            if extra := sorted(self._entries.keys() - self._used):
                raise RunError(f"{ARRAYS} has {extra[0]!r:.100}, which no run has")
        except (RunError, ArchiveError):
            raise
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError, MemoryError) as error:
            raise RunError(f"{RECORDS} or {ARRAYS} holds what no run writes: {error!r:.200}") from None
        return facts

    def _write(self, records: Records, facts: dict[str, Any], writer: RunWriter) -> None:
        points, frames, status = records["point"], records["frame"], _status(records["status"][0])
        labels, d_model = len(facts.get("labels", ())), facts.get("model", {}).get("d_model", 0)
        for point in points:
            _require(point.label < labels, "point", point)
        writer.set_facts(facts)
        writer.set_points(*([getattr(point, name) for point in points] for name in ("text", "label", "held_out")))
        self._write_curves(records["curves"][0].steps, status.total_steps, writer)
        groups = {one.frame: one.groups for one in records["histograms"]}
        for number, frame in enumerate(frames):
            _require(frame.number == number and frame.step <= status.total_steps, "frame", frame)
            found = self._histograms(number, groups.pop(number)) if number in groups else None
            self._write_frame(frame, (len(points), d_model, labels), writer, found)
        _require(not groups, "histograms", groups)
        layouts: dict[int, list[Layout]] = {}
        for layout in records["layout"]:
            _require(layout.frame < len(frames) and frames[layout.frame].published, "layout", layout)
            xy = self._array(array_name(layout.method, layout.frame), FLOAT, (len(points), 2), finite=True)
            layouts.setdefault(layout.frame, []).append(Layout(layout.frame, layout.method, xy, layout.measures))
        for frame, made in layouts.items():
            writer.publish(frame, made)
        writer.set_status(status)

    def _write_curves(self, n_steps: int, total_steps: int, writer: RunWriter) -> None:
        _require(n_steps <= total_steps, "curves", n_steps)
        columns = [self._array(name, dtype, (n_steps,), finite=True) for name, dtype in CURVES.items()]
        step = columns[0]
        _require(bool((np.diff(step) > 0).all() and (step >= 1).all() and (step <= total_steps).all()), "curves", step)
        for start in range(0, n_steps, STEPS_AT_ONCE):
            part = (column[start : start + STEPS_AT_ONCE].tolist() for column in columns)
            writer.add_steps(list(zip(*part, strict=True)), 0.0, None)

    def _histograms(self, frame: int, groups: list[str]) -> Histograms:
        shape = (len(QUANTITIES), len(groups))
        counts = self._array(array_name("counts", frame), COUNT, (*shape, BINS))
        return Histograms(tuple(groups), counts, self._array(array_name("rms", frame), FLOAT, shape, finite=True))

    def _write_frame(
        self, frame: _Frame, sizes: tuple[int, int, int], writer: RunWriter, found: Histograms | None
    ) -> None:
        """Write a frame; sizes are those of points, embeddings and predictions."""
        embeddings = predictions = None
        n_points, d_model, n_classes = sizes
        if n_points:  # numbers of a run that diverges may be infinite
            embeddings = self._array(array_name("embeddings", frame.number), FLOAT, (n_points, d_model))
            predictions = self._array(array_name("predictions", frame.number), FLOAT, (n_points, n_classes))
        record = Frame(frame.number, frame.step, frame.epoch, frame.seconds, frame.measures)
        writer.add_frame(record, embeddings, predictions, published=frame.published, histograms=found)

    def _array(self, name: str, dtype: np.dtype, shape: tuple[int, ...], *, finite: bool = False) -> np.ndarray:
        """Return an array, which must be there once and have this type and shape."""
        file_name = f"{name}.npy"
        if file_name not in self._entries or file_name in self._used:
            raise RunError(f"{ARRAYS} lacks {name}, or two records name it")
        self._used.add(file_name)
        with self._archive.open(self._entries[file_name]) as file:
            found, by_column, found_type = _header(file, name)
            order = "by columns" if by_column else "by rows"
            if (found, by_column, found_type) != (shape, False, dtype.str):
                raise RunError(
                    f"{ARRAYS} has {name} of shape {found} and type {found_type}, {order}; "
                    f"shape {shape} and type {dtype.str}, by rows, are needed"
                )
            n_bytes = math.prod(shape) * dtype.itemsize
            content = file.read(n_bytes + 1)
        if len(content) != n_bytes:
            raise RunError(f"{ARRAYS} has {name} of another size than its shape {shape}")
        array = np.frombuffer(content, dtype).reshape(shape)
        if finite and not np.isfinite(array).all():
            raise RunError(f"{ARRAYS} has numbers in {name} that are not finite")
        return array


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, str]:
    """Return shape, order and type of an array in .npy format 1.0.

    numpy would parse the header as Python, and deep nesting there harms the parser of the whole process in Python 3.11.
    """
    if file.read(len(MAGIC)) != MAGIC:
        raise RunError(f"{ARRAYS} has {name} in no .npy format 1.0")
    found = HEADER.fullmatch(file.read(int.from_bytes(file.read(2), "little")))
    if found is None:
        raise RunError(f"{ARRAYS} has {name} with a header that numpy does not write")
    shape = tuple(map(int, re.findall(rb"[0-9]+", found[3])))
    return shape, found[2] == b"True", found[1].decode()


def _read_records(path: Path) -> Records:
    """Return the records of each kind; of format, status, facts and curves there is one."""
    records: Records = {kind: [] for kind in MOST_RECORDS}
    for kind, values in _lines(path):
        _require(kind in records, "a record", kind)
        if kind == "format" and values != {"version": FORMAT}:
            found = values.get("version") if isinstance(values, dict) else values
            raise RunError(f"{RECORDS} has format={found!r:.40}; format={FORMAT} is taken in")
        try:
            records[kind].append(checked(values, FORMS[kind]))
        except ValueError as error:
            where = "measures" if str(error).startswith("measures=") else kind
            raise RunError(f"{RECORDS} holds in {where} what no run writes: {error}") from None
        if len(records[kind]) > MOST_RECORDS[kind]:
            raise RunError(f"{RECORDS} has more than {MOST_RECORDS[kind]:,} of {kind}")
    for kind in ("format", "status", "facts", "curves"):
        if not records[kind]:
            raise RunError(f"{RECORDS} has no {kind}")
    return records


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE + 1):
            _require(len(line) <= LONGEST_LINE, "a line", line[:100])
            record = json.loads(line.decode("utf-8"), parse_constant=_refuse)
            _require(isinstance(record, dict) and len(record) == 1, "a line", record)
            yield from record.items()


def _status(record: _Status) -> Status:
    """Return the status of a run that no worker has."""
    if record.total_steps > MOST_STEPS:
        raise RunError(f"the run has {record.total_steps:,} steps; at most {MOST_STEPS:,} are taken in")
    _require(record.step <= record.total_steps, "status", record)
    status = Status(**asdict(record))
    return status if status.state in ENDED else replace(status, state="stopped")


def _require(fits: bool, kind: str, value: Any) -> None:
    if not fits:
        raise RunError(f"{RECORDS} holds in {kind} what no run writes: {value!r:.100}")


def _refuse(constant: str) -> NoReturn:
    raise RunError(f"{RECORDS} has {constant}, which is not finite")
