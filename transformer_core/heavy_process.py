"""The warm process that computes what takes long, one call after the other, for pages/kit/heavy.py.

It reads pickled calls and writes pickled messages: it is ready, how far it is, what came. Both ends are our own, on
pipes that nobody else has. Random numbers start from torch's own seed at each call, as in the script that repeats it.
"""

import ctypes
import gc
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import torch

from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.progress import listening
from transformer_core.prompt import Prompt
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.warm_process import stand_by

SECONDS_BETWEEN_MESSAGES = 0.2


@dataclass(frozen=True)
class Place:
    """Where a model lies, for a process that opens it once more.

    Args:
        folder: the model's, or the run's.
        of_run: it is a run's model.
        frame: the run's moment; None for its end.
        version: another number once other files lie in the folder.
    """

    name: str
    folder: Path
    of_run: bool = False
    frame: int | None = None
    version: int = 0

    def open(self) -> Bundle:
        """Load the model.

        Raises:
            BundleError, RunError: what is wrong with it.
        """
        bundle = RunStore(self.folder).model(self.frame) if self.of_run else load(self.folder)
        return replace(bundle, name=self.name)


@dataclass(frozen=True)
class Message:
    """What the process says: how far it is, or with `ended` what came of the call."""

    done: int = 0
    total: int = 0
    ended: bool = False
    value: Any = None
    error: Exception | None = None


M_ARENA_MAX, ARENAS = -8, 2  # the first is mallopt's number


def share_arenas() -> None:
    """Let all threads take memory from two arenas of the C library; by default each core brings eight, seldom full."""
    _ask_glibc("mallopt", M_ARENA_MAX, ARENAS)


def give_back_memory() -> None:
    """Collect garbage, and hand back to the machine what the C library keeps of freed tensors: hundreds of MB."""
    gc.collect()
    _ask_glibc("malloc_trim", 0)


def _ask_glibc(name: str, *given: int) -> None:
    with suppress(OSError, AttributeError, TypeError):  # no other C library has it
        getattr(ctypes.CDLL(None), name)(*given)


M = TypeVar("M", Bundle, Place)
Tell = Callable[[Message], None]
open_here = lru_cache(maxsize=4)(Place.open)


def with_models(value: Any, kind: type[M], other: Callable[[M], Any]) -> Any:
    """Return an argument with something else for its models, as they are (Bundle) or where they lie (Place)."""
    if isinstance(value, kind):
        return other(value)
    if isinstance(value, Prompt):
        return replace(value, bundle=with_models(value.bundle, kind, other))
    return tuple(with_models(part, kind, other) for part in value) if isinstance(value, tuple) else value


def compute(call: bytes, tell: Tell, opened: Callable[[Place], Bundle] = open_here) -> Message:
    """Compute a call.

    Args:
        call: the pickled function and its arguments by name, with places for models.
        tell: takes how far it is.

    Returns:
        The last message: the value, or the error.
    """
    last = 0.0
    torch.manual_seed(torch.Generator().initial_seed())

    def listener(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_MESSAGES:
            last = time.monotonic()
            tell(Message(done, total))

    try:
        function, arguments = pickle.loads(call)
        given: Mapping[str, Any] = {name: with_models(value, Place, opened) for name, value in arguments.items()}
        with listening(listener):
            return Message(ended=True, value=function(**given))
    except Exception as error:
        return Message(ended=True, error=_that_travels(error))


def _that_travels(error: Exception) -> Exception:
    """Return an error with its place, for the log, as it is where the other end can read it, else its words."""
    error.add_note(f"in the process that computed it:\n{''.join(traceback.format_tb(error.__traceback__))}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def serve(compute: Callable[[bytes, Tell], Message] = compute) -> None:
    """Compute what is asked until the input ends."""
    answers = stand_by()

    def tell(message: Message) -> None:
        pickle.dump(message, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()

    torch.set_num_threads(1)
    with suppress(BrokenPipeError, EOFError, KeyboardInterrupt):  # the server has ended, or needs this process no more
        tell(Message())
        while True:
            call = pickle.load(sys.stdin.buffer)
            tell(compute(call, tell))
            give_back_memory()
