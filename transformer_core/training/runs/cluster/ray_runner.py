"""RayRunner: the Runner of a Ray cluster, which queues and places runs; this server only asks, and takes over.

What waits, and what a run was asked, is in the queue's table as for the processes of this machine; a bridge process
talks to the cluster.
"""

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from transformer_core.training.runs.asking import ask_run, start_run
from transformer_core.training.runs.cluster.placed import placed
from transformer_core.training.runs.errors import RunError, in_words, without_paths
from transformer_core.training.runs.launcher import folder_with, is_free_within
from transformer_core.training.runs.queue import Queue
from transformer_core.training.runs.store.folder import LOCK, TAKER, Data, is_held
from transformer_core.training.runs.store.records import Estimate, Presence, Request
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import RunSpec
from transformer_core.warm_process import ProcessDiedError, WarmProcess

COMMAND = (sys.executable, "-P", "-m", "transformer_core.training.runs.cluster.bridge")
SECONDS_BETWEEN_LOOKS = 1.0
PATIENCE_WITH_LOOK, PATIENCE_WITH_ESTIMATE, PATIENCE_WITH_STOP = 60.0, 160.0, 5.0


class BridgeProcess(WarmProcess[dict[str, Any]]):
    """The bridge process as its server sees it; any number of threads may ask it at once.

    Args:
        command: that starts it.

    Raises:
        RunError: it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._ids, self._turn = itertools.count(1), threading.Lock()
        self._asked: dict[int, SimpleQueue[dict[str, Any]]] = {}
        with in_words("the bridge to the cluster cannot be started"):
            super().__init__(command, lambda pipe: json.loads(pipe.readline()), environment={}, keeps_errors=True)
        threading.Thread(target=self._hand_out, name="bridge", daemon=True).start()

    def request(self, patience: float, **request: str | None) -> dict[str, Any]:
        """Return what the bridge answers.

        Raises:
            RunError: that is its answer, it has died, or it says nothing for so many seconds.
        """
        number, answers = next(self._ids), SimpleQueue[dict[str, Any]]()
        with self._turn:
            self._asked[number] = answers
        try:
            self.send(json.dumps({"id": number, **request}).encode() + b"\n")
            answer = answers.get(timeout=patience)
        except ProcessDiedError:
            answer = self._last_answer()
        except Empty:
            answer = {"error": f"the Ray cluster does not answer within {patience:g} s"}
        finally:
            with self._turn:
                self._asked.pop(number, None)
        if "error" in answer:
            raise RunError(answer["error"])
        return answer

    def _last_answer(self) -> dict[str, str]:
        words = without_paths(self.last_words())[:400]
        return {"error": f"the bridge to the Ray cluster has ended{words and f': {words}'}"}

    def _hand_out(self) -> None:
        with suppress(ProcessDiedError):
            while True:
                answer = self.answer()
                with self._turn:
                    if (answers := self._asked.get(answer["id"])) is not None:
                        answers.put(answer)
        with self._turn:
            for answers in self._asked.values():
                answers.put(self._last_answer())


class RayRunner:
    """Have runs computed on the Ray cluster at RAY_ADDRESS; any number of threads and servers may do so at once.

    Args:
        command: that starts the bridge process.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = tuple(command)
        self._bridge: BridgeProcess | None = None
        self._turn, self._closed = threading.Lock(), threading.Event()
        self._roots: set[Path] = set()
        self._watching: threading.Thread | None = None
        self._trouble: RunError | None = None  # of the last look

    def warm(self) -> None:
        """Start the bridge; return at once, while it imports what it needs.

        Raises:
            RunError: the process cannot be started.
        """
        self._opened()

    def require_room(self, root: Path) -> None:
        """Raise RunError where too many runs wait for another to join, or the last look could not use the cluster."""
        Queue(root).require_room()
        if (trouble := self._trouble) is not None:
            raise RunError(str(trouble))

    def start(self, store: RunStore) -> None:
        """Ask for a place on the cluster; see Runner."""
        start_run(store, self._enter)

    def ask(self, store: RunStore, request: Request) -> None:
        """Ask for a run to pause, to resume or to stop; see Runner."""
        self._reach(store.folder)
        ask_run(store, request, self._enter)

    def end(self, folder: Path) -> None:
        """Take a run out of the queue, ask for its stop, and have it killed if it has not after some seconds.

        Raises:
            RunError: it cannot be killed.
        """
        queue = Queue(folder.parent)
        queue.leave(folder.name)
        if placed(folder) is None and not is_held(folder / TAKER):
            return
        self._reach(folder)
        with suppress(RunError):
            queue.ask(folder.name, "stop")
        if is_free_within(PATIENCE_WITH_STOP, folder / TAKER):
            return
        self._request(PATIENCE_WITH_LOOK, do="kill", folder=str(folder.absolute()))
        if not is_free_within(PATIENCE_WITH_STOP, folder / TAKER):
            raise RunError(f"what computes run {folder.name} cannot be stopped")

    def is_alive(self, folder: Path) -> bool:
        """Tell whether a run computes, starts, waits or pauses."""
        return bool(self.live([folder]))

    def live(self, folders: Iterable[Path]) -> set[Path]:
        """Return those of some runs' folders whose run is alive."""
        folders = list(folders)
        found = Queue(folders[0].parent).live(folders) if folders else set()
        return found | {folder for folder in folders if _computes(folder)}

    def presence(self, folder: Path) -> Presence:
        """Return how far a run is from computing; on the cluster it does whether or not a server takes it over now."""
        found, note = Queue(folder.parent).presence(folder.name), placed(folder)
        if note is None:
            return found
        return replace(found, alive=found.alive or note.begun, shortage=note.shortage)

    def look(self, root: Path) -> dict[str, RunError]:
        """Go on with what waits and with what the cluster computes, from now on every second; return at once.

        Returns:
            Nothing: a run that cannot be computed leaves the queue, with the reason in its log.
        """
        with self._turn:
            self._roots.add(root)
            if self._watching is None and not self._closed.is_set():
                self._watching = threading.Thread(target=self._watch, name="cluster", daemon=True)
                self._watching.start()
        return {}

    def estimate(self, spec: RunSpec, data: Data | None = None) -> Estimate:
        """Measure on the cluster how long a run would take; see Runner.

        Raises:
            RunError: the run cannot be made, or the cluster has no room for it now.
        """
        with folder_with(spec, data) as folder:
            given = {"spec": spec.to_json(), "folder": folder and str(folder)}
            return Estimate(**self._request(PATIENCE_WITH_ESTIMATE, do="estimate", **given)["estimate"])

    def close(self) -> None:
        """End the bridge; runs go on, and the next server takes them over."""
        self._closed.set()
        with self._turn:
            bridge, self._bridge = self._bridge, None
        if bridge is not None:
            bridge.end()

    def _opened(self) -> BridgeProcess:
        with self._turn:
            if self._closed.is_set():
                raise RunError("the server is closing")
            if self._bridge is None or not self._bridge.is_alive:
                self._bridge = BridgeProcess(self._command)
            return self._bridge

    def _request(self, patience: float, **request: str | None) -> dict[str, Any]:
        return self._opened().request(patience, **request)

    def _reach(self, folder: Path) -> None:
        """See to it that a run on the cluster is taken over here, so that it hears what it is asked.

        Raises:
            RunError: the cluster cannot be used.
        """
        self._look_now(folder.parent)
        until = time.monotonic() + PATIENCE_WITH_STOP
        while _computes(folder) and not is_held(folder / LOCK):
            if time.monotonic() > until:
                raise RunError(f"run {folder.name} cannot be reached; try again later")
            time.sleep(0.02)

    def _enter(self, store: RunStore, require: Callable[[], None]) -> None:
        root = store.folder.parent
        self._look_now(root)
        Queue(root).join(store.id, require)
        self._look_now(root)

    def _look_now(self, root: Path) -> None:
        """Look at a folder of runs, now and from now on.

        Raises:
            RunError: the cluster cannot be used.
        """
        self.look(root)
        self._request(PATIENCE_WITH_LOOK, do="look", root=str(root.absolute()))

    def _watch(self) -> None:
        looks_on = True
        while looks_on:
            trouble = None
            for root in list(self._roots):
                try:
                    self._request(PATIENCE_WITH_LOOK, do="look", root=str(root.absolute()))
                except RunError as error:
                    trouble = error
            self._trouble = trouble
            looks_on = not self._closed.wait(SECONDS_BETWEEN_LOOKS)


def _computes(folder: Path) -> bool:
    note = placed(folder)
    return note is not None and note.begun
