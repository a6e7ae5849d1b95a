"""What all tests of pages share: Streamlit looks once, not at every run of a page, for components of other packages."""

from collections.abc import Iterator
from functools import cache

import pytest
from streamlit import config
from streamlit.components.v2 import manifest_scanner


@pytest.fixture(scope="session", autouse=True)
def _packages_looked_at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture
def on_a_network() -> Iterator[None]:
    """Let the server listen to other machines, so that visitors are told apart."""
    before = config.get_option("server.address")
    config.set_option("server.address", "0.0.0.0")
    yield
    config.set_option("server.address", before)
