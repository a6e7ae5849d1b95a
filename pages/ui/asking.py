"""Ask the library: a result together with the Python script that makes it again, so that the two cannot drift apart."""

from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from pages.ui.models import code_that_opens
from transformer_core.analysis.arrays import arrays_of
from transformer_core.analysis.source import ROOT
from transformer_core.bundle import Bundle

T = TypeVar("T")
Question = tuple[Callable[..., Any], tuple[tuple[str, str], ...]]
MOST_KEPT = 128
SECONDS_WAITED_FOR = 5.0
FOUND = "Run it from any folder with the Python that runs Vitrine, or set VITRINE=/path/to/vitrine."
FIND = """\
import os
import sys
from pathlib import Path

starts = [os.environ.get("VITRINE", "."), sys.path[0], sys.prefix]
folders = [folder for start in starts for folder in [Path(start).resolve(), *Path(start).resolve().parents]]
vitrine = next((folder for folder in folders if (folder / "transformer_core").is_dir()), None)
if vitrine is None:
    sys.exit("Run me in the Vitrine folder or set VITRINE=/path/to/vitrine")
sys.path.insert(0, str(vitrine))"""
SHOW = """\
arrays = arrays_of(result)
for key, array in arrays.items():
    print(key, array.shape, array if array.size <= 12 else array.ravel()[:6], sep="  ")
np.savez("{name}.npz", allow_pickle=False, **arrays)"""
AWAY = """\
import pickle, sys

function, arguments = pickle.load(sys.stdin.buffer)
pickle.dump(function(**arguments), sys.stdout.buffer)"""
_kept: OrderedDict[Question, Future[Any]] = OrderedDict()
_lock = threading.Lock()
_ahead_in_turn = threading.Lock()
_last_asked: dict[Question, float] = {}  # when somebody looked for an answer that is not there yet


@dataclass(frozen=True, eq=False)
class Answer(Generic[T]):
    """A result, and the call that made it: the function and its arguments.

    Args:
        repeatable: the call alone makes the result again.
    """

    value: T
    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    repeatable: bool = True

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The result's arrays, by name."""
        return arrays_of(self.value)

    @property
    def script(self) -> str:
        """The script that makes the result again."""
        return repeating(self.function, self.arguments)

    def notebook(self, about: Sequence[str]) -> str:
        """Return the script as a notebook that begins with lines on what it is about."""
        return repeating_notebook(self.function, self.arguments, about)


def ask(function: Callable[..., T], **arguments: Any) -> Answer[T]:
    """Call a public function of transformer_core by keywords and return its result with the script that repeats it.

    Args:
        function: returns a dataclass or a mapping, and the same one whenever it is called with the same arguments.
        arguments: bundles, numbers, strings, None, and tuples of these.

    Raises:
        ValueError: as the function does; or an argument is of another kind.
    """
    _question(function, arguments)
    return Answer(function(**arguments), function, arguments)


def ask_once(
    function: Callable[..., T], hints: Mapping[str, Any] = MappingProxyType({}), /, **arguments: Any
) -> Answer[T]:
    """Ask, and remember the answer for everybody who asks the same: for what takes longer than a moment.

    Who asks while it is being computed waits for that. The least recently asked answers are forgotten.

    Args:
        hints: arguments that make the function quicker and do not change what it returns; the script has none.

    Raises:
        ValueError: as ask.
    """
    question = _question(function, arguments)
    while True:
        future, new = _claimed(question, again=True)
        if new:
            _compute(future, lambda: function(**arguments, **hints))
        try:
            return Answer(future.result(), function, arguments)
        except CancelledError:
            continue  # who computed it was stopped before the end


def ask_ahead(function: Callable[..., T], **arguments: Any) -> Answer[T] | None:
    """Ask for what takes seconds before anybody wants to see it: None while a process of its own computes it.

    So pages hardly wait for it, and random numbers are drawn as in a script. One question after the other is computed,
    and let go of where nobody has asked for a while when its turn comes; ask_once has the answers, too, and waits for
    them. Where the process fails, the answer is not there until somebody wants to see it.

    Args:
        arguments: numbers, strings, None, and tuples of these.

    Raises:
        ValueError: an argument is of another kind.
    """
    question = _question(function, arguments)
    future, new = _claimed(question, again=False)
    if future.done():
        _last_asked.pop(question, None)
        return None if future.cancelled() else Answer(future.result(), function, arguments)
    _last_asked[question] = time.monotonic()
    if new:  # a daemon, so that no server waits for it at its end
        threading.Thread(target=_in_turn, args=(question, future, function, arguments), daemon=True).start()
    return None


def _claimed(question: Question, *, again: bool) -> tuple[Future[Any], bool]:
    """Return where the answer is or will be, and whether the caller has to compute it.

    Args:
        again: compute it once more where that failed.
    """
    with _lock:
        future = _kept.get(question)
        failed = future is not None and future.done() and (future.cancelled() or future.exception() is not None)
        new = future is None or (again and failed)
        if future is None or new:
            future = _kept[question] = Future()
        _kept.move_to_end(question)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
        return future, new


def _compute(future: Future[Any], compute: Callable[[], Any]) -> None:
    """Compute an answer; a failure is raised for everybody who waits."""
    try:
        future.set_result(compute())
    except Exception as error:
        future.set_exception(error)
    except BaseException:  # somebody left the page, which ends the script
        future.cancel()
        raise


def _in_turn(
    question: Question, future: Future[Any], function: Callable[..., Any], arguments: Mapping[str, Any]
) -> None:
    """Compute an answer away from the page once it is its turn, where somebody waits for it still."""
    with _ahead_in_turn:
        if time.monotonic() - _last_asked.pop(question) <= SECONDS_WAITED_FOR:
            _compute_away(future, function, arguments)
            return
    with _lock:
        if _kept.get(question) is future:
            del _kept[question]
    future.cancel()


def _compute_away(future: Future[Any], function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    try:
        call = pickle.dumps((function, arguments))
        # Threads that wait sleep: on a busy machine those of torch would else keep each other from the processors.
        patient = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
        done = subprocess.run(
            [sys.executable, "-c", AWAY], input=call, stdout=subprocess.PIPE, cwd=ROOT, env=patient, check=True
        )
        future.set_result(pickle.loads(done.stdout))
    except Exception:
        future.cancel()


def _question(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Question:
    """Return what identifies a call; models are identified by their names."""
    return function, tuple((name, _known(name, value)) for name, value in arguments.items())


def _known(name: str, value: Any) -> str:
    if isinstance(value, Bundle):
        return f"bundle {value.name}"
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(_known(name, part) for part in value)})"
    raise ValueError(
        f"{name} is of type {type(value).__name__}; it must be a bundle, a number, a string, None or a tuple of these"
    )


def forget_answers() -> None:
    """Let go of all remembered answers, for instance of measured times."""
    with _lock:
        _kept.clear()


def repeating(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """Return the script that repeats a call from any folder, prints what came and saves it as NAME.npz.

    Raises:
        ValueError: an argument cannot be written down.
    """
    about = f'"""Compute {_title(function)} again, as Vitrine showed it.\n\n{FOUND}\n"""'
    return "\n\n".join([about, *_cells(function, arguments)]) + "\n"


def repeating_notebook(function: Callable[..., Any], arguments: Mapping[str, Any], about: Sequence[str]) -> str:
    """Return the notebook (nbformat 4) that repeats a call: the script's code in cells, and what it is about.

    Args:
        about: lines on the model, the text, and what else was asked.

    Raises:
        ValueError: an argument cannot be written down.
    """
    described = (function.__doc__ or "").strip().split("\n")[0]
    facts = "\n".join(f"    {line}" for line in about)  # indented: nothing in it is read as Markdown
    heading = f"# {_title(function).capitalize()}\n\n{described}\n\n{facts}\n\n{FOUND}"
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": heading}]
    for code in _cells(function, arguments):
        cells.append({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": code})
    for place, cell in enumerate(cells):
        cell["id"] = f"cell{place}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _title(function: Callable[..., Any]) -> str:
    return function.__name__.replace("_", " ")


def _cells(function: Callable[..., Any], arguments: Mapping[str, Any]) -> list[str]:
    """Return the code that repeats a call: find the project, compute, and show and save what came."""
    opened = {code_that_opens(value.name) for value in arguments.values() if isinstance(value, Bundle)}
    imports = sorted({line for lines, _ in opened for line in lines.split("\n")})
    imports = [
        "import numpy as np",
        "",
        *imports,
        "from transformer_core.analysis.arrays import arrays_of",
        f"from {function.__module__} import {function.__name__}",
    ]
    call = [f"    {name}={_written(name, value)}," for name, value in arguments.items()]
    return [
        FIND,
        "\n".join([*imports, "", f"result = {function.__name__}(", *call, ")"]),
        SHOW.format(name=function.__name__),
    ]


def _written(name: str, value: Any) -> str:
    if isinstance(value, Bundle):
        return code_that_opens(value.name)[1]
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, tuple):
        inner = [_written(name, part) for part in value]
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    return _known(name, value)
