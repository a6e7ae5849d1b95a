"""What the server does once: load heavy things before the first visitor, and collect garbage off the hot path.

Streamlit's own collection after every run is switched off in .streamlit/config.toml: with torch imported it blocks
every session for about 145 ms (DECISIONS.md).
"""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import torch

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
