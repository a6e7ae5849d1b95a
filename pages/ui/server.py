"""What the server does once, which of its paths a visitor may name, and what a failing page says.

Heavy things are loaded before the first visitor. Streamlit's own garbage collection after every run is switched off in
.streamlit/config.toml: with torch imported it blocks every session for about 145 ms (DECISIONS.md).
"""

import asyncio
import gc
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import streamlit as st
import torch
from threadpoolctl import threadpool_limits

from pages.ui.language import t
from pages.ui.models import READERS, open_bundle, shipped_names
from pages.ui.runs import launcher
from transformer_core.analysis.outcome import read
from transformer_core.bundle_files import BundleError

SECONDS_BETWEEN_COLLECTIONS = 60.0


async def _collect_now_and_then() -> None:
    while True:
        await asyncio.sleep(SECONDS_BETWEEN_COLLECTIONS)
        gc.collect()


def _warm_up() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)  # else threads of NumPy's products spin between them: 50 ms of each visit of Positions
    for name in shipped_names():
        with suppress(BundleError):  # the page says what is wrong with it
            bundle = open_bundle(name)
            if bundle.kind in READERS:
                read(bundle, bundle.tokenizer.encode("warm"))
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Warm up, serve, and tidy now and then."""
    _warm_up()
    tidying = asyncio.create_task(_collect_now_and_then())
    yield
    tidying.cancel()
    launcher().close()


def show_error(error: Exception) -> bool:
    """Log the error for those who run the server, and say on the page that it still works."""
    logging.getLogger("vitrine").error("a page failed", exc_info=error)
    st.error(t("error.unforeseen", kind=type(error).__name__), icon=":material/error:")
    return True


def may_read(path: Path) -> bool:
    """Tell whether a visitor may name this path.

    Where VITRINE_DATA names a folder, whatever lies in it; else anything for a visitor at this very machine, and
    nothing for others. Behind a proxy on the same machine every visitor looks local: a public server sets VITRINE_DATA.
    """
    allowed = os.environ.get("VITRINE_DATA")
    if allowed:
        return path.resolve().is_relative_to(Path(allowed).resolve())
    return st.context.ip_address is None
