"""Rooms: a lecture whose audience answers by phone; kept in SQLite, so that a server that starts again goes on.

Several processes of a machine share them: each notes how many phones listen to it. That a process is still there is
told by its lock alone, which the operating system releases when the process ends.

Nothing tells who answered: of a phone's key only a hash that is another one in every room is kept.
"""

import hashlib
import hmac
import json
import secrets
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from filelock import FileLock

from pages.hall.each.frame import STAGES
from pages.hall.lectures import Lecture, LectureError, Question, read_lecture
from pages.kit.exports import rows_csv
from transformer_core.training.runs.store.folder import hold, is_held, new_id

LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so that no code is a word
CODE_LENGTH = 4
MOST_ROOMS_OF_A_PERSON, MOST_PHONES, LONGEST_TEXT = 2, 1_000, 280
SECONDS_UNUSED = 24 * 3_600.0
GIVEN = "(SELECT value FROM json_each(?))"
TABLES = """
CREATE TABLE IF NOT EXISTS room (
    code TEXT PRIMARY KEY, secret TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, lecture TEXT NOT NULL,
    language TEXT NOT NULL, scene INTEGER NOT NULL, picked INTEGER, used REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS stage (
    code TEXT NOT NULL REFERENCES room ON DELETE CASCADE, scene INTEGER NOT NULL, stage TEXT NOT NULL,
    finding TEXT, PRIMARY KEY (code, scene)
) STRICT;
CREATE TABLE IF NOT EXISTS listening (
    process TEXT NOT NULL, code TEXT NOT NULL REFERENCES room ON DELETE CASCADE, phones INTEGER NOT NULL,
    PRIMARY KEY (process, code)
) STRICT;
CREATE TABLE IF NOT EXISTS answer (
    id INTEGER PRIMARY KEY, code TEXT NOT NULL REFERENCES room ON DELETE CASCADE, scene INTEGER NOT NULL,
    phone TEXT NOT NULL, said TEXT NOT NULL, at REAL NOT NULL, UNIQUE (code, scene, phone)
) STRICT;
CREATE TABLE IF NOT EXISTS seat (code TEXT NOT NULL REFERENCES room ON DELETE CASCADE, phone TEXT NOT NULL,
    seat INTEGER NOT NULL, PRIMARY KEY (code, phone)) STRICT;
CREATE TABLE IF NOT EXISTS part (
    code TEXT NOT NULL REFERENCES room ON DELETE CASCADE, scene INTEGER NOT NULL, seat INTEGER NOT NULL,
    round INTEGER NOT NULL, said TEXT NOT NULL, PRIMARY KEY (code, scene, seat, round)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS slider (code TEXT NOT NULL REFERENCES room ON DELETE CASCADE, scene INTEGER NOT NULL,
    value REAL NOT NULL, PRIMARY KEY (code, scene)) STRICT;
"""


class RoomError(ValueError):
    """What was asked of a room cannot be; the message is a key of the words that say why."""


@dataclass(frozen=True)
class RoomState:
    """What is known of a room.

    Args:
        code: four letters.
        lecture, language: what is read, and in which language.
        scene: where the lecturer is, from 1.
        stages: of the questions that went beyond "asked", by scene.
        findings: what was measured, by scene: the option and how it is said, as nodes.
        counts: answers to this scene's question, by option.
        texts: answers in words, by their numbers, the newest first.
        picked: the number of the answer that is shown to all.
        owner: of the room, as of pages/serving/owners.py.
        parts: of a scene that gives every phone a part: seat, round and what was given, each seat's first round first.
        slider: where the lecturer's stands; None where nobody moved it.
    """

    code: str
    lecture: Lecture
    language: str
    scene: int
    stages: Mapping[int, str]
    findings: Mapping[int, Any]
    counts: Mapping[str, int]
    texts: Mapping[int, str]
    picked: int | None
    owner: str = ""
    parts: tuple[tuple[int, int, Any], ...] = ()
    slider: float | None = None

    @property
    def stage(self) -> str:
        """How far this scene's question is."""
        return self.stages.get(self.scene, STAGES[0])


@dataclass(frozen=True)
class _Room:
    """A room without its answers."""

    lecture: Lecture
    language: str
    scene: int
    picked: int | None
    stages: list[tuple[Any, ...]]
    owner: str

    @property
    def question(self) -> Question | None:
        return self.lecture.scenes[self.scene - 1].question

    @property
    def stage(self) -> str:
        return next((stage for scene, stage, _ in self.stages if scene == self.scene), STAGES[0])


@lru_cache(maxsize=64)
def _read(name: str, written: str) -> Lecture:
    return read_lecture(name, written)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


class Rooms:
    """All rooms of a server. Its methods read and write a file, so they are called in a thread."""

    def __init__(self, path: Path, *, most: int) -> None:
        """Open the file, or make it.

        Args:
            path: of the file.
            most: rooms at once.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.chmod(0o600)  # SQLite's files beside it have its rights
        self._path, self._most = path, most
        self._process, self._noted = new_id(), dict[str, int]()
        self._there: FileLock | None = None  # the process's own, once it has noted anything
        self._lock = threading.Lock()
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        for line in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "busy_timeout = 5000"):
            self._file.execute(f"PRAGMA {line}")
        self._file.executescript(TABLES)
        self._forget_the_ended()

    def _forget_the_ended(self) -> None:
        """Delete what processes noted that have ended, and their locks."""
        with self._change() as file:
            for (process,) in file.execute("SELECT DISTINCT process FROM listening").fetchall():
                if not is_held(self._lock_of(process)):
                    file.execute("DELETE FROM listening WHERE process = ?", (process,))
                    self._lock_of(process).unlink(missing_ok=True)

    def _lock_of(self, process: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{process}.lock")

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield self._file
            except BaseException:
                self._file.execute("ROLLBACK")
                raise
            self._file.execute("COMMIT")

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._file.execute(query, values).fetchall()

    def goes_for_another(self, owner: str) -> tuple[str, int] | None:
        """Return which of a person's rooms goes for another one, and how many answers go with it; None where none does.

        It is the one that was used least recently.
        """
        found = self._rows(
            "SELECT code, (SELECT COUNT(*) FROM answer WHERE answer.code = room.code) "
            "+ (SELECT COUNT(DISTINCT seat) FROM part WHERE part.code = room.code) FROM room "
            "WHERE owner = ? AND used >= ? ORDER BY used DESC, rowid DESC",
            owner,
            time.time() - SECONDS_UNUSED,
        )
        return found[-1] if len(found) >= MOST_ROOMS_OF_A_PERSON else None

    def open(self, owner: str, lecture: Lecture, language: str, scene: int) -> tuple[str, str]:
        """Open a room and return its code and the lecturer's secret.

        Rooms that nobody used for a day go; so does a person's own that was used least recently, for a third one, and
        where the server has as many as there may be, the one that was used least recently of those without phones.

        Raises:
            RoomError: the server has as many rooms as there may be, and phones in all of them.
        """
        secret, phones = secrets.token_urlsafe(24), self._phones()
        with self._change() as file:
            file.execute("DELETE FROM room WHERE used < ?", (time.time() - SECONDS_UNUSED,))
            own = file.execute(
                "SELECT code FROM room WHERE owner = ? ORDER BY used DESC, rowid DESC", (owner,)
            ).fetchall()
            file.executemany("DELETE FROM room WHERE code = ?", own[MOST_ROOMS_OF_A_PERSON - 1 :])
            known = [code for (code,) in file.execute("SELECT code FROM room ORDER BY used, rowid")]
            if len(known) >= self._most:
                gone = next((code for code in known if not phones[code]), None)
                if gone is None:
                    raise RoomError("room.full")
                file.execute("DELETE FROM room WHERE code = ?", (gone,))
            code = next(code for code in iter(_new_code, None) if code not in known)
            file.execute(
                "INSERT INTO room VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?)",
                (code, _hash(secret), owner, lecture.name, lecture.written(), language, scene, time.time()),
            )
        return code, secret

    def all(self) -> list[tuple[str, str, str, float, int]]:
        """Return every room's code, owner, lecture's name, when it was used last, and how many answers it has."""
        return self._rows(
            "SELECT code, owner, name, used, (SELECT COUNT(*) FROM answer WHERE answer.code = room.code) FROM room "
            "ORDER BY used DESC"
        )

    def has(self, code: str) -> bool:
        """Tell whether there is a room."""
        return bool(self._rows("SELECT 1 FROM room WHERE code = ?", code))

    def is_lecturer(self, code: str, secret: str) -> bool:
        """Tell whether a secret is that of a room's lecturer."""
        found = self._rows("SELECT secret FROM room WHERE code = ?", code)
        return bool(found) and hmac.compare_digest(found[0][0], _hash(secret))

    def note_phones(self, code: str, phones: int) -> int:
        """Note how many phones listen to this process in a room; return how many do in all processes."""
        if self._noted.get(code, 0) != phones:
            self._there = self._there or hold(self._lock_of(self._process))
            with self._change() as file:
                row = (self._process, phones, code)
                file.execute("INSERT OR REPLACE INTO listening SELECT ?, code, ? FROM room WHERE code = ?", row)
            self._noted[code] = phones
        return self._phones()[code]

    def _phones(self) -> Counter[str]:
        """Return how many phones listen to the processes that are there, by the room's code."""
        found = Counter[str]()
        for process, code, phones in self._rows("SELECT process, code, phones FROM listening WHERE phones"):
            found[code] += phones if is_held(self._lock_of(process)) else 0
        return found

    def changed_elsewhere(self) -> int:
        """Return a number that is another one once another process has changed a room."""
        return self._rows("PRAGMA data_version")[0][0]

    def _room(self, code: str) -> _Room | None:
        found = self._rows("SELECT name, lecture, language, scene, picked, owner FROM room WHERE code = ?", code)
        if not found:
            return None
        name, written, language, scene, picked, owner = found[0]
        try:
            lecture = _read(name, written)
        except LectureError:  # more is asked of a lecture now than when it was kept
            return None
        stages = self._rows("SELECT scene, stage, finding FROM stage WHERE code = ?", code)
        return _Room(lecture, language, scene, picked, stages, owner)

    def state(self, code: str, at: int | None = None, *, parts: bool = True) -> RoomState | None:
        """Return what is known of a room, None where there is none.

        Args:
            at: a scene; by default the one where the lecturer is.
            parts: with what all phones gave.
        """
        room = self._room(code)
        if room is None:
            return None
        room = room if at is None else replace(room, scene=at)
        answers = self._rows(
            "SELECT id, said FROM answer WHERE code = ? AND scene = ? ORDER BY id DESC", code, room.scene
        )
        options = room.question.options if room.question is not None else {}
        counted = Counter(said for _, said in answers)
        return RoomState(
            code,
            room.lecture,
            room.language,
            room.scene,
            {number: stage for number, stage, _ in room.stages},
            {number: json.loads(finding) for number, _, finding in room.stages if finding},
            {option: counted[option] for option in options},
            {} if options else dict(answers),
            room.picked,
            room.owner,
            *self._parts(code, room, parts),
        )

    def _parts(self, code: str, room: _Room, given: bool) -> tuple[tuple[tuple[int, int, Any], ...], float | None]:
        if room.lecture.scenes[room.scene - 1].each is None:
            return (), None
        query = "SELECT seat, round, said FROM part WHERE code = ? AND scene = ? ORDER BY seat, round"
        rows = self._rows(query, code, room.scene) if given else []
        said = json.loads(f"[{','.join(one for _, _, one in rows)}]")  # once, for there may be thousands
        slider = self._rows("SELECT value FROM slider WHERE code = ? AND scene = ?", code, room.scene)
        parts = tuple((seat, number, one) for (seat, number, _), one in zip(rows, said, strict=True))
        return parts, slider[0][0] if slider else None

    def seats(self, code: str, owners: Collection[str]) -> dict[str, int]:
        """Return the seats of phones in a room, by owner: numbers from 0, kept for as long as the room is open."""
        phones = {_hash(code, owner): owner for owner in owners}
        query = f"SELECT phone, seat FROM seat WHERE code = ? AND phone IN {GIVEN}"
        asked = (query, code, json.dumps(list(phones)))
        found = dict(self._rows(*asked))
        if new := [(code, phone, code) for phone in phones if phone not in found]:
            with self._change() as file:
                file.executemany("INSERT OR IGNORE INTO seat SELECT ?, ?, COUNT(*) FROM seat WHERE code = ?", new)
            found = dict(self._rows(*asked))
        return {owner: found[phone] for phone, owner in phones.items()}

    def parts_of(self, code: str, scene: int, seats: Collection[int]) -> dict[int, list[Any]]:
        """Return what phones gave in a scene, by seat, one a round."""
        query = f"SELECT seat, said FROM part WHERE code = ? AND scene = ? AND seat IN {GIVEN} ORDER BY seat, round"
        found: dict[int, list[Any]] = {seat: [] for seat in seats}
        for seat, said in self._rows(query, code, scene, json.dumps(list(seats))):
            found[seat].append(json.loads(said))
        return found

    def give(self, code: str, scene: int, parts: Iterable[tuple[int, int, Any]]) -> None:
        """Keep what phones gave, in one transaction, unless they gave something in that round before.

        Args:
            parts: seat, round and what was given.

        Raises:
            RoomError: the scene is another one, or its answers are shown.
        """
        room = self._room(code)
        if room is None or scene != room.scene or room.stage != STAGES[0]:
            raise RoomError("room.late")
        rows = [(code, scene, seat, number, json.dumps(said)) for seat, number, said in parts]
        with self._change() as file:
            file.executemany("INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?, ?)", rows)

    def slide(self, code: str, scene: int, value: float) -> None:
        """Move the lecturer's slider."""
        with self._change() as file:
            file.execute("INSERT OR REPLACE INTO slider VALUES (?, ?, ?)", (code, scene, value))

    def step(self, code: str, scene: int, stage: str, finding: Any = None) -> None:
        """Go to a scene and a stage of its question.

        Raises:
            RoomError: the lecture has no such scene, or a question no such stage.
        """
        room = self._room(code)
        if room is None or not 1 <= scene <= len(room.lecture.scenes) or stage not in STAGES:
            raise RoomError("room.bad")
        with self._change() as file:
            picked = None if scene != room.scene else room.picked
            file.execute(
                "UPDATE room SET scene = ?, picked = ?, used = ? WHERE code = ?", (scene, picked, time.time(), code)
            )
            file.execute(
                "INSERT INTO stage VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET stage = excluded.stage, finding = COALESCE(excluded.finding, finding)",
                (code, scene, stage, None if finding is None else json.dumps(finding)),
            )

    def answer(self, code: str, owner: str, scene: int, said: str) -> None:
        """Keep a phone's answer, in place of the one that it gave before.

        Args:
            owner: of the phone, as of pages/serving/owners.py.
            scene: that was asked about.
            said: an option, or a text where the question wants a sentence.

        Raises:
            RoomError: the question is closed, is another one, or has no such answer.
        """
        room = self._room(code)
        question = room and room.question
        if room is None or question is None or scene != room.scene or room.stage != STAGES[0]:
            raise RoomError("room.late")
        if question.options:
            if said not in question.options:
                raise RoomError("room.bad")
        elif not 1 <= len(said.strip()) <= LONGEST_TEXT or not said.isprintable():
            raise RoomError("room.long")
        with self._change() as file:
            file.execute(
                "INSERT INTO answer (code, scene, phone, said, at) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET said = excluded.said, at = excluded.at",
                (code, scene, _hash(code, owner), said, time.time()),
            )

    def pick(self, code: str, answer: int | None) -> None:
        """Show one answer in words to all, or none."""
        with self._change() as file:
            known = file.execute("SELECT 1 FROM answer WHERE code = ? AND id = ?", (code, answer)).fetchone()
            file.execute("UPDATE room SET picked = ? WHERE code = ?", (answer if known else None, code))

    def close(self, code: str) -> None:
        """Delete a room with its answers."""
        with self._change() as file:
            file.execute("DELETE FROM room WHERE code = ?", (code,))

    def to_csv(self, code: str, parts: Mapping[int, Iterable[Mapping[str, Any]]] = MappingProxyType({})) -> str:
        """Return all answers as a table: scene, its title, what was said, in the words shown, and how often.

        Args:
            parts: rows of scenes that give every phone a part, by scene.
        """
        state, rows = self.state(code), list[dict[str, Any]]()
        if state is None:
            return ""
        for number, counts in self.counted(code).items():
            scene, found = state.lecture.scenes[number - 1], (state.findings.get(number) or {}).get("option") or ""
            shown = scene.question.options if scene.question else {}
            rows += [
                {"scene": number, "title": scene.title, "answer": shown.get(said, said), "count": count}
                | {"measured": shown.get(found, found)}
                for said, count in sorted(counts.items())
            ]
        for number, of_scene in parts.items():
            title = state.lecture.scenes[number - 1].title
            rows += [{"scene": number, "title": title, **row} for row in of_scene]
        return rows_csv(sorted(rows, key=lambda row: row["scene"]))

    def counted(self, code: str) -> dict[int, dict[str, int]]:
        """Return how often each answer was given, by scene."""
        found: dict[int, dict[str, int]] = {}
        query = "SELECT scene, said, COUNT(*) FROM answer WHERE code = ? GROUP BY scene, said"
        for scene, said, count in self._rows(query, code):
            found.setdefault(scene, {})[said] = count
        return found


def _new_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(CODE_LENGTH))
