"""My model: a model opened by name, zip or folder is shown, checked, offered on the pages of its kind, and removed."""

import io
import json
import re
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from safetensors import safe_open
from streamlit.testing.v1 import AppTest

from pages.kit.asking import ask, forget_answers
from pages.kit.models import KINDS_OF_PAGE, READERS, forget_models, model_folders, open_bundle
from pages.kit.navigation import ICONS, page_path
from pages.language import plain, words
from tests.helpers import ROOT, nightly_but
from tests.helpers.open_checkpoints import packed, written
from tests.helpers.pages import asks, metrics, repeats, run, told
from transformer_core.analysis.parameter_counts import count_parts
from transformer_core.bundle import MODELS, Bundle
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints.reference_check import OtherNumbers, Trust
from transformer_core.user_models.store import OpenedModels

EN = words("en")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny BERT as transformers writes it."""
    folder = tmp_path_factory.mktemp("hf") / "tiny-bert"
    written("BertForMaskedLM", folder)
    return folder


@pytest.fixture(autouse=True)
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenedModels:
    """Return the store of opened models, empty."""
    monkeypatch.setenv("VITRINE_OPENED", str(tmp_path / "opened"))
    monkeypatch.delenv("VITRINE_DATA", raising=False)
    forget_models()
    forget_answers()
    return OpenedModels(tmp_path / "opened")


def open_button(app: AppTest, language: str = "en"):
    """Return the button that opens a model."""
    return next(one for one in app.button if one.label == words(language)["my_model.open"])


def field(app: AppTest, key: str):
    """Return the text input with this label."""
    return next(one for one in app.text_input if one.label == EN[key])


def remove(app: AppTest, name: str) -> None:
    """Remove an opened model."""
    app.checkbox(key=f"sure {name}").check().run()
    app.button(key="remove").click().run()
    assert not app.exception


def uploaded(data: bytes, name: str = "tiny.zip", language: str = "en") -> AppTest:
    """Open the page, upload a zip and open it."""
    app = run("my_model", lang=language, my_model_from="zip")
    app.file_uploader[0].set_value((name, data, "application/zip")).run()
    open_button(app, language).click().run()
    assert not app.exception
    return app


def checked(app: AppTest) -> str:
    """Return all texts of the page once the check has ended."""
    app.run()
    assert not app.exception
    return told(app)


@pytest.mark.nightly
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_zip_is_opened_shown_checked_and_removed(checkpoint, opened, language) -> None:
    app = uploaded(packed(checkpoint, **{"evil.py": b"raise SystemExit"}).getvalue(), language=language)
    assert not app.error
    assert list(opened.all()) == ["tiny"]
    assert app.selectbox[0].value == "tiny"
    said = checked(app)
    assert "bert · BertForMaskedLM" in said
    assert words(language)["my_model.left_out"].format(names=plain("evil.py")) in said
    assert words(language)["my_model.badge_agrees"] in "".join(str(one.value) for one in app.markdown)
    bundle = load(opened.all()["tiny"].folder, device="cpu")
    assert app.metric[0].value == f"{bundle.n_parameters:,}"
    with safe_open(checkpoint / "model.safetensors", framework="pt") as file:
        kinds = f"F32 × {len(list(file.keys()))}"
    assert words(language)["my_model.precision_of_both"].format(kinds=kinds, computed="float32") in said
    remove(app, "tiny")
    assert opened.all() == {}
    assert app.selectbox[0].value != "tiny"


@pytest.mark.parametrize(
    ("options", "language"),
    nightly_but(
        [("llama", "en"), ("gemma2", "zh"), ("gemma3", "en"), ("neox", "zh"), ("factorised", "en")],
        [("llama", "en"), ("gemma2", "zh")],
    ),
)
def test_options_of_todays_models_are_named(
    options: str, language: str, opened_odd: Callable[[str, str], Bundle]
) -> None:
    said = words(language)
    bundle = opened_odd("gpt", options)
    config, told_of = bundle.config, told(run("my_model", lang=language, model=bundle.name))
    expected = {
        "n_kv_heads": config.n_kv_heads,
        "gated": said["my_model.yes"] if config.gated else None,
        "parallel": said["my_model.yes"] if config.parallel else None,
        "query_key_norm": None if config.query_key_norm == "none" else config.query_key_norm,
        "score_cap": config.score_cap,
        "logit_cap": config.logit_cap,
        "embedding_width": config.embedding_width,
        "rotary_base": config.rotary_base if config.positions == "rotary" else None,
        "rotary_scaling": None if config.rotary_scaling == "none" else config.rotary_scaling,
    }
    counted = {"gemma2": (3, 2), "gemma3": (2, 1)}.get(options)  # positions, and layers that see so many
    if counted:
        window, count = counted
        expected["windows"] = said["my_model.windows_in"].format(window=window, count=count, all=config.n_layers)
    for name, value in expected.items():
        row = f"| {said[f'my_model.size_{name}']} | {plain(str(value))} |"
        assert (row in told_of) == (value is not None), (options, name)


@pytest.mark.parametrize(("pads", "key", "language"), [(0, "other_numbers", "en"), (2, "other_numbers_padded", "zh")])
def test_the_first_number_that_differs_from_the_reference_is_named(pads, key, language, monkeypatch) -> None:
    other = OtherNumbers("encoder.layer0.residual", "a glass", None, pads, 0.25)
    found = Trust(0.0, 0.5, "transformers 5", 238, None, other)
    monkeypatch.setattr("pages.my_model.trust.awaited", lambda *_, **__: SimpleNamespace(value=found))
    app = run("my_model", lang=language, model="sentiment")
    values = {"site": other.site, "greatest": "0.25", "text": plain("'a glass'"), "pads": pads}
    said = told(app)
    assert words(language)[f"my_model.{key}"].format(**values) in said
    assert words(language)["my_model.badge_differs"] in said


@pytest.mark.parametrize("language", nightly_but(["en", "zh"], ["zh"]))
def test_a_sentence_model_says_what_of_its_library_is_not_applied(language: str, tmp_path: Path) -> None:
    written("BertModel", tmp_path / "tiny")
    kinds = ("Transformer", "Pooling", "Dense")
    modules = [{"idx": place, "type": f"sentence_transformers.models.{kind}"} for place, kind in enumerate(kinds)]
    (tmp_path / "tiny" / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "tiny" / "sentence_bert_config.json").write_text('{"max_seq_length": 17}')
    said = checked(uploaded(packed(tmp_path / "tiny").getvalue(), language=language))
    assert words(language)["my_model.modules_left_out"].format(modules="Dense") in said
    assert f"{words(language)['my_model.max_seq_length']} | 17 |" in said


def test_an_opened_model_is_on_every_page_of_its_kind(checkpoint, opened) -> None:
    app = uploaded(packed(checkpoint).getvalue())
    for page in ("attention", "bert", "tokens"):
        app.switch_page(str(page_path(page))).run()
        assert not app.exception
        assert app.selectbox[0].value == "tiny", page
    app.switch_page(str(page_path("encoder"))).run()
    assert "tiny" not in app.selectbox[0].options


@pytest.mark.parametrize(
    ("data", "words_of_it"),
    nightly_but(
        [
            (b"", "no zip"),
            (b"PK\3\4" + bytes(50), "no zip"),
            (None, "no config.json"),
            (b"PK\5\6" + bytes(18), "no config.json"),
        ],
        lambda case: case[0] == b"" or case[0] is None,
    ),
)
def test_a_zip_that_is_no_checkpoint_is_refused(data, words_of_it, opened) -> None:
    if data is None:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("[Log in](x)", "x")
        data = file.getvalue()
    app = uploaded(data)
    assert words_of_it in app.error[0].value.replace("\\", "")
    assert "zip 文件" in uploaded(data, language="zh").error[0].value
    assert opened.all() == {}


def test_a_taken_name_is_refused_and_another_can_be_chosen(checkpoint, opened) -> None:
    app = uploaded(packed(checkpoint).getvalue(), name="sentiment.zip")
    assert "is taken" in app.error[0].value
    field(app, "my_model.name").set_value("我的模型").run()
    for page in ("train", "my_model"):
        app.switch_page(str(ROOT / "pages" / page / "page.py")).run()
    assert field(app, "my_model.name").value == "我的模型", "it is still there, as is the file"
    open_button(app).click().run()
    assert list(opened.all()) == ["我的模型"]
    assert app.selectbox[0].value == "我的模型"


def test_a_folder_is_opened_in_place_and_never_deleted(checkpoint, opened, monkeypatch) -> None:
    monkeypatch.setenv("VITRINE_DATA", str(checkpoint.parent))
    app = run("my_model", my_model_from="folder")
    field(app, "my_model.path").set_value(str(checkpoint)).run()
    open_button(app).click().run()
    assert not app.exception
    assert not app.error
    assert opened.all()["tiny-bert"].folder == checkpoint.resolve()
    remove(app, "tiny-bert")
    assert (checkpoint / "config.json").is_file()


def test_a_path_that_is_no_checkpoint_is_refused(opened, monkeypatch) -> None:
    monkeypatch.setenv("VITRINE_DATA", "/")
    app = run("my_model", my_model_from="folder")
    for path in ("/nowhere", "\x00", "a" * 3_000, "~nobody/x", "😀", "."):
        field(app, "my_model.path").set_value(path).run()
        assert not app.exception, path
        if not app.error:
            open_button(app).click().run()
        assert not app.exception, path
        assert app.error, path
    assert opened.all() == {}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_where_no_folder_is_named_none_is_offered_not_even_to_a_person_at_this_machine(language: str, opened) -> None:
    app = run("my_model", lang=language, my_model_from="folder")
    said = words(language)
    assert said["my_model.no_folder"] in [info.value for info in app.info]
    assert said["my_model.path"] not in {field.label for field in app.text_input}


def test_a_server_may_keep_visitors_to_one_folder(checkpoint, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("VITRINE_DATA", str(tmp_path))
    app = run("my_model", my_model_from="folder")
    field(app, "my_model.path").set_value(str(checkpoint)).run()
    assert app.error[0].value == EN["my_model.not_here"]


def test_without_a_network_a_name_is_refused_in_words(monkeypatch, opened, tmp_path) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    app = run("my_model", my_model_from="hub")
    assert open_button(app).disabled
    field(app, "my_model.hub_name").set_value("someone/tiny").run()
    open_button(app).click().run()
    assert not app.exception
    for thread in threading.enumerate():
        if thread.name == "fetching":
            thread.join(60)
    if not app.error:
        app.run()
    assert app.error[0].value == EN["my_model.no_hub"]
    assert opened.all() == {}


@pytest.mark.parametrize("query", [{"model": "nowhere"}, {"my_model_from": "x' --"}, {"model": "run:zzzz"}])
def test_an_odd_link_shows_a_toast(query) -> None:
    app = run("my_model", **query)
    assert not app.exception
    assert app.toast


@pytest.mark.nightly
def test_the_parts_come_after_a_prediction_and_its_script_repeats_them() -> None:
    app = run("my_model", model="sentiment")
    assert not app.exception
    asks(app)[0].set_value("embeddings").run()
    assert not app.exception
    assert EN["try.right"] in told(app) or EN["try.wrong"].partition("{")[0] in told(app)
    answer = ask(count_parts, bundle=open_bundle("sentiment"))
    repeats(answer.script, answer.arrays)


def test_the_table_of_pages_says_what_the_pages_ask_for() -> None:
    for page, kinds in KINDS_OF_PAGE.items():
        sources = list((ROOT / "pages" / page).glob("*.py"))
        text = " ".join(found for one in sources for found in re.findall(r"\bheader\((.*?)\)", one.read_text()))
        for kind in () if f'KINDS_OF_PAGE["{page}"]' in text else MODELS:  # it reads the table itself
            reads = f'"{kind}"' in text or ("READERS" in text and kind in READERS)
            reads = reads or ("kinds=" not in text and kind == "classifier")
            assert (kind in kinds) == reads, (page, kind)
    assert set(KINDS_OF_PAGE) <= set(ICONS)


def test_a_shipped_model_is_not_hidden_by_an_opened_one(checkpoint, opened) -> None:
    opened.take_zip(packed(checkpoint), "sentiment", asked="x")
    assert model_folders()["sentiment"] == ROOT / "assets" / "checkpoints" / "sentiment"


def test_sizes_are_in_megabytes_and_classes_in_words() -> None:
    app = run("my_model", lang="zh", model="sentiment")
    zh, shown = words("zh"), metrics(app)
    parameters = int(shown[zh["my_model.parameters"]].replace(",", ""))
    assert shown[zh["my_model.bytes"]] == f"{4 * parameters / 1e6:,.2f} MB"
    assert zh["class.negative"] in told(app)


@pytest.mark.parametrize(("language", "said"), [("en", "Measured quality"), ("zh", "测得的质量")])
def test_the_card_is_in_the_language_of_the_interface(language: str, said: str) -> None:
    app = run("my_model", lang=language, model="sentiment-zh")
    assert not app.exception
    assert f"## {said}" in told(app)


@pytest.mark.usefixtures("on_a_network")
def test_an_opened_model_is_its_openers_alone_until_it_is_shared_and_nobody_else_removes_it(checkpoint, opened) -> None:
    owner = uploaded(packed(checkpoint).getvalue())
    assert "tiny" in owner.selectbox[0].options
    assert "tiny" not in run("my_model").selectbox[0].options
    by_link = run("attention", model="tiny")
    assert by_link.selectbox[0].value == "sentiment"
    assert not by_link.exception
    owner.toggle(key="share tiny").set_value(True).run()
    other = run("my_model", model="tiny")
    assert other.selectbox[0].value == "tiny"
    assert EN["my_model.of_another"] in told(other)
    assert "sure tiny" not in {box.key for box in other.checkbox}
    owner.toggle(key="share tiny").set_value(False).run()
    assert other.run().selectbox[0].value != "tiny"
    remove(owner, "tiny")
    assert opened.all() == {}
