"""My model: what comes in by name, zip or folder is shown, checked, taken to the pages that read it, and goes again."""

import io
import re
import time
import zipfile
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.my_model.open import fetching
from pages.my_model.show import KINDS_OF_PAGE
from pages.my_model.trust import _checks, forget_checks
from pages.ui.language import plain, words
from pages.ui.models import forget_models, model_folders
from pages.ui.navigation import ICONS, page_path
from tests.core.tools.open_checkpoints import packed, written
from tests.pages.running import asks, run, told
from tests.pages.scripts import repeats
from tests.paths import ROOT
from transformer_core.analysis.parameter_counts import count_parts
from transformer_core.bundle import MODELS
from transformer_core.checkpoints import load
from transformer_core.user_models.store import OpenedModels

EN = words("en")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT as the library wrote it."""
    folder = tmp_path_factory.mktemp("hf") / "tiny-bert"
    written("BertForMaskedLM", folder)
    return folder


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenedModels:
    """An empty shelf."""
    monkeypatch.setenv("VITRINE_OPENED", str(tmp_path / "opened"))
    monkeypatch.delenv("VITRINE_DATA", raising=False)
    forget_models()
    forget_checks()
    return OpenedModels(tmp_path / "opened")


def button(app: AppTest, key: str, language: str = "en", **values: str):
    """Return the button with this word on it."""
    label = words(language)[key].format(**values) if values else words(language)[key]
    return next(one for one in app.button if one.label == label)


def uploaded(data: bytes, name: str = "tiny.zip", language: str = "en") -> AppTest:
    """Bring a zip and open it."""
    app = run("my_model", lang=language, my_model_from="zip")
    app.file_uploader[0].set_value((name, data, "application/zip")).run()
    button(app, "my_model.open", language).click().run()
    assert not app.exception
    return app


def checked(app: AppTest) -> str:
    """Return all that is told once the check has ended."""
    for _, check in list(_checks.values()):
        check.exception(timeout=120)
    app.run()
    assert not app.exception
    return told(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_zip_is_opened_shown_checked_and_removed(checkpoint, shelf, language) -> None:
    app = uploaded(packed(checkpoint, **{"evil.py": b"raise SystemExit"}).getvalue(), language=language)
    assert not app.error
    assert list(shelf.all()) == ["tiny"]
    assert app.selectbox[0].value == "tiny"
    said = checked(app)
    assert "bert · BertForMaskedLM" in said
    assert words(language)["my_model.left_out"].format(names=plain("evil.py")) in said
    assert words(language)["my_model.badge_agrees"] in "".join(str(one.value) for one in app.markdown)
    bundle = load(shelf.all()["tiny"].folder, device="cpu")
    assert app.metric[0].value == f"{bundle.n_parameters:,}"
    app.checkbox(key="sure tiny").check().run()
    app.button(key="remove").click().run()
    assert not app.exception
    assert shelf.all() == {}
    assert app.selectbox[0].value != "tiny"


def test_an_opened_model_is_on_every_page_of_its_kind(checkpoint, shelf) -> None:
    app = uploaded(packed(checkpoint).getvalue())
    for page in ("attention", "bert", "tokens"):
        app.switch_page(str(page_path(page))).run()
        assert not app.exception
        assert app.selectbox[0].value == "tiny", page
    app.switch_page(str(page_path("encoder"))).run()
    assert "tiny" not in app.selectbox[0].options


@pytest.mark.parametrize(
    ("data", "words_of_it"),
    [
        (b"", "no zip"),
        (b"PK\3\4" + bytes(50), "no zip"),
        (None, "no config.json"),
        (b"PK\5\6" + bytes(18), "no config.json"),
    ],
)
def test_a_zip_that_is_none_is_told_in_words(data, words_of_it, shelf) -> None:
    if data is None:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("[Log in](x)", "x")
        data = file.getvalue()
    app = uploaded(data)
    assert words_of_it in app.error[0].value.replace("\\", "")
    assert shelf.all() == {}


def test_a_taken_name_is_told_and_another_can_be_chosen(checkpoint, shelf) -> None:
    app = uploaded(packed(checkpoint).getvalue(), name="sentiment.zip")
    assert "is taken" in app.error[0].value
    field = next(one for one in app.text_input if one.label == EN["my_model.name"])
    field.set_value("我的模型").run()
    button(app, "my_model.open").click().run()
    assert list(shelf.all()) == ["我的模型"]
    assert app.selectbox[0].value == "我的模型"


def test_a_folder_is_opened_where_it_lies(checkpoint, shelf, monkeypatch) -> None:
    monkeypatch.setenv("VITRINE_DATA", str(checkpoint.parent))
    app = run("my_model", my_model_from="folder")
    next(one for one in app.text_input if one.label == EN["my_model.path"]).set_value(str(checkpoint)).run()
    button(app, "my_model.open").click().run()
    assert not app.exception
    assert not app.error
    assert shelf.all()["tiny-bert"].folder == checkpoint.resolve()
    app.checkbox(key="sure tiny-bert").check().run()
    app.button(key="remove").click().run()
    assert (checkpoint / "config.json").is_file()


@pytest.mark.parametrize("path", ["/nowhere", "\x00", "a" * 3_000, "~nobody/x", "😀", "."])
def test_a_folder_that_is_none_is_told(path, shelf, monkeypatch) -> None:
    monkeypatch.setenv("VITRINE_DATA", "/")
    app = run("my_model", my_model_from="folder")
    next(one for one in app.text_input if one.label == EN["my_model.path"]).set_value(path).run()
    assert not app.exception
    if not app.error:
        button(app, "my_model.open").click().run()
    assert not app.exception
    assert app.error
    assert shelf.all() == {}


def test_a_server_may_keep_visitors_to_one_folder(checkpoint, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("VITRINE_DATA", str(tmp_path))
    app = run("my_model", my_model_from="folder")
    next(one for one in app.text_input if one.label == EN["my_model.path"]).set_value(str(checkpoint)).run()
    assert app.error[0].value == EN["my_model.not_here"]


def test_without_a_network_a_name_is_refused_in_plain_words(monkeypatch, shelf, tmp_path) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    app = run("my_model", my_model_from="hub")
    assert button(app, "my_model.open").disabled
    next(one for one in app.text_input if one.label == EN["my_model.hub_name"]).set_value("someone/tiny").run()
    button(app, "my_model.open").click().run()
    assert not app.exception
    until = time.monotonic() + 30
    while fetching().seconds is not None and time.monotonic() < until:
        time.sleep(0.05)
    if not app.error:
        app.run()
    assert app.error[0].value == EN["my_model.no_hub"]
    assert shelf.all() == {}


@pytest.mark.parametrize("query", [{"model": "nowhere"}, {"my_model_from": "x' --"}, {"model": "run:zzzz"}])
def test_odd_links_are_told(query) -> None:
    app = run("my_model", **query)
    assert not app.exception
    assert app.toast


def test_the_parts_come_after_a_prediction_and_its_script_repeats_them() -> None:
    app = run("my_model", model="sentiment")
    assert not app.exception
    asks(app)[0].set_value("embeddings").run()
    assert not app.exception
    assert EN["try.right"] in told(app) or EN["try.wrong"].partition("{")[0] in told(app)
    from pages.ui.asking import ask
    from pages.ui.models import open_bundle

    answer = ask(count_parts, bundle=open_bundle("sentiment"))
    repeats(answer.script, answer.arrays)


def test_the_table_of_pages_says_what_the_pages_ask_for() -> None:
    for page, kinds in KINDS_OF_PAGE.items():
        sources = list((ROOT / "pages" / page).glob("*.py"))
        text = " ".join(found for one in sources for found in re.findall(r"\bheader\((.*?)\)", one.read_text()))
        for kind in MODELS:
            reads = f'"{kind}"' in text or ("READERS" in text and kind in ("classifier", "bert", "gpt", "encoder"))
            reads = reads or ("kinds=" not in text and kind == "classifier")
            assert (kind in kinds) == reads, (page, kind)
    assert set(KINDS_OF_PAGE) <= set(ICONS)


def test_a_shipped_model_is_not_hidden_by_an_opened_one(checkpoint, shelf) -> None:
    shelf.take_zip(packed(checkpoint), "sentiment", asked="x")
    assert model_folders()["sentiment"] == ROOT / "assets" / "checkpoints" / "sentiment"
