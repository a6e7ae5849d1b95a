"""Where a tensor is computed: the line of this package that hands it to the probe, seen while it runs."""

import ast
import sys
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType

import torch
from torch import Tensor, nn

from transformer_core.kept import PROJECT
from transformer_core.models import Translation
from transformer_core.models.recurrent import Seq2Seq
from transformer_core.probe import Probe

MOST_ABOVE = 8


@dataclass(frozen=True)
class SourceLine:
    """A line of code that hands a tensor to the probe.

    Args:
        path: from the project's root, such as ``transformer_core/layers/attention.py``.
        number: from 1.
        code: the line, after the statements just above it that compute what it hands over; without their indent.
    """

    path: str
    number: int
    code: str


def _names(tree: ast.AST, kind: type[ast.expr_context]) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, kind)}


@lru_cache(maxsize=64)
def _makers(path: str) -> dict[int, list[range]]:
    """Return for each line that taps a tensor the lines of the statements just above it that lead to it."""
    found = {}
    for block in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        body = getattr(block, "body", ())
        for place, statement in enumerate(body if isinstance(body, list) else ()):
            for call in ast.walk(statement):
                if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "tap" and len(call.args) == 2:
                    needed = _names(call.args[1], ast.Load)
                    near = [other for other in body[:place] if call.lineno - other.lineno <= MOST_ABOVE]
                    makers = [other for other in near if _names(other, ast.Store) & needed]
                    lines = [range(maker.lineno - 1, maker.end_lineno or maker.lineno) for maker in makers]
                    found[call.lineno] = lines or found.get(call.lineno, [])
    return found


@lru_cache(maxsize=512)
def _line(path: str, number: int) -> SourceLine:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    places = [place for maker in _makers(path).get(number, ()) for place in maker]
    code = textwrap.dedent("\n".join(lines[place] for place in [*places, number - 1]))
    return SourceLine(Path(path).relative_to(PROJECT).as_posix(), number, code)


class LineProbe(Probe):
    """A probe that keeps no tensor, only the line that handed it over."""

    def __init__(self) -> None:
        super().__init__(())
        self.lines: dict[str, SourceLine] = {}

    def at(self, scope: str) -> Probe:
        """Return this probe one scope deeper."""
        child = super().at(scope)
        child.__class__ = type(self)
        return child

    def wants(self, *leaves: str) -> bool:
        """Ask for every step, so that each is computed explicitly."""
        return True

    def tap(self, leaf: str, tensor: Tensor) -> Tensor:
        """Note the line that calls."""
        return self._noted(leaf, tensor, sys._getframe(1))

    def edit(self, leaf: str, tensor: Tensor) -> Tensor:
        """Note the line that hands over one step of a loop: it calls what calls this."""
        return self._noted(leaf, tensor, sys._getframe(2))

    def _noted(self, leaf: str, tensor: Tensor, frame: FrameType) -> Tensor:
        self.lines[self._scope + leaf] = _line(frame.f_code.co_filename, frame.f_lineno)
        return tensor


@torch.inference_mode()
def lines_of(model: nn.Module) -> dict[str, SourceLine]:
    """Return the line that computes each tensor that a model shows, by its full name; the model reads one token."""
    device = next(model.parameters()).device
    token = torch.zeros(1, 1, dtype=torch.int64, device=device)
    witness = LineProbe()
    model(*([token, token] if isinstance(model, Translation | Seq2Seq) else [token]), probe=witness)
    return witness.lines
