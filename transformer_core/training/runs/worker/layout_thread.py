"""A thread that lays out and publishes the frames one after another while training goes on.

Training never waits for it: vectors are read from the database, so that a long queue takes no memory.
"""

import threading
import traceback
from collections.abc import Callable, Sequence

import numpy as np

from transformer_core.layout.sequence import LayoutSequence
from transformer_core.training.runs.errors import RunError, words_of
from transformer_core.training.runs.store.database import RunWriter
from transformer_core.training.runs.store.records import Layout
from transformer_core.training.runs.store.run_store import RunStore

LayOut = Callable[[int, np.ndarray], Sequence[Layout]]
LayoutMaker = Callable[[RunStore], LayOut]


def continued_layouts(store: RunStore) -> LayOut:
    """Return a function that lays out the frames of a run from the first that has no layouts yet.

    It starts from the last layouts on disk, which are all that the next ones depend on, so that a run that was
    interrupted gets the same layouts. See LayoutThread for its arguments.

    Raises:
        RunError: the run has no points, or cannot be read.
    """
    points = store.points()
    if points is None:
        raise RunError(f"run {store.id} has no points to lay out")
    labels, held_out = points.labels.tolist(), points.held_out.tolist()
    before = store.layouts()
    sequence = LayoutSequence({layout.method: layout.xy for layout in before if layout.frame == before[-1].frame})

    def lay_out(frame: int, vectors: np.ndarray) -> Sequence[Layout]:
        made = sequence.add(vectors, labels, held_out)
        return [Layout(frame, method, layout.xy, layout.measures) for method, layout in made.items()]

    return lay_out


class LayoutThread:
    """Lay out the frames of a classifier's run in order.

    Args:
        store: the vectors are read from it.
        writer: of the run's database.
        make_layouts: called once, in the thread, before the first frame; the function that it returns is called with
            each frame's number and (point, d_model) vectors.
    """

    def __init__(self, store: RunStore, writer: RunWriter, make_layouts: LayoutMaker) -> None:
        self.message = ""
        self._store, self._writer, self._make_layouts = store, writer, make_layouts
        self._called = threading.Semaphore()
        self._closing = self._given_up = False
        self._thread = threading.Thread(target=self._work, name="layouts", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Notify the thread of a recorded frame."""
        self._called.release()

    def close(self) -> None:
        """Notify the thread that no more frames come; it ends after the last one."""
        self._closing = True
        self.wake()

    def give_up(self) -> None:
        """Leave out the frames that are not started; a later session lays them out."""
        self._given_up = True
        self.close()

    def is_done(self, patience: float) -> bool:
        """Wait for at most `patience` seconds for the thread to end, and tell whether it has."""
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _work(self) -> None:
        lay_out = None
        while True:
            self._called.acquire()
            closing = self._closing
            try:
                for number in self._writer.unpublished():
                    if self._given_up:
                        return
                    if lay_out is None and not self.message:
                        lay_out = self._made()
                    self._writer.publish(number, self._layouts(lay_out, number))
            except RunError as error:
                self.message = str(error)
                return
            if closing:
                return

    def _made(self) -> LayOut | None:
        try:
            return self._make_layouts(self._store)
        except Exception as error:
            self._complain(error)
            return None

    def _layouts(self, lay_out: LayOut | None, number: int) -> Sequence[Layout]:
        """Return a frame's layouts, none where they fail, so that the frame is published without them."""
        if lay_out is None:
            return ()
        try:
            return lay_out(number, self._store.embeddings(number))
        except Exception as error:
            self._complain(error)
            return ()

    def _complain(self, error: Exception) -> None:
        traceback.print_exception(error)
        self.message = f"a picture of the points could not be computed: {words_of(error)}"
