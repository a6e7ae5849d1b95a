"""Downloading a model from the hub in a background thread, with a bound on the waiting time.

First it is checked whether the hub answers; without it, a model in the cache is opened, and any other refused at once.
"""

import queue
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from transformer_core.checkpoints import load
from transformer_core.open_checkpoints.hub import FILES, HUB, NAME, load_from_hub
from transformer_core.trial import try_model
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.user_models.store import Opened, OpenedModels

SECONDS_TO_ANSWER = 3.0
MOST_SECONDS = 900.0
MOST_BYTES = 1 << 30


class NoHubError(BundleError):
    """The hub does not answer from here, and the model is not in the cache."""


def _address() -> tuple[str, int]:
    """Return host and port to connect to: the hub's own, or those of the proxy."""
    from huggingface_hub import constants

    own = urlsplit(constants.ENDPOINT)
    proxy = urllib.request.getproxies().get(own.scheme)
    if proxy and not urllib.request.proxy_bypass(own.hostname or ""):
        own = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return own.hostname or "", own.port or (80 if own.scheme == "http" else 443)


def hub_answers(seconds: float = SECONDS_TO_ANSWER) -> bool:
    """Return whether the hub can be reached, within `seconds` even where looking up its name hangs."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    answers: queue.Queue[bool] = queue.Queue()

    def knock() -> None:
        try:
            socket.create_connection(_address(), timeout=seconds).close()
            answers.put(True)
        except (OSError, ValueError):
            answers.put(False)

    threading.Thread(target=knock, daemon=True).start()
    try:
        return answers.get(timeout=seconds)
    except queue.Empty:
        return False


def _cache_of(name: str) -> Path:
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type="model")


def _cached(name: str) -> Path:
    import huggingface_hub

    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=FILES, local_files_only=True))
    except Exception:  # that package's errors have no common base but this
        raise NoHubError(
            f"{HUB}{name}: the hub does not answer from here, and this model is not in the cache"
        ) from None


def open_from_hub(store: OpenedModels, asked: str, name: str) -> Opened:
    """Fetch a model, unless it is in the cache, and store a note of it; files that turn out to be unusable are deleted.

    Raises:
        NoHubError: there is no way to the hub.
        BundleError: there is no such model, it is not supported, or there is no room for it.
    """
    if not NAME.fullmatch(asked) or ".." in asked:
        raise BundleError(f"{asked!r:.100} must be NAME or OWNER/NAME, as the hub has it")
    cache = _cache_of(asked)
    there = cache.exists()
    try:
        if hub_answers():
            bundle = load_from_hub(asked, device="cpu", max_bytes=MOST_BYTES)
            folder = bundle.source or _cached(asked)
        else:
            folder = _cached(asked)
            bundle = load(folder, device="cpu", max_bytes=MOST_BYTES)
        try_model(bundle)
        return store.take_note(Opened(name, "hub", asked, folder, fetched=not there))
    except BundleError:
        if not there:
            shutil.rmtree(cache, ignore_errors=True)
        raise


def forget_fetched(model: Opened) -> None:
    """Delete from the cache what was downloaded for this model."""
    if model.origin == "hub" and model.fetched:
        shutil.rmtree(_cache_of(model.asked), ignore_errors=True)


class Fetching:
    """Downloads from the hub, one model at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began: float | None = None
        self.asked, self.name = "", ""
        self.error: BundleError | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds since the download began; None where there is none."""
        return None if self._began is None else time.monotonic() - self._began

    def start(self, store: OpenedModels, asked: str, name: str, *, taken: Collection[str] = ()) -> None:
        """Start to download a model.

        Args:
            asked: its name on the hub.
            name: to call it here.
            taken: names that other models have.

        Raises:
            BundleError: another one is on its way, or this one could not be accepted.
        """
        with self._lock:
            if self._began is not None and time.monotonic() - self._began < MOST_SECONDS:
                raise BundleError(f"{self.asked} is on its way; one model at a time is fetched")
            store.check_room(name, taken)
            self._began, self.asked, self.name, self.error = time.monotonic(), asked, name, None
            work = (self._began, store, asked, name)
            threading.Thread(target=self._work, args=work, name="fetching", daemon=True).start()

    def _work(self, began: float, store: OpenedModels, asked: str, name: str) -> None:
        error = None
        try:
            open_from_hub(store, asked, name)
        except BundleError as caught:
            error = caught
        except Exception as caught:  # nothing else would report an error of this thread
            error = BundleError(f"{asked} cannot be opened: {type(caught).__name__}")
        with self._lock:
            if self._began == began:
                self._began, self.error = None, error

    def give_up_if_late(self) -> None:
        """Stop waiting for what has taken too long; its thread may end later, and its result is ignored."""
        with self._lock:
            if self._began is not None and time.monotonic() - self._began > MOST_SECONDS:
                self._began = None
                self.error = BundleError(f"{self.asked} has taken more than {MOST_SECONDS:.0f} seconds")
