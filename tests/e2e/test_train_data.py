"""What a run learns from, brought as a new user brings it: it learns that under every preset, and says so."""

import os
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.browser import settle
from transformer_core.checkpoints import load
from transformer_core.training.runs.presets import PRESETS
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.run_store import RunStore

A_MINUTE = 60_000
TINY = "epochs=2&frames=2&points=40&d_model=16&n_heads=2&d_ff=16&n_layers=1&max_len=16&threads=1"
FOOD = ("noodle", "pepper", "saffron", "dumpling", "radish", "basil")
TRAVEL = ("harbour", "suitcase", "glacier", "tramway", "lagoon", "passport")
ROWS = [
    (f"{words[i % 6]} and {words[(i // 6) % 6]} number {i}", label)
    for i in range(60)
    for words, label in ((FOOD, "food"), (TRAVEL, "travel"))
]
TOLD = "my topics.csv, 120 rows, food / travel"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 120 rows, with labels and words that no data of the app have."""
    path = tmp_path_factory.mktemp("table") / "my topics.csv"
    path.write_text("\n".join(("words,topic", *(f"{text},{label}" for text, label in ROWS))), encoding="utf-8")
    return path


def choose_table(page: Page, table: Path) -> None:
    """Choose to learn from a file, and bring it."""
    page.set_default_timeout(A_MINUTE)
    expect(page.get_by_role("combobox", name="Learn from")).to_be_visible(timeout=A_MINUTE)
    settle(page)
    page.get_by_role("combobox", name="Learn from").click()
    page.get_by_role("option", name="a file of mine").click()
    page.locator("input[type=file]").first.set_input_files(table)
    expect(page.get_by_text("120 rows read")).to_be_visible(timeout=A_MINUTE)
    settle(page)


def finished(page: Page) -> RunStore:
    """Press Start, wait for the run's end, and return it from its folder."""
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"[?&]run="), timeout=A_MINUTE)
    expect(page.locator(".vf-state")).to_contain_text("finished", timeout=2 * A_MINUTE)
    (run,) = parse_qs(urlsplit(page.url).query)["run"]
    return RunList(Path(os.environ["VITRINE_RUNS"])).open(run)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_table_is_what_is_learned_under_every_preset(page: Page, address: str, table: Path, preset: str) -> None:
    page.goto(f"{address}/train?preset={preset}&{TINY}")
    choose_table(page, table)
    expect(page.get_by_text(TOLD)).to_be_visible()
    store = finished(page)
    expect(page.get_by_text(TOLD).first).to_be_visible()
    expect(page.locator(".vf-legend").first).to_contain_text("food")
    expect(page.locator(".vf-legend").first).to_contain_text("travel")
    points = store.points()
    assert points is not None
    assert set(points.texts) <= {text for text, _ in ROWS}
    assert store.facts()["labels"] == ["food", "travel"]
    assert (store.spec.data.examples, store.spec.data.held_out) == (90, 30)
    bundle = load(store.folder / "bundle", device="cpu")
    assert bundle.labels == ("food", "travel")
    known = bundle.tokenizer.encode("noodle harbour").unknown
    assert not any(known)
    assert all(bundle.tokenizer.encode("masterpiece").unknown[1:-1]) or store.spec.data.tokenizer == "wordpiece"
    assert TOLD in bundle.card
    assert TOLD in (store.folder / "repeat.py").read_text(encoding="utf-8")


def test_a_file_stays_what_is_learned_when_the_preset_changes_and_the_run_is_repeated(
    page: Page, address: str, table: Path
) -> None:
    page.goto(f"{address}/train")
    choose_table(page, table)
    page.get_by_role("radio", name="Real reviews").click()
    expect(page.get_by_text("with the settings of this preset")).to_be_visible(timeout=A_MINUTE)
    expect(page.get_by_text(TOLD)).to_be_visible()
    store = finished(page)
    assert store.spec.data.described == TOLD
    assert store.spec.name.startswith("my topics.csv")
    page.get_by_text("Runs on this server").click()
    expect(page.get_by_text(TOLD).nth(1)).to_be_visible(timeout=A_MINUTE)
    page.get_by_role("button", name="Same settings").click()
    expect(page.get_by_text(f"It learns from the data of that run: {TOLD}")).to_be_visible(timeout=A_MINUTE)
    page.wait_for_url(lambda url: "run=" not in url)
    again = finished(page)
    assert again.id != store.id
    assert again.spec.data == store.spec.data
    assert again.spec.name == f"{store.spec.name} (2)"
