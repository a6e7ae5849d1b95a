"""A replica: the server's folder of a run that a node computes takes over what is new in the node's folder.

Nothing is kept in memory for it: what the server has yet to take is what it lacks of the node's folder, which holds the
whole run within a run's own bounds. So a server that was away, for whatever time, takes all of it, in its order.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from transformer_core.training.runs.errors import in_words
from transformer_core.training.runs.store.database import open_reader, open_writer
from transformer_core.training.runs.store.folder import (
    BUNDLE,
    DATABASE,
    FOLLOWED,
    FRAMES,
    KEPT,
    LAUNCH,
    LOCK,
    LOG,
    PLACED,
    RESERVE,
    SCRIPT,
    STATE,
    TAKER,
    TOKENIZER,
    weights_file,
    write_whole,
)
from transformer_core.training.state import PLACE, saved_step

MOST_BYTES, MOST_STEPS = 32 << 20, 20_000  # of one answer; more is taken by the next
STATUS = ("state", "message", "step", "total_steps", "epoch", "seconds", "seconds_left", "updated")
STATUS_SET = f"UPDATE status SET {', '.join(f'{name}=?' for name in STATUS)}, pid=0"
NOT_SENT = {DATABASE, LOCK, LAUNCH, TAKER, LOG, PLACED, KEPT, FOLLOWED, RESERVE, FRAMES, BUNDLE, SCRIPT}
Stamp = tuple[int, int]  # a file's size in bytes and when it was written, in ns
File = tuple[bytes, int]  # its content, and when it was written


@dataclass(frozen=True)
class Seen:
    """What a folder has of a run, to be asked for what is new.

    Args:
        step: the last that is in the database.
        frame, published: the highest numbers of a frame and of one that readers see; -1 before the first.
        points: whether they are there.
        updated: when the status was written.
        files: the stamps of small files and of the saved state.
        wants_state: whether a state to continue the run is sent, though the run goes on.
    """

    step: int = 0
    frame: int = -1
    published: int = -1
    points: bool = False
    updated: float = 0.0
    files: Mapping[str, Stamp] = field(default_factory=dict)
    wants_state: bool = True


@dataclass(frozen=True)
class News:
    """What is new of a run: rows of its database and files.

    Args:
        status: of STATUS.
        steps, frames, histograms, layouts, points, facts: rows as they are in the tables; no points where they
            are there already.
        published: numbers of the frames that readers may see now.
        weights: the files of the frames, by number.
        files: contents and time of other files.
        state: names of the files of the saved state, None where nothing is known of them.
        is_whole: whether nothing was left for the next answer.
        is_over: whether nobody computes the run any more.
        pauses: whether it was left because it pauses.
    """

    status: tuple
    steps: list[tuple]
    frames: list[tuple]
    histograms: list[tuple]
    layouts: list[tuple]
    points: list[tuple]
    facts: list[tuple]
    published: list[int]
    weights: dict[int, bytes]
    files: dict[str, File]
    state: set[str] | None
    is_whole: bool
    is_over: bool
    pauses: bool


def pack(folder: Path) -> dict[str, bytes]:
    """Return the files that a node needs to begin a run or to continue it from its saved state.

    Raises:
        OSError, sqlite3.Error: they cannot be read.
    """
    paths = [path for path in folder.rglob("*") if path.is_file() and not _is_apart(path.relative_to(folder))]
    parts = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    if (folder / DATABASE).is_file():
        with closing(sqlite3.connect(folder / DATABASE)) as disk, closing(sqlite3.connect(":memory:")) as copy:
            disk.backup(copy)
            parts[DATABASE] = copy.serialize()
    return parts


def _is_apart(name: Path) -> bool:
    return name.parts[0] in NOT_SENT or name.name.startswith((".", f"{DATABASE}-")) or name.parts[0].startswith("tmp")


def unpack(parts: Mapping[str, bytes], folder: Path) -> None:
    """Write what pack returned; the steps after the saved state go, since they are taken again.

    Raises:
        OSError, RunError: it cannot be written.
    """
    for name, content in parts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    rewind(folder)


def rewind(folder: Path) -> None:
    """Delete the steps that come after a run's saved state, with no state all progress.

    Raises:
        RunError: it cannot be written.
    """
    with in_words("the run cannot be written"), closing(open_writer(folder / DATABASE)) as table, _whole(table):
        step = saved_step(folder / STATE)
        table.execute("DELETE FROM steps WHERE step > ?", (step or 0,))
        table.execute("UPDATE status SET step = ?", (step or 0,))
        if step is None:
            for name in ("steps", "frames", "histograms", "layouts"):
                table.execute(f"DELETE FROM {name}")


def seen_of(folder: Path, *, wants_state: bool = True) -> Seen:
    """Return what the server's folder of a run has.

    Raises:
        RunError: it cannot be read.
    """
    with in_words("the run cannot be read"):
        table = open_reader(folder / DATABASE)
        if table is None:
            return Seen()
        with closing(table):
            step, updated = table.execute("SELECT step, updated FROM status").fetchone()
            (frame,) = table.execute("SELECT COALESCE(MAX(number), -1) FROM frames").fetchone()
            (published,) = table.execute("SELECT COALESCE(MAX(number), -1) FROM frames WHERE published").fetchone()
            points = table.execute("SELECT COUNT(*) FROM points").fetchone()[0] > 0
    files = stamps_of(folder, (*_at_hand(folder), *_of_state(folder), *_at_end(folder)))
    return Seen(step, frame, published, points, updated, files, wants_state)


def news_of(folder: Path, seen: Seen, *, is_over: bool, pauses: bool = False) -> News | None:
    """Return what is new in a node's folder of a run; None before its database is there.

    The saved state is read first, so that the database has all frames up to it.

    Args:
        folder: on the node.
        seen: what the server has.
        is_over, pauses: see News.

    Raises:
        RunError: the run cannot be read.
    """
    with in_words("the run cannot be read"):
        state, kept = _new_state(folder, seen) if seen.wants_state or is_over else ({}, None)
        table = open_reader(folder / DATABASE)
        if table is None:
            return None
        with closing(table):
            table.execute("BEGIN")
            status = table.execute(f"SELECT {', '.join(STATUS)} FROM status").fetchone()
            facts = table.execute("SELECT * FROM facts").fetchall()
            points = [] if seen.points else table.execute("SELECT * FROM points").fetchall()
            steps = table.execute(
                "SELECT * FROM steps WHERE step > ? AND step <= ? ORDER BY step LIMIT ?",
                (seen.step, status[2], MOST_STEPS),
            ).fetchall()
            frames, weights = _new_frames(table, folder, seen.frame)
            last = frames[-1][0] if frames else seen.frame
            histograms = table.execute(
                "SELECT * FROM histograms WHERE frame > ? AND frame <= ?", (seen.frame, last)
            ).fetchall()
            new = (seen.published, last)
            layouts = table.execute("SELECT * FROM layouts WHERE frame > ? AND frame <= ?", new).fetchall()
            published = table.execute(
                "SELECT number FROM frames WHERE published AND number > ? AND number <= ?", new
            ).fetchall()
            is_whole = last == table.execute("SELECT COALESCE(MAX(number), -1) FROM frames").fetchone()[0]
        if len(steps) == MOST_STEPS:
            status, is_whole = (*status[:2], steps[-1][0], *status[3:]), False
        files = _new_files(folder, _at_hand(folder), seen)
        if is_whole:
            files |= state | (_new_files(folder, _at_end(folder), seen) if is_over else {})
    return News(
        status,
        steps,
        frames,
        histograms,
        layouts,
        points,
        facts,
        [number for (number,) in published],
        weights,
        files,
        kept if is_whole else None,
        is_whole,
        is_over and is_whole,
        pauses,
    )


def take_news(folder: Path, news: News, facts: Mapping[str, str]) -> None:
    """Write what is new into the server's folder of a run, in an order in which no reader finds anything missing.

    Weights come before their frames, frames before the state that relies on them, and the end last of all.

    Args:
        folder: the server's; who calls holds the run's lock.
        news: from the node.
        facts: more of them, each as JSON.

    Raises:
        RunError: it cannot be written; what is written stays, and the rest is asked for again.
    """
    with in_words("the run cannot be written"):
        for number, content in news.weights.items():
            path = weights_file(folder, number)
            path.parent.mkdir(exist_ok=True)
            write_whole(path, content)
            path.chmod(0o644)
        status = news.status if news.status[0] != "finished" or news.is_over else ("running", *news.status[1:])
        last = {name: file for name, file in news.files.items() if name.startswith(STATE)}
        first = {name: file for name, file in news.files.items() if name not in last}
        _put(folder, first)
        with closing(open_writer(folder / DATABASE)) as table, _whole(table):
            _put_rows(table, news, facts)
            table.execute(STATUS_SET, status)
        _put(folder, last)
        if news.state is not None:
            for name in stamps_of(folder, _of_state(folder)).keys() - news.state:
                (folder / name).unlink(missing_ok=True)


def _put_rows(table: sqlite3.Connection, news: News, facts: Mapping[str, str]) -> None:
    rows = {"points": news.points, "steps": news.steps, "frames": news.frames}
    rows |= {"histograms": news.histograms, "layouts": news.layouts}
    known = [*news.facts, *facts.items()] if news.facts else []
    for name, found in (rows | {"facts": known}).items():
        if found:
            table.executemany(f"INSERT OR REPLACE INTO {name} VALUES ({', '.join('?' * len(found[0]))})", found)
    table.executemany("UPDATE frames SET published = 1 WHERE number = ?", [(number,) for number in news.published])


def _new_frames(table: sqlite3.Connection, folder: Path, after: int) -> tuple[list[tuple], dict[int, bytes]]:
    """Return the next frames with their weights, as many as one answer may hold, at least one."""
    frames, weights, size = [], {}, 0
    for row in table.execute("SELECT * FROM frames WHERE number > ? ORDER BY number", (after,)):
        with suppress(FileNotFoundError):
            weights[row[0]] = weights_file(folder, row[0]).read_bytes()
        frames.append(row)
        size += len(weights.get(row[0], b""))
        if size > MOST_BYTES:
            break
    return frames, weights


def _at_hand(folder: Path) -> Iterator[Path]:
    yield folder / TOKENIZER
    yield folder / LOG


def _of_state(folder: Path) -> Iterator[Path]:
    """Yield the files of the saved state; its tensors come before the file that names them."""
    yield from sorted((folder / STATE).glob("*.safetensors"))
    yield folder / STATE / PLACE


def _at_end(folder: Path) -> Iterator[Path]:
    yield folder / SCRIPT
    yield folder / RESERVE
    yield from sorted((folder / BUNDLE).rglob("*"))


def stamps_of(folder: Path, paths: Iterable[Path]) -> dict[str, Stamp]:
    """Return the stamps of those that are files, by their names in the folder."""
    found = {}
    for path in paths:
        with suppress(FileNotFoundError):
            if path.is_file():
                at = path.stat()
                found[path.relative_to(folder).as_posix()] = (at.st_size, at.st_mtime_ns)
    return found


def _new_files(folder: Path, paths: Iterable[Path], seen: Seen) -> dict[str, File]:
    """Return the files that the server lacks.

    Raises:
        FileNotFoundError: one has just been replaced.
    """
    stamps = stamps_of(folder, paths)
    return {name: ((folder / name).read_bytes(), at[1]) for name, at in stamps.items() if seen.files.get(name) != at}


def _new_state(folder: Path, seen: Seen) -> tuple[dict[str, File], set[str] | None]:
    """Return what the server lacks of the saved state, and all its names; nothing where it is just being saved."""
    try:
        return _new_files(folder, _of_state(folder), seen), set(stamps_of(folder, _of_state(folder)))
    except FileNotFoundError:
        return {}, None


def _put(folder: Path, files: Mapping[str, File]) -> None:
    for name, (content, written) in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
        os.utime(path, ns=(written, written))


@contextmanager
def _whole(table: sqlite3.Connection) -> Iterator[None]:
    """Write in one transaction."""
    table.execute("BEGIN IMMEDIATE")
    try:
        yield
        table.execute("COMMIT")
    finally:
        if table.in_transaction:
            table.execute("ROLLBACK")
