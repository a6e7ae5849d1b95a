"""What every test shares: examples that do not change from run to run, one thread, no GPU test without a GPU."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("vitrine", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("vitrine")
torch.set_num_threads(1)


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
