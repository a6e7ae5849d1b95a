"""The shelf of opened models: names, room, notes of what lies elsewhere, and what is removed."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.open_checkpoints import packed, written
from transformer_core.bundle_files import BundleError
from transformer_core.user_models.store import Opened, OpenedModels, Room, default_root, name_from


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A tiny encoder as the library wrote it."""
    place = tmp_path_factory.mktemp("encoder") / "tiny"
    written("BertModel", place)
    return place


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("bert.zip", "bert"),
        ("C:\\models\\my bert.zip", "my-bert"),
        ("google-bert/bert-base-uncased", "bert-base-uncased"),
        ("/home/me/model/", "model"),
        ("我的模型.zip", "我的模型"),
        ("😀.zip", "model"),
        ("../..", "model"),
        ("", "model"),
        ("x" * 99, "x" * 64),
    ],
)
def test_a_name_is_made_of_what_a_file_is_called(text, name) -> None:
    assert name_from(text) == name


def test_a_model_comes_and_goes(folder, tmp_path) -> None:
    shelf = OpenedModels(tmp_path / "shelf")
    assert shelf.all() == {}
    shelf.take_zip(packed(folder), "one", asked="tiny.zip")
    shelf.take_note(Opened("two", "folder", str(folder), folder))
    assert {name: model.origin for name, model in shelf.all().items()} == {"one": "zip", "two": "folder"}
    assert shelf.all()["two"].folder == folder
    for name in ("one", "two"):
        shelf.remove(name)
    assert shelf.all() == {}
    assert (folder / "config.json").is_file()
    assert list((tmp_path / "shelf").iterdir()) == []
    for name in ("one", "..", "/", ""):
        with pytest.raises(BundleError, match="there is no opened model"):
            shelf.remove(name)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "run:abc", "hf:x", ".x", "-x", "x" * 65, "a\n", "😀"])
def test_a_name_that_is_none_is_told(folder, tmp_path, name) -> None:
    with pytest.raises(BundleError, match="must be at most 64"):
        OpenedModels(tmp_path).take_note(Opened(name, "folder", "", folder))


def test_a_taken_name_and_a_full_shelf_are_told(folder, tmp_path) -> None:
    shelf = OpenedModels(tmp_path / "shelf")
    with pytest.raises(BundleError, match="is taken; choose another"):
        shelf.take_zip(packed(folder), "Sentiment", asked="", taken=["sentiment"])
    shelf.take_zip(packed(folder), "one", asked="")
    with pytest.raises(BundleError, match="is taken; choose another"):
        shelf.take_zip(packed(folder), "ONE", asked="")
    for room, words in (
        (Room(size=10_000), r"would have .* at most 10,000 are kept"),
        (Room(all_size=10_000), r"would have .* at most 10,000 are kept"),
        (Room(models=1), "at most 1 are kept; remove one"),
        (Room(all_models=1), "at most 1 are kept; remove one"),
    ):
        with pytest.raises(BundleError, match=words):
            OpenedModels(tmp_path / "shelf", room=room).take_zip(packed(folder), "two", asked="")
    assert list(shelf.all()) == ["one"]
    assert [path.name for path in (tmp_path / "shelf").iterdir()] == ["one"]


def test_what_one_owner_keeps_takes_no_room_from_another(folder: Path, tmp_path: Path) -> None:
    room = Room(models=1, size=1 << 20)
    for owner in ("ann", "bob"):
        OpenedModels(tmp_path / "shelf", owner, room=room).take_zip(packed(folder), owner, asked="")
    with pytest.raises(BundleError, match="there are 1 opened models, and at most 1 are kept"):
        OpenedModels(tmp_path / "shelf", "ann", room=room).take_zip(packed(folder), "third", asked="")


def test_a_note_that_cannot_be_read_is_passed_over(tmp_path) -> None:
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"folder": 7}'), ("d", "x" * 100_000), (".old-x", "{}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "opened.json").write_text(text)
    assert OpenedModels(tmp_path).all() == {}


def test_where_they_lie(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("VITRINE_OPENED", str(tmp_path))
    assert default_root() == tmp_path
    monkeypatch.delenv("VITRINE_OPENED")
    assert default_root().parts[-2:] == (".runs", "models")


def test_a_disk_that_may_not_be_written_to_is_told(folder, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match="'x' cannot be opened: "):
        OpenedModels(tmp_path / "file" / "shelf").take_note(Opened("x", "folder", "", folder))


def test_a_model_belongs_to_who_opened_it_until_it_is_removed_and_is_shared_where_that_was_said(
    folder: Path, tmp_path: Path
) -> None:
    one, other = OpenedModels(tmp_path / "shelf", "ann"), OpenedModels(tmp_path / "shelf", "bob")
    one.take_zip(packed(folder), "hers", asked="tiny.zip")
    other.take_note(Opened("his", "folder", str(folder), folder))
    assert {name: (model.owner, model.shared) for name, model in one.all().items()} == {
        "hers": ("ann", False),
        "his": ("bob", False),
    }
    for name in ("hers", "his"):
        before = one.all()[name]
        one.share(name, shared=True)
        assert other.all()[name] == replace(before, shared=True)
    one.share("hers", shared=False)
    assert not one.all()["hers"].shared
    with pytest.raises(BundleError, match="there is no opened model named 'no'"):
        one.share("no", shared=True)
