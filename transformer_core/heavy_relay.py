"""The relay: `python -m transformer_core.heavy_relay`, a heavy process that has a Ray cluster compute what it is asked.

What finds no place there it computes itself: a cluster that is full, out of reach or lost on the way costs time and no
answer. Where the relay is killed, the cluster ends what it has asked for.
"""

import dataclasses
import pickle
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from cachetools import LRUCache

from transformer_core.bundle import Bundle
from transformer_core.heavy_process import Message, Place, Tell, compute, open_here, serve, with_models
from transformer_core.training.runs.cluster.ray_cluster import RayCluster, Resources
from transformer_core.training.runs.cluster.remote_run import require_versions, versions
from transformer_core.training.runs.errors import RunError

PATIENCE_WITH_PLACE, PATIENCE_WITH_NODE = 10.0, 3_600.0  # runs may hold all processors for long
SECONDS_BETWEEN_TRIES = 30.0
MOST_SENT = 4  # models that the cluster keeps for a relay


def compute_there(
    call: bytes, server: Mapping[str, str], places: tuple[Place, ...], *models: Bundle
) -> Iterator[Message]:
    """Compute a call on a node: yield that it begins, how far it is, and last what came.

    Args:
        call: as of heavy_process.compute.
        server: its versions.
        places, models: those that the call names.

    Raises:
        RunError: this node has other versions.
    """
    require_versions(server)
    messages = SimpleQueue[Message]()
    opened = dict(zip(places, models, strict=True)).__getitem__
    threading.Thread(target=lambda: messages.put(compute(call, messages.put, opened)), daemon=True).start()
    message = Message()
    while not message.ended:
        yield message
        message = messages.get()
    yield message


class Relay:
    """Has a cluster compute calls, or computes them."""

    def __init__(self) -> None:
        self._cluster = RayCluster()
        self._sent: LRUCache[Place, Any] = LRUCache(MOST_SENT)
        self._connected = threading.Event()
        threading.Thread(target=self._connect, name="cluster", daemon=True).start()

    def compute(self, call: bytes, tell: Tell) -> Message:
        """Compute a call on the cluster if it can be reached and has room, else here, where errors are told as well."""
        if self._connected.is_set():
            with suppress(Exception):  # what cannot be opened or sent, either
                return self._there(call, tell)
        return compute(call, tell)

    def _there(self, call: bytes, tell: Tell) -> Message:
        function, arguments = pickle.loads(call)
        if function.__module__.startswith("pages."):
            raise RunError("nodes have no pages")
        if not self._cluster.room(Resources()):
            raise RunError("no processor is free")
        named: dict[Place, Any] = {}
        with_models(tuple(arguments.values()), Place, lambda place: named.setdefault(place, self._sent_of(place)))
        given = (call, versions(), tuple(named), *named.values())
        for message in self._cluster.stream(compute_there, PATIENCE_WITH_PLACE, *given):
            if message.ended:
                return message
            tell(message)
        raise RunError("the node said nothing to the end")

    def _sent_of(self, place: Place) -> Any:
        """Return what stands for a model on the cluster; what a run has not learned from goes with its model."""
        if place not in self._sent:
            bundle = open_here(place)
            if bundle.read_held_out is not None:
                held_out = bundle.read_held_out()
                bundle = dataclasses.replace(bundle, read_held_out=lambda: held_out)
            self._sent[place] = self._cluster.put(bundle)
        return self._sent[place]

    def _connect(self) -> None:
        """Connect, and wait for a node that has unpacked the project and imported torch; no call waits for that."""
        while not self._connected.is_set():
            try:
                self._cluster.connect()
                self._cluster.answer(self._cluster.compute(versions, Resources()), PATIENCE_WITH_NODE)
                self._connected.set()
            except (RunError, TimeoutError):
                time.sleep(SECONDS_BETWEEN_TRIES)


if __name__ == "__main__":
    serve(Relay().compute)
