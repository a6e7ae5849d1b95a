"""What every test shares: the two tiers, examples that are the same in each run, one thread, a GPU test's reason.

The gate is `python -m pytest`. The nightly tier, `python -m pytest -m nightly`, has what is marked nightly, and the
gate's Hypothesis tests once more with many more examples.
"""

import gc
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from pages.kit.asking import forget_answers
from pages.kit.models import forget_models
from tests import helpers
from tests.helpers import ROOT
from tests.helpers.pretend_device import register
from transformer_core.heavy_process import give_back_memory

settings.register_profile("gate", deadline=None, derandomize=True, max_examples=10)
settings.register_profile("nightly", deadline=None, derandomize=True, max_examples=200)
torch.set_num_threads(1)
FIRST = ("e2e", "processes", "pages")
NUMBERS = count()


def pytest_configure(config: pytest.Config) -> None:
    """Before tests are read, choose how many examples and which cases are made, and tell torch of a pretend device."""
    settings.load_profile("nightly" if _is_nightly(config) else "gate")
    helpers.GATE_ALONE = config.option.markexpr == "not nightly"
    register()


def _is_nightly(config: pytest.Config) -> bool:
    return config.option.markexpr == "nightly"


@pytest.fixture(scope="session", autouse=True)
def _no_opened_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let no test see the models that somebody opened here, nor put any among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITRINE_OPENED", str(tmp_path_factory.mktemp("opened")))
        yield


@pytest.fixture(autouse=True)
def _an_own_log(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let no test see another's log of the Lab; nothing is made of the folder before it is written to."""
    monkeypatch.setenv("VITRINE_LOGS", str(tmp_path_factory.getbasetemp() / f"logs{next(NUMBERS)}"))


@pytest.fixture(autouse=True)
def _nothing_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take ``__main__`` back: Streamlit's tests put the last page in its place, and a new process would import it."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def pytest_collection_finish() -> None:
    """Leave what was imported out of every later search for what nobody needs any more."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    """Start every test from the same random numbers, alone or in company."""
    torch.manual_seed(0)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let go of a folder's models and answers before the next."""
    if nextitem is None or nextitem.path.parent != item.path.parent:
        forget_models()
        forget_answers()
        give_back_memory()


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the browser's tests first, give the nightly tier the Hypothesis tests, and skip GPU tests without a GPU.

    Two workers halve the list, and the one that is done first takes over from the end of the other's half: so one
    server and one browser do nearly all of the browser's tests.
    """
    items.sort(key=lambda item: _place(item.path))
    if _is_nightly(config):
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker(pytest.mark.nightly)
    if not torch.cuda.is_available():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="no CUDA device here"))


def _place(path: Path) -> int:
    folder = path.relative_to(ROOT / "tests").parts[0]
    return FIRST.index(folder) if folder in FIRST else len(FIRST)
