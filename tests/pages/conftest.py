"""What all tests of pages share: a page waits for what takes long, but for what lies under a cover.

And Streamlit looks once, not at every run of a page, for components of other packages.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import cache
from pathlib import Path

import pytest
from streamlit import config
from streamlit.components.v2 import manifest_scanner

from pages.kit import experiment, waiting
from pages.kit.heavy import pool
from pages.kit.models import MORE_MODELS
from tests.helpers.engine import odd_model
from transformer_core.bundle import Bundle, save

SECONDS_FOR_HEAVY_WORK = 120.0


@pytest.fixture(scope="session", autouse=True)
def _pages_wait() -> Iterator[None]:
    def wait_long(futures: list[Future], seconds: float) -> None:
        wait(futures, seconds if experiment.covered() else SECONDS_FOR_HEAVY_WORK)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "wait", wait_long)
        patch.setattr("pages.kit.heavy.SECONDS_WAITED_FOR", SECONDS_FOR_HEAVY_WORK)
        yield
    pool().close()


@pytest.fixture(autouse=True)
def _nobody_waits_any_more() -> Iterator[None]:
    """Let go of what a test's page asked the heavy processes for, so that the next one does not queue behind it."""
    yield
    for who, job in list(pool()._of.items()):
        pool().leave(job, who)


@pytest.fixture(scope="session", autouse=True)
def _packages_looked_at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture
def opened_odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Bundle]:
    """Return what puts an odd model (see odd_model) among those that the pages offer."""

    def opened(kind: str, weights: str) -> Bundle:
        bundle = odd_model(kind, weights)
        save(bundle, tmp_path / bundle.name)
        monkeypatch.setenv(MORE_MODELS, str(tmp_path))
        return bundle

    return opened


@pytest.fixture
def on_a_network() -> Iterator[None]:
    """Let the server listen to other machines, so that visitors are told apart."""
    before = config.get_option("server.address")
    config.set_option("server.address", "0.0.0.0")
    yield
    config.set_option("server.address", before)
