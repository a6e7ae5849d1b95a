"""Every recorded tensor recomputed in float64, and the formula of every cell with its numbers filled in."""

from transformer_core.analysis.arithmetic.forward_pass import Pass, pass_through, read_through
from transformer_core.analysis.arithmetic.table import (
    RULES,
    CellArithmetic,
    Recomputed,
    explain_cell,
    recompute,
    tensor_of,
    values_of,
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
    "values_of",
]
