"""A Ray cluster as the bridge sees it; the one module that imports ray, which is optional (requirements-ray.txt).

What computes is an actor: Ray queues and places it; where it has a name it outlives whoever asked for it.
"""

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from transformer_core.device import CORES
from transformer_core.kept import PROJECT
from transformer_core.training.runs.errors import RunError, without_paths, words_of
from transformer_core.training.runs.launcher import ENVIRONMENT
from transformer_core.training.runs.store.records import Shortage

ADDRESS, CPUS, GPUS = "RAY_ADDRESS", "VITRINE_RUN_CPUS", "VITRINE_RUN_GPUS"
NAMESPACE = "vitrine"
PATIENCE_WITH_PORT = 3.0
CALLS_AT_ONCE, MOST_WORDS = 4, 300
SENT = ("transformer_core", "assets", "assets/corpora", "assets/measured")  # of the project: what computes there


class UnreachableError(RunError):
    """The cluster cannot be used now."""


class GoneError(RunError):
    """What computed a run is gone: killed, or its node is."""


@dataclass(frozen=True)
class Resources:
    """What a run takes of a cluster.

    Args:
        cpus: processors; gpus: cards, or a part of one.
    """

    cpus: float = 1.0
    gpus: float = 0.0

    @classmethod
    def set_here(cls) -> "Resources":
        """Return what VITRINE_RUN_CPUS and VITRINE_RUN_GPUS say.

        Raises:
            RunError: one of them is not a number that may be.
        """
        return cls(_number(CPUS, 1.0, 0.1, 256.0), _number(GPUS, 0.0, 0.0, 16.0))


def _number(variable: str, default: float, least: float, most: float) -> float:
    value = os.environ.get(variable)
    if not value:
        return default
    with suppress(ValueError):
        if least <= float(value) <= most:
            return float(value)
    raise RunError(f"{variable}={value!r:.50} must be a number from {least:g} to {most:g}")


class RayCluster:
    """A connection to the cluster at RAY_ADDRESS, made when it is first needed; any thread may use it.

    Raises:
        UnreachableError: all methods raise it where the cluster cannot be used; those that take a handle raise
            GoneError where what it stands for is gone.
    """

    def __init__(self) -> None:
        self._connected: Any = None
        self._turn = threading.Lock()

    def connect(self) -> None:
        """Connect, unless that is done.

        Raises:
            UnreachableError: ray is not installed, no cluster can be reached, or it has other versions.
        """
        with self._turn:
            if self._connected is None:
                self._connected = _connected()

    @property
    def _ray(self) -> Any:
        self.connect()
        return self._connected

    def submit(self, kind: type, resources: Resources, *parts: Any, name: str | None = None) -> Any:
        """Ask for an object on a node; return its handle at once, while Ray looks for a place.

        Args:
            kind: of the object.
            resources: that it takes.
            parts: what it is made of.
            name: no other has it; what has one outlives this process.
        """
        ray, lasts = self._ray, {} if name is None else {"name": name, "lifetime": "detached"}
        with _in_words_of(ray):
            kind = ray.remote(kind).options(max_concurrency=CALLS_AT_ONCE, **lasts, **_options(resources))
            return kind.remote(*parts)

    def attach(self, name: str) -> Any:
        """Return the handle of what was submitted under a name."""
        ray = self._ray
        with _in_words_of(ray):
            try:
                return ray.get_actor(name, namespace=NAMESPACE)
            except ValueError:
                raise GoneError("what computed the run is gone from the cluster") from None

    def call(self, handle: Any, method: str, *given: Any, **named: Any) -> Any:
        """Ask what a handle stands for to do something; return what `answer` waits for."""
        with _in_words_of(self._ray):
            return getattr(handle, method).remote(*given, **named)

    def compute(self, function: Callable[..., Any], resources: Resources, *given: Any) -> Any:
        """Have a function called somewhere on the cluster; return what `answer` waits for."""
        ray = self._ray
        with _in_words_of(ray):
            return ray.remote(function).options(max_retries=0, **_options(resources)).remote(*given)

    def stream(self, function: Callable[..., Iterator[Any]], patience: float, *given: Any) -> Iterator[Any]:
        """Have a generator run somewhere on the cluster, on one processor, and yield what it yields as that comes.

        Args:
            patience: seconds until the first.

        Raises:
            TimeoutError: nothing came within `patience`.
            RunError: that was raised there.
        """
        ray, once = self._ray, {"num_returns": "streaming", "max_retries": 0}
        with _in_words_of(ray):
            coming = ray.remote(function).options(**once, **_options(Resources())).remote(*given)
            if not ray.wait([coming], timeout=patience)[0]:
                self.cancel(coming)
                raise TimeoutError
            for one in coming:
                yield ray.get(one)

    def put(self, value: Any) -> Any:
        """Send what several calls take as an argument; return what stands for it there."""
        ray = self._ray
        with _in_words_of(ray):
            return ray.put(value)

    def answer(self, asked: Any, patience: float) -> Any:
        """Return what was answered.

        Raises:
            TimeoutError: nothing within so many seconds.
            RunError: that is the answer.
        """
        ray = self._ray
        with _in_words_of(ray):
            try:
                return ray.get(asked, timeout=patience)
            except ray.exceptions.GetTimeoutError:
                raise TimeoutError from None

    def cancel(self, asked: Any) -> None:
        """Let go of what was asked for and is not needed any more."""
        with suppress(Exception):
            self._ray.cancel(asked, force=True)

    def kill(self, handle: Any) -> None:
        """End what a handle stands for, whether it computes or waits for a place."""
        with suppress(Exception):
            self._ray.kill(handle)

    def room(self, needs: Resources) -> int:
        """Return for how many runs the cluster has room now."""
        free, wanted = self._found("available_resources"), {"CPU": needs.cpus, "GPU": needs.gpus}
        return min(int(free.get(name, 0.0) / count) for name, count in wanted.items() if count)

    def shortage(self, needs: Resources) -> Shortage:
        """Return what a run needs and what of it the cluster has."""
        names = ("CPU", "GPU") if needs.gpus else ("CPU",)
        free, whole = (
            {name: found.get(name, 0.0) for name in names}
            for found in (self._found("available_resources"), self._found("cluster_resources"))
        )
        return Shortage(_listed({"CPU": needs.cpus, "GPU": needs.gpus}), _listed(free), _listed(whole))

    def _found(self, which: str) -> dict[str, float]:
        ray = self._ray
        with _in_words_of(ray):
            return getattr(ray, which)()


def _listed(resources: Mapping[str, float]) -> str:
    """Return resources as Ray names them."""
    return ", ".join(f"{round(count, 2):g} {name}" for name, count in resources.items() if count) or "0 CPU"


def _options(resources: Resources) -> dict[str, Any]:
    cores = {CORES: str(max(1, int(resources.cpus)))}
    return {"num_cpus": resources.cpus, "num_gpus": resources.gpus, "runtime_env": {"env_vars": ENVIRONMENT | cores}}


def _connected() -> Any:
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        words = "ray is not installed; pip install -r requirements-ray.txt"
        raise UnreachableError(words) from None
    address = os.environ.get(ADDRESS) or "auto"
    _require_listening(address)
    sent = {"working_dir": str(PROJECT), "excludes": _left_out()}
    try:
        ray.init(
            address=address, namespace=NAMESPACE, runtime_env=sent, log_to_driver=False, logging_level=logging.ERROR
        )
    except (Exception, SystemExit) as error:
        ray.shutdown()
        raise UnreachableError(f"the Ray cluster at {address} cannot be used: {_shortened(error)}") from None
    return ray


def _left_out() -> list[str]:
    """Return what nodes do not need of the project."""
    beside = [path for place in (PROJECT, PROJECT / "assets") for path in place.iterdir()]
    names = {path.relative_to(PROJECT).as_posix() for path in beside}
    return ["__pycache__", *(f"/{name}" for name in sorted(names.difference(SENT)))]


def _require_listening(address: str) -> None:
    """Raise UnreachableError where nothing listens; Ray itself would try for minutes, and end the process."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), PATIENCE_WITH_PORT).close()
    except OSError as error:
        words = f"no Ray cluster can be reached at {address} ({ADDRESS}): {error.strerror or error}"
        raise UnreachableError(words) from None


@contextmanager
def _in_words_of(ray: Any) -> Iterator[None]:
    """Turn Ray's errors into ours."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:  # before RunError, which it is as well where that was raised there
        cause = error.cause
        raise RunError(words_of(cause) if isinstance(cause, Exception) else _shortened(error)) from None
    except (RunError, TimeoutError):
        raise
    except ray.exceptions.ActorUnavailableError as error:
        raise UnreachableError(f"the run's node does not answer: {_shortened(error)}") from None
    except ray.exceptions.RayActorError as error:
        raise GoneError(f"Ray says: {_reason(error)}") from None
    except Exception as error:
        raise UnreachableError(f"the Ray cluster fails: {_shortened(error)}") from None


def _reason(error: Exception) -> str:
    """Return Ray's reason why an actor is gone, without the table of what the actor was."""
    return _shortened("\n".join(line for line in str(error).splitlines() if not line.startswith("\t")))


def _shortened(said: object) -> str:
    """Return what Ray says in a line, and no folder of a machine in it."""
    return without_paths(" ".join(str(said).split()))[:MOST_WORDS] or type(said).__name__
