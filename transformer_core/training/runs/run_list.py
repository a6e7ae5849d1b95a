"""RunList: all runs of a machine; creates, lists, renames, deletes, prunes, exports and imports them."""

import dataclasses
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from transformer_core.training.runs.beginning import Beginning, copy_beginning, put_beginning
from transformer_core.training.runs.errors import RunError, in_words
from transformer_core.training.runs.exchange.export_run import export_run
from transformer_core.training.runs.exchange.import_run import import_run
from transformer_core.training.runs.runner import Runner, runner
from transformer_core.training.runs.settings import numbered
from transformer_core.training.runs.store.folder import (
    ABOUT,
    ID,
    KEPT,
    ORIGIN,
    RESERVED_NAMES,
    SPEC,
    Data,
    created_at,
    default_root,
    is_followed,
    making,
    new_id,
    owner_of,
    put_data,
    remove,
    write_whole,
)
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import RunSpec

FORMAT = 1
MOST_LISTED = 200
SECONDS_YOUNG, SECONDS_FOLLOWED = 24 * 3_600.0, 600.0


@dataclass(frozen=True)
class Bounds:
    """How many runs are kept and wait.

    Args:
        runs, size: of one owner; the size in bytes.
        live: of one owner, that compute, wait or pause.
        all_runs, all_size: of all owners together.
    """

    runs: int = 64
    size: int = 4 << 30
    live: int = 40
    all_runs: int = 200
    all_size: int = 40 << 30


BOUNDS = Bounds()


class RunList:
    """The runs in one folder.

    Before each new run old ones of the same owner are pruned: the oldest are deleted until that owner has less than 64,
    which take at most 4 GB. A run that computes, waits or pauses is never deleted, nor one that was renamed by hand,
    which means that it is wanted; where those alone are too many, no new run is made.

    Args:
        root: by default VITRINE_RUNS, else .runs/live under the project's root.
        computes: the runs; by default what runner chooses.
        owner: of the runs that are made; "" where nobody is told apart.
        bounds: of each owner, and of all together.

    Raises:
        RunError: all methods raise it where the folder cannot be read or written.
    """

    def __init__(
        self, root: Path | None = None, *, computes: Runner | None = None, owner: str = "", bounds: Bounds = BOUNDS
    ) -> None:
        self.root = (default_root() if root is None else Path(root)).absolute()
        self._runner = runner() if computes is None else computes
        self._owner, self._bounds = owner, bounds

    def create(self, spec: RunSpec, *, data: Data | None = None, beginning: Beginning | None = None) -> RunStore:
        """Create the folder of a new run; a Launcher starts it.

        Args:
            spec: the run's.
            data: content of the file that spec.data.file names.
            beginning: the model that spec.start names; by default that of the run in spec.origin.

        Raises:
            RunError: spec, data and beginning do not fit, the run or frame that the run is made from is gone, the owner
                keeps or starts too many, or too many wait already.
        """
        _require_fitting(spec, data)
        _require_beginning(spec, beginning)
        live = len(self._runner.live(folder for folder in self._folders(most=None) if owner_of(folder) == self._owner))
        if live >= self._bounds.live:
            raise RunError(f"{live} of your runs compute or wait, and no more may; stop one, or come back later")
        self._runner.require_room(self.root)
        self.prune()
        with in_words("the run cannot be made"), making(self.root) as draft:
            write_whole(draft / SPEC, spec.to_json())
            if data is not None and spec.data.file is not None:
                put_data(data, draft / spec.data.file)
            if beginning is not None:
                put_beginning(beginning, draft)
            elif spec.start is not None and spec.origin is not None:
                copy_beginning(self.open(spec.origin.run).folder, draft)
            if spec.origin is not None and spec.origin.frame is not None:
                weights = self.open(spec.origin.run).weights_path(spec.origin.frame)
                if weights is None:
                    raise RunError(f"frame {spec.origin.frame} of run {spec.origin.run} has no weights to begin with")
                shutil.copyfile(weights, draft / ORIGIN)
            return self._place(draft, new_id())

    def open(self, run: str) -> RunStore:
        """Return a run by its id.

        Raises:
            RunError: there is none, or it cannot be read.
        """
        return self._store(self._folder(run))

    def all(self) -> list[RunStore]:
        """Return the runs that can be read, newest first, at most 200."""
        return [store for store in map(self._read, self._folders()) if isinstance(store, RunStore)]

    def live(self) -> list[RunStore]:
        """Return the runs that compute, wait or pause, newest first; the others are not read."""
        folders = self._folders()
        live = self._runner.live(folders)
        found = (self._read(folder) for folder in folders if folder in live)
        return [store for store in found if isinstance(store, RunStore)]

    def broken(self) -> dict[str, str]:
        """Return the ids of the runs that cannot be read, each with the reason."""
        found = {folder.name: self._read(folder) for folder in self._folders()}
        return {name: what for name, what in found.items() if isinstance(what, str)}

    def rename(self, run: str, name: str) -> RunStore:
        """Give a run another name; from then on it is never pruned.

        Raises:
            RunError: the name is empty or too long.
        """
        store = self.open(run)
        try:
            spec = dataclasses.replace(store.spec, name=name.strip())
        except ValueError as error:
            raise RunError(str(error)) from None
        with in_words("the run cannot be renamed"):
            write_whole(store.folder / SPEC, spec.to_json())
            (store.folder / KEPT).touch()
        return self._store(store.folder)

    def free_name(self, name: str) -> str:
        """Return a name that no run has: this one, or this one with a number after it."""
        return numbered(name, {store.spec.name for store in self.all()})

    def delete(self, run: str, *, stop: bool = False) -> None:
        """Delete a run, readable or not.

        Args:
            run: its id.
            stop: stop it first; without it, a run that computes, waits or pauses is not deleted.

        Raises:
            RunError: there is no such run, it is live, or it cannot be deleted.
        """
        folder = self._folder(run)
        if self._runner.is_alive(folder):
            if not stop:
                raise RunError(f"run {run} has a worker, or waits for one; stop it before deleting it")
            self._runner.end(folder)
        remove(folder)

    def prune(self) -> list[str]:
        """Make room for one more run by the rule of the class; delete old runs, and return their ids.

        Other owners' runs go only where all together are too many, and none that is younger than a day or followed.

        Raises:
            RunError: there is no room, and nothing that may go.
        """
        bounds, folders = self._bounds, self._folders(most=None)
        sizes = {folder: _size_of(folder) for folder in folders}
        own = [folder for folder in folders if owner_of(folder) == self._owner]
        kept = self._runner.live(folders) | {folder for folder in folders if (folder / KEPT).exists()}
        loose = [folder for folder in own if folder not in kept]
        gone, left = _oldest(own, loose, sizes, bounds.runs, bounds.size)
        if left:
            raise RunError(f"you keep {len(own) - len(gone)} runs, and at most {bounds.runs} are kept; delete one")
        rest = [folder for folder in folders if folder not in gone]
        old = [folder for folder in rest if folder not in kept and (folder in loose or _is_left_alone(folder))]
        more, left = _oldest(rest, old, sizes, bounds.all_runs, bounds.all_size)
        if left:
            raise RunError(f"the server keeps {len(rest)} runs and has no room for another; come back tomorrow")
        pruned = []
        for folder in (*gone, *more):
            with suppress(RunError):  # a run that cannot be deleted is no reason not to make another
                remove(folder)
                pruned.append(folder.name)
        return pruned

    def export_zip(self, run: str, to: Path | IO[bytes]) -> None:
        """Write a run as one zip, which import_zip reads here and elsewhere; a live run as it is now."""
        export_run(self.open(run), to)

    def import_zip(self, file: Path | IO[bytes]) -> RunStore:
        """Import a run that export_zip wrote, under its own id or, where that is taken, a new one.

        Raises:
            RunError: the zip is no exported run, or something in it is damaged or out of bounds.
        """
        self.prune()
        with in_words("the run cannot be made"), making(self.root) as draft:
            spec, run = import_run(file, draft)
            write_whole(draft / SPEC, spec.to_json())
            return self._place(draft, new_id() if (self.root / run).exists() else run)

    def _store(self, folder: Path) -> RunStore:
        return RunStore(folder, self._runner.presence)

    def _read(self, folder: Path) -> RunStore | str:
        try:
            store = self._store(folder)
            store.require_readable()
        except RunError as error:
            return str(error)
        return store

    def _folder(self, run: str) -> Path:
        if not (isinstance(run, str) and ID.fullmatch(run) and (self.root / run).is_dir()):
            raise RunError(f"there is no run {str(run)[:40]!r} here; it may have been deleted")
        return self.root / run

    def _folders(self, most: int | None = MOST_LISTED) -> list[Path]:
        with in_words("the folder of runs cannot be read"):
            if not self.root.is_dir():
                return []
            folders = [entry for entry in self.root.iterdir() if ID.fullmatch(entry.name) and entry.is_dir()]
        return sorted(folders, key=created_at, reverse=True)[:most]

    def _place(self, draft: Path, run: str) -> RunStore:
        noted = {"format": FORMAT, "id": run, "created": time.time(), "owner": self._owner}
        write_whole(draft / ABOUT, json.dumps(noted) + "\n")
        draft.rename(self.root / run)
        return self._store(self.root / run)


def _require_fitting(spec: RunSpec, data: Data | None) -> None:
    file = spec.data.file
    try:
        spec.data.require_fitting()
    except ValueError as error:
        raise RunError(str(error)) from None
    if (file is None) != (data is None):
        raise RunError(f"file={file!r} and data must be given together, or neither")
    if file in RESERVED_NAMES or (file is not None and file.startswith(".")):
        raise RunError(f"file={file!r} is a name that the run needs itself")


def _require_beginning(spec: RunSpec, beginning: Beginning | None) -> None:
    if spec.start is None and beginning is not None:
        raise RunError("start=None must name the model that the run begins with")
    if spec.start is not None and beginning is None and spec.origin is None:
        raise RunError(f"start={spec.start.model!r} must come with its weights, or from a run that has them")


def _is_left_alone(folder: Path) -> bool:
    """Tell whether a run is a day old, and nobody follows it."""
    return time.time() - created_at(folder) > SECONDS_YOUNG and not is_followed(folder, SECONDS_FOLLOWED)


def _oldest(
    folders: Sequence[Path], may_go: Sequence[Path], sizes: Mapping[Path, int], most: int, most_bytes: int
) -> tuple[list[Path], bool]:
    """Return the runs to delete, oldest first, so that less than `most` of at most `most_bytes` in all are left.

    Args:
        folders: of the runs that count, newest first.
        may_go: those of them that may be deleted.
        sizes: in bytes.

    Returns:
        The runs, and whether too many are left all the same.
    """
    n_runs, n_bytes, gone = len(folders), sum(sizes[folder] for folder in folders), []
    for folder in reversed([folder for folder in folders if folder in may_go]):
        if n_runs < most and n_bytes <= most_bytes:
            break
        gone.append(folder)
        n_runs, n_bytes = n_runs - 1, n_bytes - sizes[folder]
    return gone, n_runs >= most or n_bytes > most_bytes


def _size_of(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size
    return total
