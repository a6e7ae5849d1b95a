"""What several test files use: tiny models, pages run without a browser, the browser, runs made in a moment."""

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GATE_ALONE = False  # whether this run has no nightly test; the root conftest says so before the tests are read
PATIENCE = 300  # seconds; it bounds a failure alone, also where the machine does a dozen other things


def nightly_but(cases: Iterable[Any], gate: Collection[Any] | Callable[[Any], bool]) -> list[Any]:
    """Return cases for parametrize; the gate runs the chosen ones and makes no others, the nightly tier runs those.

    Args:
        gate: the chosen cases, or a function that tells whether a case is one of them.
    """
    chosen = gate if callable(gate) else gate.__contains__
    return [case if chosen(case) else _nightly(case) for case in cases if chosen(case) or not GATE_ALONE]


def _nightly(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.nightly)


def refusals(cases: Iterable[tuple[Callable[[], object], str]]) -> Callable[..., None]:
    """Return the test that each call raises a ValueError whose message has the words beside it."""

    @pytest.mark.parametrize(("call", "message"), cases)
    def is_refused(call: Callable[[], object], message: str) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            call()

    return is_refused
