"""The layouter: a thread that lays out frames one after another while training goes on, and publishes them.

Training never waits for it: vectors lie in the database, so that a long queue costs no memory. Read next: sitting.py.
"""

import threading
import traceback
from collections.abc import Callable, Sequence

import numpy as np

from transformer_core.training.runs.errors import RunError, words_of
from transformer_core.training.runs.records import Layout
from transformer_core.training.runs.store import RunStore
from transformer_core.training.runs.writer import RunWriter

Drawer = Callable[[int, np.ndarray], Sequence[Layout]]
DrawerMaker = Callable[[RunStore], Drawer]


class Layouter:
    """Lay out the frames of a classifier's run in their order.

    Args:
        store: where the vectors are read.
        writer: where layouts go.
        make_drawer: called once, in the thread, before the first frame; what it returns is called with each frame's
            number and (point, d_model) vectors.
    """

    def __init__(self, store: RunStore, writer: RunWriter, make_drawer: DrawerMaker) -> None:
        self.message = ""
        self._store, self._writer, self._make_drawer = store, writer, make_drawer
        self._called = threading.Semaphore()
        self._closing = self._given_up = False
        self._thread = threading.Thread(target=self._work, name="layouts", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Tell that a frame has been recorded."""
        self._called.release()

    def close(self) -> None:
        """Tell that no frame comes any more; the thread ends after the last one."""
        self._closing = True
        self.wake()

    def give_up(self) -> None:
        """Leave out the frames that are not begun; a later sitting lays them out."""
        self._given_up = True
        self.close()

    def is_done(self, patience: float) -> bool:
        """Wait for at most `patience` seconds for the thread to end, and tell whether it has."""
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _work(self) -> None:
        drawer = None
        while True:
            self._called.acquire()
            closing = self._closing
            try:
                for number in self._writer.unpublished():
                    if self._given_up:
                        return
                    if drawer is None and not self.message:
                        drawer = self._drawer()
                    self._writer.publish(number, self._drawn(drawer, number))
            except RunError as error:
                self.message = str(error)
                return
            if closing:
                return

    def _drawer(self) -> Drawer | None:
        try:
            return self._make_drawer(self._store)
        except Exception as error:
            self._complain(error)
            return None

    def _drawn(self, drawer: Drawer | None, number: int) -> Sequence[Layout]:
        """Return a frame's layouts; one that fails has none, so that its curves and heads are still published."""
        if drawer is None:
            return ()
        try:
            return drawer(number, self._store.embeddings(number))
        except Exception as error:
            self._complain(error)
            return ()

    def _complain(self, error: Exception) -> None:
        traceback.print_exception(error)
        self.message = f"a picture of the points could not be computed: {words_of(error)}"
