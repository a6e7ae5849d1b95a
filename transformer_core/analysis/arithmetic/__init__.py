"""Every recorded tensor computed again in float64, and every cell with its numbers put into the formula.

Read next: writing.py.
"""

from transformer_core.analysis.arithmetic.flow import Pass, pass_through, read_through
from transformer_core.analysis.arithmetic.table import (
    RULES,
    CellArithmetic,
    Recomputed,
    explain_cell,
    recompute,
    tensor_of,
)

__all__ = [
    "RULES",
    "CellArithmetic",
    "Pass",
    "Recomputed",
    "explain_cell",
    "pass_through",
    "read_through",
    "recompute",
    "tensor_of",
]
