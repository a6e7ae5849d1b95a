"""What a run learns from: files, reviews on this machine and pasted texts, with their faults said in words."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.language import plain, prose, words
from pages.serving.limits import may_read
from tests.helpers import ROOT, nightly_but
from tests.helpers.pages import nothing_starts, run, told
from tests.pages.train.test_page import button
from transformer_core.training.runs.presets import PRESETS
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.spec import Given

ROWS = [(f"a {word} film {i}", label) for i in range(20) for word, label in (("fine", "good"), ("dull", "bad"))]
TABLE = "\n".join(("id,review,kind", *(f"{i},{text},{label}" for i, (text, label) in enumerate(ROWS))))


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nothing_starts(monkeypatch, tmp_path / "runs")
    monkeypatch.setenv("VITRINE_DATA", str(tmp_path))


def upload(name: str, data: bytes, language: str = "en") -> AppTest:
    """Open the form and bring a file."""
    app = run("train", lang=language, source="table")
    assert button(app, "train.start", language).disabled
    app.file_uploader(key="table").set_value((name, data, "text/csv")).run()
    assert not app.exception
    return app


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_table_is_read_and_learned_from(language: str, tmp_path: Path) -> None:
    app = upload("mine.csv", TABLE.encode(), language)
    said = told(app)
    assert (
        words(language)["data.read"].format(rows="40", encoding="utf-8", classes=2, names="bad (20), good (20)") in said
    )
    assert "a fine film" in said
    button(app, "train.start", language).click().run()
    assert not app.exception
    (store,) = RunList(tmp_path / "runs").all()
    assert store.spec.data.labels == ("bad", "good")
    rows = [json.loads(line) for line in (store.folder / store.spec.data.file).read_text().splitlines()]
    assert rows[0] == {"text": "a fine film 0", "label": 1}
    assert len(rows) == 40
    assert store.spec.data.source == "table"
    assert store.spec.data.given == Given(name="mine.csv", count=40)
    assert (store.spec.data.examples, store.spec.data.held_out) == (30, 10)
    assert store.spec.name == "mine.csv · quick"


@pytest.mark.parametrize("preset", nightly_but(PRESETS, {"quick", "imdb", "reverse"}))
def test_a_table_is_learned_from_under_every_preset_chosen_before_or_after(preset: str, tmp_path: Path) -> None:
    app = run("train", source="table", preset=preset)
    app.file_uploader(key="table").set_value(("mine.csv", TABLE.encode(), "text/csv")).run()
    for chosen in (preset, "quick" if preset != "quick" else "imdb", preset):
        app.button_group(key="preset@train").set_value(chosen).run()
        assert not app.exception
        assert app.selectbox(key="source@train").value == "table"
        assert "mine.csv, 40 rows, bad / good" in told(app)
    button(app, "train.start").click().run()
    (store,) = RunList(tmp_path / "runs").all()
    assert store.spec.data.described == "mine.csv, 40 rows, bad / good"
    assert store.spec.data.examples + store.spec.data.held_out == 40


def test_a_preset_speaks_of_its_own_data_only_where_these_are_learned() -> None:
    said = prose("en", "train")["preset_quick"].split("*")[0]
    assert said in told(run("train"))
    app = upload("mine.csv", TABLE.encode())
    assert said not in told(app)
    button(app, "data.preset_own").click().run()
    assert said in told(app)


def test_the_presets_own_data_come_back_by_one_button(tmp_path: Path) -> None:
    app = upload("mine.csv", TABLE.encode())
    button(app, "data.preset_own").click().run()
    assert app.selectbox(key="source@train").value == "reviews"
    button(app, "train.start").click().run()
    (store,) = RunList(tmp_path / "runs").all()
    assert store.spec.data.described == "built-in reviews in English, 8,000"


def test_another_source_is_what_is_learned(tmp_path: Path) -> None:
    app = run("train", source="sort")
    button(app, "train.start").click().run()
    (store,) = RunList(tmp_path / "runs").all()
    assert (store.spec.data.source, store.spec.name) == ("sort", "sort · quick")


def test_more_examples_than_there_are_is_said(tmp_path: Path) -> None:
    app = run("train", source="table", examples="300")
    app.file_uploader(key="table").set_value(("mine.csv", TABLE.encode(), "text/csv")).run()
    assert button(app, "train.start").disabled
    assert any("there are 40 different examples, and 310" in warning.value for warning in app.warning)


def test_columns_can_be_chosen_otherwise() -> None:
    app = upload("mine.csv", TABLE.replace("review", "kind2").replace("id,", "stars,").encode())
    box = next(one for one in app.selectbox if one.label == words("en")["data.label_column"])
    box.set_value("stars").run()
    assert not app.exception
    assert button(app, "train.start").disabled
    assert any("40 different labels" in warning.value for warning in app.warning)


def test_a_file_and_what_was_chosen_beside_it_are_still_there_after_another_page() -> None:
    app = upload("mine.csv", f"Reviews of 2026\n{TABLE.replace('id,', 'stars,')}".encode())
    assert words("en")["data.preamble"].format(lines="Reviews of 2026") in told(app)
    app.selectbox(key="label_column@train").set_value("review").run()
    app.switch_page(str(ROOT / "pages" / "my_model" / "page.py")).run()
    assert not app.file_uploader
    app.switch_page(str(ROOT / "pages" / "train" / "page.py")).run()
    assert words("en")["upload.kept"].format(name=plain("mine.csv")) in told(app)
    assert app.selectbox(key="label_column@train").value == "review"
    app.selectbox(key="label_column@train").set_value("kind").run()
    assert "mine.csv, 40 rows, bad / good" in told(app)
    button(app, "upload.remove").click().run()
    assert "mine.csv" not in told(app)
    assert button(app, "train.start").disabled


def test_another_encoding_is_found_and_shown() -> None:
    table = "文本,标签\n" + "\n".join(
        f"这部电影很{'好' if i % 2 else '糟'}看，真的{i},{'好' if i % 2 else '差'}" for i in range(60)
    )
    app = upload("mine.csv", table.encode("gb18030"))
    assert "gb18030" in told(app)
    assert "这部电影" in told(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_broken_rows_are_counted_and_shown(language: str) -> None:
    app = upload("mine.csv", f"{TABLE}\n99,only two\n100,,good\n".encode(), language)
    said = words(language)
    (box,) = (box for box in app.expander if said["data.broken"].format(count=2) == box.label)
    assert said["data.broken_of"].format(count=1, why=said["intake.too_few_cells"]) in box.markdown[0].value
    assert [said["intake.empty_text"] in one.value for one in box.caption] == [False, True]
    app = upload("mine.csv", f"{TABLE}\n100,,good\n".encode(), language)
    assert any(box.label == said["data.broken"].format(count=1) for box in app.expander)
    assert not button(app, "train.start", language).disabled


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG\r\n\x1a\n" + bytes(200), b"text,label\nonly,one\nclass,one\n", b"PK\x03\x04" + bytes(99)]
)
def test_what_is_no_table_is_said_in_words(data: bytes) -> None:
    app = upload("mine.csv", data)
    assert app.warning
    assert button(app, "train.start").disabled


def test_text_in_a_file_cannot_put_a_link_on_the_page() -> None:
    table = TABLE.replace("a fine film", "[Log in](https://example.org)")
    assert "[Log in](" not in told(upload("mine.csv", table.encode()))


def test_reviews_on_this_machine(tmp_path: Path) -> None:
    for part in ("train", "test"):
        for name, word in (("pos", "fine"), ("neg", "dull")):
            folder = tmp_path / "aclImdb" / part / name
            folder.mkdir(parents=True)
            for i in range(40):
                (folder / f"{i}_1.txt").write_text(f"a {word} film of {part} number {i}")
    app = run("train", source="imdb", path=str(tmp_path), examples="64", held_out="32")
    assert not app.exception
    assert words("en")["data.reviews"].format(count=128) in told(app)  # of which a quarter can be held out
    button(app, "train.start").click().run()
    (store,) = RunList(tmp_path / "runs").all()
    assert store.spec.data.labels == ("negative", "positive")


@pytest.mark.parametrize("path", ["", "nowhere/at/all", "\x00", "a" * 5_000])
def test_a_place_without_reviews_is_said_in_words(path: str) -> None:
    app = run("train", source="imdb", path=path)
    assert not app.exception
    assert button(app, "train.start").disabled
    assert not path or "root:" not in told(app)


def test_a_server_may_keep_visitors_to_one_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    monkeypatch.setenv("VITRINE_DATA", str(tmp_path / "open"))
    assert may_read(tmp_path / "open" / "aclImdb")
    for path in ("/etc/passwd", tmp_path / "open" / ".." / "x", tmp_path / "openly"):
        assert not may_read(Path(path))
        app = run("train", source="imdb", path=str(path))
        assert any(plain(words("en")["data.not_here"]) in warning.value for warning in app.warning)


def test_where_no_folder_is_named_nothing_of_this_machine_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("VITRINE_DATA")
    assert not may_read(tmp_path)
    app = run("train", source="imdb", path=str(tmp_path))
    assert any(plain(words("en")["data.not_here"]) in warning.value for warning in app.warning)
    monkeypatch.setenv("VITRINE_DATA", "")
    assert not may_read(tmp_path)


@pytest.mark.parametrize("source", ["characters", "masked_words"])
def test_a_pasted_text_is_learned_from_and_is_in_the_link(source: str, tmp_path: Path) -> None:
    text = " ".join(f"Film {number} was dull. It was fine." for number in range(40))
    app = run("train", source=source)
    app.text_area(key="passage@train").set_value(text).run()
    assert app.query_params["passage"] == text
    button(app, "train.start").click().run()
    (store,) = RunList(tmp_path / "runs").all()
    assert (store.folder / store.spec.data.file).read_text() == text.strip()


def test_too_short_a_text_is_said_in_words() -> None:
    app = run("train", source="characters", passage="too short")
    assert button(app, "train.start").disabled
    assert any("9 characters" in warning.value for warning in app.warning)


PAIRS = "\n".join(f"the dog number {n}\tle chien numéro {n}" for n in range(30))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pasted_pairs_are_read_and_learned_from(language: str, tmp_path: Path) -> None:
    app = run("train", lang=language, source="pairs", pairs=PAIRS + "\nno tab")
    assert not app.exception
    assert words(language)["data.pairs_read"].format(count="30") in told(app)
    assert words(language)["intake.too_few_cells"] in told(app)
    button(app, "train.start", language).click().run()
    (store,) = RunList(tmp_path / "runs").all()
    assert store.spec.data.given == Given(name="", count=30)
    assert (store.folder / store.spec.data.file).read_text() == PAIRS + "\n"
    assert store.spec.kind == "translation"


def test_a_folder_of_two_languages_is_offered_both_ways(tmp_path: Path) -> None:
    for language, word in (("en", "dog"), ("fr", "chien")):
        lines = "".join(f"{word} {n}\n" for n in range(40))
        (tmp_path / f"train.{language}").write_text(lines, encoding="utf-8")
    app = run("train", source="pairs", path=str(tmp_path), pairs_files="train: fr → en")
    assert not app.exception
    button(app, "train.start").click().run()
    (store,) = RunList(tmp_path / "runs").all()
    assert store.spec.data.given == Given(name="train: fr → en", count=40)
    assert "chien 0\tdog 0\n" in (store.folder / store.spec.data.file).read_text()
    outside = run("train", source="pairs", path="/etc")
    assert plain(words("en")["data.not_here"]) in told(outside)


@pytest.mark.parametrize("text", ["no pairs at all", "🙂\t", "x" * 10_000])
def test_what_is_no_pairs_gets_a_message_and_stays(text: str) -> None:
    app = run("train", source="pairs", pairs=text)
    assert not app.exception
    assert "at least 24 are needed" in told(app)
    assert button(app, "train.start").disabled
