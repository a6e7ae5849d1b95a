"""What the server does once, which of its paths a visitor may name, and what a failing page says.

Heavy things are loaded before the first visitor. Streamlit's own garbage collection after every run is switched off in
.streamlit/config.toml: with torch imported it blocks every session for about 145 ms (DECISIONS.md).
"""

import asyncio
import gc
import itertools
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from types import FrameType

import streamlit as st
import torch
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from streamlit.web.server.server_util import get_display_address, get_url
from threadpoolctl import threadpool_limits
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from pages.kit.heavy import pool
from pages.kit.models import READERS, leave_out, open_bundle, shipped_names
from pages.kit.runs import start_waiting, stop_launching
from pages.kit.uploads import UploadBounds
from pages.language import LANGUAGES, t, words
from pages.link import below_base
from pages.serving.connections import Connections, most_asking
from pages.serving.headers import embedding_sites
from pages.serving.hooks import SERVING, STOPPING
from pages.serving.hosts import Guard, allowed_hosts
from pages.serving.inside_streamlit import drop_what_lies_inside, end_gone_sessions, keep_downloads
from pages.serving.limits import limits, raise_open_files, visitors_for
from pages.serving.log import quiet_logs
from transformer_core.analysis.outcome import read
from transformer_core.heavy_process import give_back_memory, share_arenas
from transformer_core.kept import kept_at
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.runner import runner
from transformer_core.training.runs.store.folder import default_root, sweep
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.user_models.store import default_root as opened_root

SECONDS_BETWEEN_LOOKS = 5.0
LOOKS_BETWEEN_COLLECTIONS = 12
log = logging.getLogger("vitrine")


async def _tidy_now_and_then() -> None:
    for look in itertools.count(1):
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        try:
            end_gone_sessions()
        except Exception:  # the next look tries again
            log.exception("sessions of visitors who have gone could not be ended:")
        if look % LOOKS_BETWEEN_COLLECTIONS == 0:
            give_back_memory()


def _warm_up() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)  # else threads of NumPy's products spin between them: 50 ms of each visit of Positions
    for lang in LANGUAGES:
        words(lang)  # an error can be said even where no file can be opened any more
    for name in shipped_names():
        try:
            bundle = open_bundle(name)
        except BundleError as error:
            log.warning("the model %s is left out: %s", name, error)
            leave_out(name)
            continue
        if bundle.kind in READERS:
            read(bundle, bundle.tokenizer.encode("warm"))
    gc.collect()
    gc.freeze()


def _watch_for_stop() -> None:
    """Call those functions once the process is asked to stop, which the server hears of at the same time."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()

    def heard(number: int, frame: FrameType | None) -> None:
        for end in STOPPING:
            loop.call_soon_threadsafe(end)
        before = servers[signal.Signals(number)]
        if callable(before):
            before(number, frame)

    servers = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Warm up, serve, and tidy now and then."""
    share_arenas()
    os.umask(0o077)  # no other user of this machine reads rooms, lectures, runs and opened models
    for root in (default_root(), opened_root()):
        sweep(root)
    quiet_logs()
    drop_what_lies_inside()
    keep_downloads()
    _watch_for_stop()
    for look in SERVING:
        look()
    _warm_up()
    quiet_logs()
    log.info("Vitrine is at %s", get_url(get_display_address(st.get_option("server.address") or "localhost")))
    connections = Connections(most_asking(raise_open_files()))
    watching = [asyncio.create_task(work) for work in (_tidy_now_and_then(), connections.keep_looking())]
    start_waiting()
    pool().warm()
    with connections.watched(AutoHTTPProtocol):
        yield
    for task in watching:
        task.cancel()
    stop_launching()
    pool().close()


def guard() -> list[Middleware]:
    """Return what stands before the app; ends the process with words where a setting is not what it must be."""
    try:
        embedding_sites()
        runner()
        bounds, hosts = limits(), allowed_hosts()
    except ValueError as error:
        sys.exit(f"Vitrine does not start: {error}")
    room = visitors_for(raise_open_files())
    return [
        Middleware(Guard, hosts=hosts, most=bounds.connections or room),
        Middleware(UploadBounds, bounds=bounds),
    ]


@lru_cache(maxsize=1)
def _troubles(_: int) -> list[str]:
    """Return what is wrong, in words: a folder that cannot be written, a full queue, a cluster out of reach."""
    found = []
    if limits().read_only:
        return found
    rooms = kept_at("VITRINE_ROOMS", "rooms.sqlite3").parent
    for what, folder in (("runs", default_root()), ("opened models", opened_root()), ("rooms", rooms)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"1")
        except OSError as error:
            found.append(f"the folder of {what} cannot be written: {error.strerror or type(error).__name__}")
    try:
        runner().require_room(default_root())
    except RunError as error:
        found.append(f"no run can be started: {error}")
    return found


def health_routes() -> list[Route]:
    """Return the route "_health" for st.App, for machines that ask whether the server answers.

    It answers 200 while pages are served: what is wrong besides stands in "wrong" and is the same in every process of
    the machine, of which a proxy would else leave none.
    """

    async def health(_: object) -> JSONResponse:
        wrong = await run_in_threadpool(_troubles, int(time.monotonic()))
        found = {"status": "wrong", "wrong": wrong} if wrong else {"status": "ok"}
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    return [Route(below_base("_health"), health)]


def show_error(error: Exception) -> bool:
    """Log the error for those who run the server, and say on the page that it still works."""
    log.error("a page failed:", exc_info=error)
    st.error(t("error.unforeseen", kind=type(error).__name__), icon=":material/error:")
    return True
