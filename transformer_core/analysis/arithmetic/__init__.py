"""Every recorded tensor recomputed in float64; the formula of every cell, and of its gradient, with their numbers."""

from transformer_core.analysis.arithmetic.chain_rule import (
    Differentiated,
    GradientArithmetic,
    HandedBack,
    differentiable,
    differentiated,
    explain_gradient,
    gradient_of,
)
from transformer_core.analysis.arithmetic.computation import number
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
    "Differentiated",
    "GradientArithmetic",
    "HandedBack",
    "Pass",
    "Recomputed",
    "differentiable",
    "differentiated",
    "explain_cell",
    "explain_gradient",
    "gradient_of",
    "number",
    "pass_through",
    "read_through",
    "recompute",
    "tensor_of",
    "values_of",
]
