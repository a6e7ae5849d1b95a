"""Drawing: the layouts of a run's frames, lined up with those that an earlier sitting drew.

Read next: ../../analysis/layouts.py.
"""

from collections.abc import Sequence

import numpy as np

from transformer_core.layout.sequence import LayoutSequence
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.layouter import Drawer
from transformer_core.training.runs.records import Layout
from transformer_core.training.runs.store import RunStore


def draw_layouts(store: RunStore) -> Drawer:
    """Return what lays out the frames of a run from the first that has no layouts yet; see Layouter.

    The last layouts on disk are all that the next ones depend on, so that a run taken up again gets the same.

    Raises:
        RunError: the run has no points, or cannot be read.
    """
    points = store.points()
    if points is None:
        raise RunError(f"run {store.id} has no points to lay out")
    labels, held_out = points.labels.tolist(), points.held_out.tolist()
    before = store.layouts()
    sequence = LayoutSequence({layout.method: layout.xy for layout in before if layout.frame == before[-1].frame})

    def draw(frame: int, vectors: np.ndarray) -> Sequence[Layout]:
        drawn = sequence.add(vectors, labels, held_out)
        return [Layout(frame, method, layout.xy, layout.measures) for method, layout in drawn.items()]

    return draw
