"""What all tests of the page share: what order is worth is measured on few texts."""

import pytest

from pages.positions import order


@pytest.fixture(autouse=True)
def _few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "MOST_TEXTS", order.FEWEST_TEXTS)
