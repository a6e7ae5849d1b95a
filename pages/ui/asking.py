"""Ask the library: a result together with the Python script that makes it again, so that the two cannot drift apart.

Read next: exports.py.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from pages.ui.models import code_that_opens
from transformer_core.analysis.arrays import arrays_of
from transformer_core.checkpoints import Bundle

T = TypeVar("T")
MOST_KEPT = 128
_kept: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Answer(Generic[T]):
    """A result, the name of the function that made it, and the script that makes it again."""

    value: T
    name: str
    script: str

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The result's arrays, by name."""
        return arrays_of(self.value)


def ask(function: Callable[..., T], **arguments: Any) -> Answer[T]:
    """Call a public function of transformer_core by keywords and return its result with the script that repeats it.

    Args:
        function: returns a dataclass or a mapping, and the same one whenever it is called with the same arguments.
        arguments: bundles, numbers, strings, None, and tuples of these.

    Raises:
        ValueError: as the function does; or an argument is of another kind.
    """
    script = repeating(function, arguments)
    return Answer(function(**arguments), function.__name__, script)


def ask_once(
    function: Callable[..., T], hints: Mapping[str, Any] = MappingProxyType({}), /, **arguments: Any
) -> Answer[T]:
    """Ask, and remember the answer for everybody who asks the same: for what takes longer than a moment.

    The least recently asked answers are forgotten.

    Args:
        hints: arguments that make the function quicker and do not change what it returns; the script has none.

    Raises:
        ValueError: as ask.
    """
    script = repeating(function, arguments)
    with _lock:
        if script in _kept:
            _kept.move_to_end(script)
            return Answer(_kept[script], function.__name__, script)
    value = function(**arguments, **hints)
    with _lock:
        _kept[script] = value
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return Answer(value, function.__name__, script)


def forget_answers() -> None:
    """Let go of all remembered answers, for instance of measured times."""
    with _lock:
        _kept.clear()


def repeating(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Return the script that repeats a call in the project's folder, prints what came and saves it as NAME.npz.

    Raises:
        ValueError: an argument cannot be written down.
    """
    name = function.__name__
    opened = {code_that_opens(value.name) for value in arguments.values() if isinstance(value, Bundle)}
    imports = [
        "import numpy as np",
        "",
        *sorted({line for lines, _ in opened for line in lines.split("\n")}),
        "from transformer_core.analysis.arrays import arrays_of",
        f"from {function.__module__} import {name}",
    ]
    written = [f"    {key}={_written(key, value)}," for key, value in arguments.items()]
    return "\n".join(
        [
            f'"""Compute {name.replace("_", " ")} again, as Vitrine showed it.',
            "",
            "Run it in the project's folder: PYTHONPATH=. python FILE",
            '"""',
            "",
            *imports,
            "",
            f"result = {name}(",
            *written,
            ")",
            "arrays = arrays_of(result)",
            "for key, array in arrays.items():",
            "    print(key, array.shape, array if array.size <= 12 else array.ravel()[:6], sep='  ')",
            f'np.savez("{name}.npz", allow_pickle=False, **arrays)',
            "",
        ]
    )


def _written(name: str, value: Any) -> str:
    if isinstance(value, Bundle):
        return code_that_opens(value.name)[1]
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    if isinstance(value, tuple):
        inner = [_written(name, part) for part in value]
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    raise ValueError(
        f"{name} is of type {type(value).__name__}; it must be a bundle, a number, a string, None or a tuple of these"
    )
