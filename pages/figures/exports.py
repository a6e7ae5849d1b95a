"""Figures as files: CSV, .npz and a script that recomputes them.

Read next: architecture.py.
"""

import csv
import io
from collections.abc import Mapping, Sequence

import numpy as np


def to_csv(values: np.ndarray, rows: Sequence[str], cols: Sequence[str]) -> str:
    """Write a matrix with its labels; numbers are written so that they read back exactly.

    Cells that a spreadsheet would take for a formula get a leading apostrophe.

    Shapes:
        values: (row, col)
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["", *map(_inert, cols)])
    for label, row in zip(rows, values, strict=True):
        writer.writerow([_inert(label), *(repr(float(value)) for value in row)])
    return buffer.getvalue()


def _inert(label: str) -> str:
    return f"'{label}" if label[:1] in "=+-@\t\r" and label[:1] else label


def to_npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Write named arrays, compressed, in NumPy's own format without pickles."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def attention_script(*, imports: str, bundle: str, text: str, layer: int, head: int, step: str, n_tokens: int) -> str:
    """Write the Python script that recomputes one step of one head with transformer_core alone.

    Run in the project's folder it prints the tokens and the matrix, and saves the matrix as STEP.npy.

    Args:
        imports, bundle: lines that import what opens the model, and the expression that does.
    """
    return f'''"""Recompute the attention of one head, as Vitrine showed it."""

import numpy as np

{imports}
from transformer_core.analysis.heads import head_steps
from transformer_core.analysis.reading import read

bundle = {bundle}
encoding = bundle.tokenizer.encode({text!r}, max_len={n_tokens})
reading = read(bundle, encoding, sites=("encoder.layer{layer}.self_attention.*",))
steps = head_steps(reading.trace, "encoder.layer{layer}.self_attention", {head})
print(" ".join(encoding.labels))
print(dict(zip(bundle.labels, reading.probabilities)))
print(steps.{step})
np.save("{step}.npy", steps.{step})
'''
