"""Ask the library: a result together with the Python script that makes it again, so that the two cannot drift apart."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np
from cachetools import LRUCache

from pages.kit.heavy import InParts, Job, Part, Work, pool
from pages.kit.models import code_that_opens, place_of
from transformer_core.analysis.arrays import arrays_of
from transformer_core.bundle import Bundle
from transformer_core.heavy_process import with_models
from transformer_core.prompt import Prompt

T = TypeVar("T")
Question = tuple[Callable[..., Any], tuple[tuple[str, str], ...]]
MOST_KEPT = 128
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
_kept: LRUCache[Question, Future[Any]] = LRUCache(MOST_KEPT)
_lock = threading.Lock()
_here = False  # this process computes itself what takes long


@dataclass(frozen=True, eq=False)
class Answer(Generic[T]):
    """A result, and the call that made it: the function and its arguments.

    Args:
        repeatable: the call alone makes the result again.
        old: another one is being computed, and this one stays on the page meanwhile.
    """

    value: T
    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    repeatable: bool = True
    old: bool = False

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
        arguments: prompts, bundles, numbers, strings, None, and tuples of these.

    Raises:
        ValueError: as the function does; or an argument is of another kind.
    """
    question_of(function, arguments)
    return Answer(function(**arguments), function, arguments)


def ask_once(
    function: Callable[..., T], hints: Mapping[str, Any] = MappingProxyType({}), /, **arguments: Any
) -> Answer[T]:
    """Ask, and remember the answer for everybody who asks the same; what takes more than 150 ms is for ask_away.

    Who asks while it is being computed waits for that. The least recently asked answers are forgotten.

    Args:
        hints: arguments that make the function quicker and do not change what it returns; the script has none.

    Raises:
        ValueError: as ask.
    """
    question = question_of(function, arguments)
    while True:
        future, new = _claimed(question, Future, again=True)
        if new:
            _compute(future, lambda: function(**arguments, **hints))
        try:
            return Answer(future.result(), function, arguments)
        except CancelledError:
            continue  # who computed it was stopped before the end


def ask_away(function: Callable[..., Any], who: str, /, **arguments: Any) -> Future[Any]:
    """Ask for what takes longer than a moment, and return where the answer is or will be; ask_once has it, too.

    A process of the pool computes it (pages/kit/heavy.py), as long as somebody asks again every few seconds. Where that
    fails, it is not tried again.

    Args:
        who: a person and, after a space, a place on a page of theirs, where one thing is waited for.
        arguments: as of ask.

    Raises:
        ValueError: as ask.
    """
    question = question_of(function, arguments)
    if _here:
        future, new = _claimed(question, Future, again=False)
        if new:
            _compute(future, lambda: function(**arguments))
        return future
    future, _ = _claimed(question, lambda: Job(_work(function, arguments)), again=False)
    if isinstance(future, Job):
        pool().look(future, who)
    return future


@contextmanager
def computing_here() -> Iterator[None]:
    """Let this process compute what takes long itself, as where it is one of the pool."""
    global _here
    _here = True
    try:
        yield
    finally:
        _here = False


def answered(function: Callable[..., T], /, **arguments: Any) -> T | None:
    """Return what a question came to, None where it has not been asked, or has not been answered yet.

    Args:
        arguments: as of ask.
    """
    with _lock:
        future = _kept.get(question_of(function, arguments))
    done = future is not None and future.done() and not future.cancelled() and not future.exception()
    return future.result() if future is not None and done else None


def _work(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Work[Any]:
    """Return a call for other processes, which open the models themselves."""

    def alone(part: Part) -> Work[Any]:
        return (yield part)

    placed = {
        name: with_models(value, Bundle, lambda bundle: place_of(bundle.name)) for name, value in arguments.items()
    }
    return function.work(**placed) if isinstance(function, InParts) else alone(Part(function, placed))


def _claimed(question: Question, make: Callable[[], Future[Any]], *, again: bool) -> tuple[Future[Any], bool]:
    """Return where the answer is or will be, and whether that is new.

    Args:
        make: makes the place of a new answer.
        again: compute it once more where that failed.
    """
    with _lock:
        future = _kept.get(question)
        failed = again and future is not None and future.done() and not future.cancelled() and future.exception()
        new = future is None or future.cancelled() or bool(failed)
        if future is None or new:
            future = _kept[question] = make()
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


def question_of(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Question:
    """Return what identifies a call; models are identified by their names.

    Raises:
        ValueError: an argument is of another kind than those of ask.
    """
    return function, tuple((name, _known(name, value)) for name, value in arguments.items())


def _known(name: str, value: Any) -> str:
    if isinstance(value, Bundle):
        return f"bundle {value.name}"
    if isinstance(value, Prompt):
        return f"prompt {value.bundle.name} {(value.text, value.n_tokens, value.pair, value.add_special)!r}"
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(_known(name, part) for part in value)})"
    raise ValueError(
        f"{name} is of type {type(value).__name__}; "
        "it must be a prompt, a bundle, a number, a string, None or a tuple of these"
    )


def forget_answer(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Let go of one remembered answer, or of the reason why there is none."""
    with _lock:
        _kept.pop(question_of(function, arguments), None)


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
    prompts = [value for value in arguments.values() if isinstance(value, Prompt)]
    bundles = [value for value in arguments.values() if isinstance(value, Bundle)]
    opened = {code_that_opens(one.name) for one in (*bundles, *(prompt.bundle for prompt in prompts))}
    imports = sorted({line for lines, _ in opened for line in lines.split("\n")})
    imports = [
        "import numpy as np",
        "",
        *imports,
        "from transformer_core.analysis.arrays import arrays_of",
        f"from {function.__module__} import {function.__name__}",
        *(["from transformer_core.prompt import Prompt"] if prompts else []),
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
    if isinstance(value, Prompt):
        parts = (value.bundle, value.text, value.n_tokens, *(() if value.pair is None else (value.pair,)))
        bare = "" if value.add_special else ", add_special=False"
        return f"Prompt({', '.join(_written(name, part) for part in parts)}{bare})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, tuple):
        inner = [_written(name, part) for part in value]
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    return _known(name, value)
