"""Tests that start processes of their own."""

import sys
from types import ModuleType

import pytest


@pytest.fixture(autouse=True)
def _nothing_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a new process no script to import: Streamlit's tests put the last page in the place of ``__main__``."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
