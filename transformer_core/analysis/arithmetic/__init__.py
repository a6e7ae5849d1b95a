"""Every recorded tensor recomputed in float64; the formula of every cell, and of its gradient, with their numbers."""

from transformer_core.analysis.arithmetic.chain_rule import (
    GradientArithmetic,
    HandedBack,
    differentiable,
    explain_gradient,
)
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
    "GradientArithmetic",
    "HandedBack",
    "Pass",
    "Recomputed",
    "differentiable",
    "explain_cell",
    "explain_gradient",
    "pass_through",
    "read_through",
    "recompute",
    "tensor_of",
    "values_of",
]
