"""What every test shares: examples that do not change from run to run, one thread, no GPU test without a GPU."""

import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

settings.register_profile("vitrine", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("vitrine")
torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _no_opened_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let no test see the models that somebody opened here, nor put any among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITRINE_OPENED", str(tmp_path_factory.mktemp("opened")))
        yield


@pytest.fixture(autouse=True)
def _nothing_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take ``__main__`` back: Streamlit's tests put the last page in its place, and a new process would import it."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def pytest_runtest_setup() -> None:
    """Start every test from the same random numbers, alone or in company."""
    torch.manual_seed(0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked gpu where there is none, with the reason."""
    if torch.cuda.is_available():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="no CUDA device here"))
