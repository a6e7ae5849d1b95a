"""A person brings a zip, sees what is in it and whether it is right, and looks at it on another page."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from pages.language import words
from tests.helpers.browser import BUNDLE, rest, serving, settle, visit
from tests.helpers.chats import HARMFUL, TEMPLATES, chat_model
from tests.helpers.gguf import write_gguf
from tests.helpers.open_checkpoints import written
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints import save_hf


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Bundle]:
    """A tiny BERT in a zip, and what it is."""
    folder = tmp_path_factory.mktemp("hf") / "tiny-bert"
    written("BertForMaskedLM", folder)
    (folder / "modeling_evil.py").write_text("raise SystemExit('executed')")
    return Path(shutil.make_archive(str(folder), "zip", folder)), load(folder, device="cpu")


def bring(page: Page, address: str, path: Path) -> None:
    """Upload a zip and open it."""
    page.goto(f"{address}/my_model?my_model_from=zip")
    page.get_by_role("combobox").first.wait_for()
    settle(page)
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Open it").click()


def test_a_zip_is_brought_and_seen_on_another_page(page: Page, address: str, zipped: tuple[Path, Bundle]) -> None:
    path, bundle = zipped
    bring(page, address, path)
    expect(page.get_by_text("is open, here and on the pages")).to_be_visible()
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(f"{bundle.n_parameters:,}")
    expect(page.get_by_text("modeling_evil.py")).to_be_visible()
    expect(page.get_by_text("Agrees with its reference")).to_be_visible()
    page.get_by_test_id("stPageLink").get_by_text("Attention", exact=True).click()
    page.wait_for_url(re.compile(r"/attention\?.*model=tiny-bert"))
    expect(page.locator(".vm").first).to_be_visible()
    expect(page.get_by_role("combobox").first).to_have_value("tiny-bert")
    visit(page, address, "my_model", model="tiny-bert")
    page.get_by_text("Yes, remove it").click()
    page.get_by_role("button", name="Remove tiny-bert").click()
    expect(page.get_by_role("button", name="Remove tiny-bert")).to_have_count(0)


def chatting(folder: Path, template: str) -> Path:
    """Return a chat model's folder of theirs, in a zip."""
    save_hf(chat_model(template, positions="learned", norm_order="pre", activation="gelu_tanh"), folder)
    return Path(shutil.make_archive(str(folder), "zip", folder))


@pytest.mark.nightly
def test_a_chat_model_is_brought_and_its_messages_are_tokens_by_role_and_a_template_that_loops_is_stopped(
    page: Page, address: str, tmp_path: Path
) -> None:
    bring(page, address, chatting(tmp_path / "speaker", TEMPLATES["chatml"]))
    expect(page.get_by_text("is open, here and on the pages")).to_be_visible()
    visit(page, address, "tokens", model="speaker", tokens_part="chat", text="Why is the sky blue?")
    names = page.locator(".vt-name")
    expect(names).to_have_text(["0 · system", "1 · user", "Header of the answer"])
    user = page.locator(".vt-row").nth(1)
    expect(user.locator(".vt-special")).to_have_text([re.compile("im_start"), re.compile("im_end")])
    assert all(
        "vt-hue0" in chip for chip in user.locator(".vt-chip").evaluate_all("all => all.map((c) => c.className)")
    )
    own = user.locator(".vt-chip:not(.vt-framed) .vt-label").all_inner_texts()
    assert "".join(own).replace("␣", " ") == "Why is the sky blue?"
    user.locator(".vt-framed").first.hover()
    expect(page.locator(".vt-readout")).to_contain_text("1 · user · <|im_start|> · written by the template")
    page.get_by_role("textbox", name="Message").nth(1).fill("Who are you?")
    expect(user.locator(".vt-chip:not(.vt-framed)").first).to_contain_text("W")
    expect(page.locator(".vt-source")).to_contain_text("Who are you?")
    bring(page, address, chatting(tmp_path / "looper", next(source for source in HARMFUL if "99999" in source)))
    expect(page.get_by_text("is open, here and on the pages")).to_be_visible()
    visit(page, address, "tokens", model="looper", tokens_part="chat")
    stopped = words("en")["chat_template.time"].format(detail="1")
    expect(page.get_by_role("alert").get_by_text(stopped)).to_be_visible()
    visit(page, address, "tokens", model="speaker", tokens_part="chat")
    expect(names.first).to_have_text("0 · system")


@pytest.mark.nightly
def test_the_card_of_a_model_that_somebody_brings_fetches_nothing_and_has_no_link(
    page: Page, address: str, tmp_path: Path
) -> None:
    card = "![seen](https://example.org/seen.png) [Sign in again](https://example.org) <img src=//example.org/x.png>"
    save(replace(BUNDLE, card=card, card_zh=""), tmp_path / "carded")
    bring(page, address, Path(shutil.make_archive(str(tmp_path / "carded"), "zip", tmp_path / "carded")))
    expect(page.get_by_text("is open, here and on the pages")).to_be_visible()
    for path, label in (("my_model", "Card"), ("", "The model's card: data, quality, limits")):
        visit(page, address, path, model="carded")
        page.get_by_text(label, exact=True).click()
        expect(page.get_by_text("Sign in again")).to_be_visible()
        rest(page)
        assert page.locator("a[href*=example], [data-testid=stExpander] img").count() == 0
    # that no request left for another host, the tab itself has watched


@pytest.mark.nightly
def test_a_gguf_file_on_the_disk_is_opened_and_its_next_token_is_the_models(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gguf(tmp_path / "small.gguf", "gemma3", max_position_embeddings=64)
    bundle = load(tmp_path / "small.gguf", device="cpu")
    text = "abc ab 你好"
    ids = torch.tensor([bundle.tokenizer.encode(text).ids])
    with torch.inference_mode():
        shares = bundle.model(ids)[0, -1].softmax(-1)
    best = int(shares.argmax())
    monkeypatch.setenv("VITRINE_DATA", str(tmp_path))
    monkeypatch.setenv("VITRINE_OPENED", str(tmp_path / "opened"))
    with serving(tmp_path / "log") as address:
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.goto(f"{address}/my_model?my_model_from=folder")
        box = page.get_by_role("textbox", name=words("en")["my_model.path"])
        box.fill(str(tmp_path / "small.gguf"))
        box.press("Enter")
        page.get_by_role("button", name="Open it").click()
        expect(page.get_by_text("is open, here and on the pages")).to_be_visible()
        expect(page.get_by_test_id("stMetricValue").first).to_have_text(f"{bundle.n_parameters:,}")
        visit(page, address, "attention", model="small", text=text)
        expect(page.get_by_text("share 2 heads of keys and values")).to_be_visible()
        expect(page.get_by_text(f"{100 * float(shares[best]):.1f}%").first).to_be_visible()
        page.context.close()
