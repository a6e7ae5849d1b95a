"""Opened models: the shelf, and zips from which nothing harmful gets in."""

import io
import json
import shutil
import stat
import struct
import zipfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.bundles import zipped
from tests.helpers.engine import READ_BY, odd_model, small_bundle
from tests.helpers.open_checkpoints import packed, written
from transformer_core import trial
from transformer_core.bundle import save
from transformer_core.checkpoints import load
from transformer_core.text import TokenizerError
from transformer_core.untrusted import archives
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.user_models import store
from transformer_core.user_models.store import Opened, OpenedModels, Room, default_root, name_from


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A tiny encoder as the library wrote it."""
    place = tmp_path_factory.mktemp("encoder") / "tiny"
    written("BertModel", place)
    return place


def lying_in(shelf: Path) -> list[str]:
    """Return what lies on a shelf, without the lock of those who put something there."""
    return [path.name for path in shelf.iterdir() if path.name != store.MAKING]


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
    assert lying_in(tmp_path / "shelf") == []
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
    assert lying_in(tmp_path / "shelf") == ["one"]


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


CODE = b"raise SystemExit('executed')\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, bytes]:
    """A tiny BERT as the library wrote it: its files by name."""
    folder = tmp_path_factory.mktemp("bert")
    written("BertForMaskedLM", folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(tmp_path: Path, packed, words: str) -> None:
    shelf = OpenedModels(tmp_path / "shelf")
    with pytest.raises(BundleError, match=words) as caught:
        shelf.take_zip(packed, "mine", asked="mine.zip")
    assert len(str(caught.value)) < 600
    assert shelf.all() == {}
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != store.MAKING]


@pytest.mark.parametrize("top", ["", "tiny-bert/", "a/b/", "a\\b\\"])
def test_a_checkpoint_is_taken_in_wherever_it_lies_in_the_zip(files, tmp_path, top) -> None:
    shelf = OpenedModels(tmp_path)
    packed = zipped({top + name: content for name, content in files.items()})
    opened = shelf.take_zip(packed, "mine", asked="x.zip")
    assert opened.folder == tmp_path / "mine"
    bundle = load(opened.folder)
    assert (bundle.name, bundle.kind) == ("mine", "bert")
    assert lying_in(tmp_path) == ["mine"]


def test_what_no_checkpoint_needs_stays_in_the_zip(files, tmp_path) -> None:
    more = {
        "modeling_evil.py": CODE,
        "pytorch_model.bin": b"\x80\x04pickled",
        "training_args.pt": b"x",
        "sub/config.json": b"{}",
        "__MACOSX/._config.json": b"x",
        "model.safetensors.py": CODE,
        "opened.json": b'{"folder": "/etc"}',
    }
    opened = OpenedModels(tmp_path).take_zip(zipped(files | more), "mine", asked="x.zip")
    assert set(more) <= set(opened.left_out)
    there = {path.relative_to(opened.folder).as_posix() for path in opened.folder.rglob("*") if path.is_file()}
    assert there <= {*files, "opened.json"}
    assert json.loads((opened.folder / "opened.json").read_text())["folder"] == ""


def test_an_old_folder_of_sentence_transformers_has_its_encoder_one_deeper(folder, tmp_path) -> None:
    old = tmp_path / "old"
    shutil.copytree(folder, old / "0_BERT")
    (old / "1_Pooling").mkdir()
    (old / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (old / "modules.json").write_text('[{"type": "sentence_transformers.models.Transformer", "path": "0_BERT"}]')
    packed_old = {path.relative_to(old).as_posix(): path.read_bytes() for path in old.rglob("*") if path.is_file()}
    model = OpenedModels(tmp_path / "shelf").take_zip(zipped(packed_old), "old", asked="old.zip")
    for place in (old, model.folder):
        assert load(place, device="cpu").config.pooling == "cls"


def test_a_zip_with_backslashes_in_its_names_is_opened(files, tmp_path) -> None:
    """As .NET's writer before 4.6.1 made them."""
    model = OpenedModels(tmp_path).take_zip(
        zipped({f"mine\\{name}": content for name, content in files.items()}), "mine", asked="mine.zip"
    )
    assert load(model.folder, device="cpu").kind == "bert"


@pytest.mark.parametrize(
    "name",
    [
        "../evil.py",
        "/tmp/evil.json",
        "a/../../config.json",
        "C:/evil.json",
        "..\\evil.json",
        "C:\\evil.json",
        "a\\..\\b.json",
        "a\nb",
        "./../x",
    ],
)
def test_a_name_that_leads_out_refuses_the_whole_zip(files, tmp_path, name) -> None:
    refused(tmp_path, zipped(files | {name: b"{}"}), "leads out of it")


def test_tokens_that_lie_beside_the_vocabulary_come_with_the_zip(files, tmp_path) -> None:
    rows = json.loads(files["config.json"])["vocab_size"]
    beside = {"added_tokens.json": b'{"<ent>": 14}', "special_tokens_map.json": b'{"mask_token": "<ent>"}'}
    opened = OpenedModels(tmp_path / "shelf").take_zip(zipped(files | beside), "mine", asked="x.zip")
    tokenizer = load(opened.folder).tokenizer
    assert opened.left_out == ()
    assert (rows, tokenizer.id_of("<ent>"), tokenizer.mask_id, len(tokenizer.encode("<ent>"))) == (60, 14, 14, 3)
    twice = files | {"a/config.json": b"{}", "a\\config.json": b"{}"}
    refused(tmp_path / "old", zipped(twice), "the zip has a name twice, with / and")


def test_links_are_refused(files, tmp_path) -> None:
    def as_link(entry: zipfile.ZipInfo) -> None:
        if entry.filename == "vocab.txt":
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16

    refused(tmp_path, zipped(files | {"vocab.txt": b"/etc/passwd"}, as_link), r"'vocab\.txt' is a link")


def test_bombs_are_refused_from_the_directory_alone(files, tmp_path, monkeypatch) -> None:
    refused(tmp_path, zipped(files | {"vocab.txt": bytes(30 << 20)}), r"unpacks to .* at most 100 times as many")
    refused(tmp_path, zipped(files | {f"{number}.txt": b"" for number in range(10_000)}), r"has 10,00\d files; at most")
    monkeypatch.setattr(store, "MOST_RATIO", 2_000)
    refused(tmp_path, zipped(files | {"vocab.txt": bytes(33 << 20)}), r"vocab\.txt has .* at most 33,554,432")
    monkeypatch.setattr(store, "MOST_UNPACKED", 1 << 20)
    refused(tmp_path, zipped(files | {"a.bin": bytes(2 << 20)}), "the zip unpacks to .* at most 1,048,576")
    monkeypatch.setattr(store, "MOST_PACKED", 100)
    refused(tmp_path, zipped(files), "at most 100 are taken in")


def test_a_directory_of_any_size_is_not_read(files, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_DIRECTORY", 70_000)
    refused(tmp_path, zipped({f"{number:05d}": b"" for number in range(2_000)}), "list of files has more than 70,000")


def test_a_file_that_says_less_than_it_holds_is_refused(files, tmp_path) -> None:
    packed = bytearray(zipped(files | {"vocab.txt": b"x" * 5_000}).getvalue())
    for sign, place in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        start = 0
        while (start := packed.find(sign, start)) >= 0:
            if packed[start + place : start + place + 4] == struct.pack("<I", 5_000):
                packed[start + place : start + place + 4] = struct.pack("<I", 10)
            start += 4
    refused(tmp_path, io.BytesIO(bytes(packed)), r"no zip that can be read|larger than it says|vocab")


def test_what_is_no_zip_or_no_checkpoint_is_told(files, tmp_path) -> None:
    refused(tmp_path, io.BytesIO(b""), "this is no zip that can be read")
    refused(tmp_path, io.BytesIO(b"PK\3\4" + bytes(99)), "this is no zip that can be read")
    refused(tmp_path, io.BytesIO(zipped(files).getvalue()[:-400]), "this is no zip that can be read")
    refused(tmp_path, zipped({}), r"has no config\.json")
    refused(tmp_path, zipped({"README.md": b"x"}), r"has no config\.json")
    twice = {f"{top}/{name}": content for top in "ab" for name, content in files.items()}
    refused(tmp_path, zipped(twice), "holds several models: a/, b/")
    refused(tmp_path, zipped(files, lambda entry: setattr(entry, "compress_type", zipfile.ZIP_LZMA)), "an uncommon way")


def test_what_is_not_supported_or_damaged_is_told(files, tmp_path) -> None:
    settings = json.loads(files["config.json"])
    without = {name: content for name, content in files.items() if name != "model.safetensors"}
    for changed, words in (
        (files | {"config.json": b"{"}, "is not JSON"),
        (files | {"config.json": b"[" * 100_000}, "nested too deeply|not JSON"),
        (files | {"config.json": json.dumps(settings | {"model_type": "bloom"}).encode()}, "'bloom' is not supported"),
        (files | {"config.json": json.dumps(settings | {"auto_map": {"x": "evil.X"}}).encode()}, "trust_remote_code"),
        (without | {"pytorch_model.bin": b"\x80\x04"}, r"has no model\.safetensors"),
        (files | {"model.safetensors": struct.pack("<Q", 1 << 40) + b"{}"}, "is not a safetensors file"),
        (files | {"model.safetensors": b"\x80\x04pickled"}, "is not a safetensors file"),
        (files | {"tokenizer.json": b"{}"}, "mine"),
    ):
        refused(tmp_path, zipped(changed), words)


def test_a_tokenizer_that_swells_a_text_is_refused_at_once(files, tmp_path) -> None:
    """Five replacements of one letter by a hundred would make ten thousand million of it."""
    longer = {"type": "Replace", "pattern": {"String": "z"}, "content": "z" * 100}
    values = json.loads(files["tokenizer.json"])
    for k in (4, 5):
        swelling = values | {"normalizer": {"type": "Sequence", "normalizers": [longer] * k}}
        whole = {"tokenizer_config.json": b'{"tokenizer_class": "PreTrainedTokenizerFast"}'}
        refused(
            tmp_path,
            zipped(files | whole | {"tokenizer.json": json.dumps(swelling).encode()}),
            r"mine/tokenizer\.json: normalizer\.normalizers\[0\], a Replace, makes texts 100 times as long",
        )


def test_a_tokenizer_that_fails_in_its_trial_is_refused(files, tmp_path, monkeypatch) -> None:
    def fail(_) -> None:
        raise TokenizerError("it took more than 10 s and 1,024 MB")

    monkeypatch.setattr(trial, "try_out", fail)
    refused(tmp_path, zipped(files), r"mine/tokenizer\.json: it took more than 10 s")


@pytest.mark.parametrize(
    ("kind", "weights", "words"),
    [
        ("gpt", "overflowing", r"gpt-overflowing computes .* from .*; pages show at most 1e\+12"),
        ("classifier", "beyond", r"classifier-beyond has .* from .* to 3e\+38; pages show at most 1e\+06"),
        *[(kind, weights, "") for kind in READ_BY for weights in ("zero", "denormal", "large", "biased", "short")],
    ],
)
def test_a_model_whose_numbers_no_page_can_show_is_refused(kind, weights, words) -> None:
    bundle = odd_model(kind, weights)
    with pytest.raises(BundleError, match=words) if words else nullcontext():
        trial.try_numbers(bundle)


def test_a_model_that_reads_too_few_tokens_for_a_page_is_refused(tmp_path, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("short") / "glass"
    save(small_bundle(max_len=trial.FEWEST - 1), folder)
    refused(tmp_path, packed(folder), "max_len=7; a page shows at least 8 tokens")


def test_tokens_that_are_added_without_end_are_refused_at_once(files, tmp_path) -> None:
    added = {str(k): {"content": f"<{k}>"} for k in range(100, 50_000)}
    without = {name: content for name, content in files.items() if name != "tokenizer.json"}
    words = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n"
    settings = json.dumps({"added_tokens_decoder": added}).encode()
    refused(
        tmp_path,
        zipped(without | {"vocab.txt": words, "tokenizer_config.json": settings}),
        "added_tokens_decoder has 49,900 tokens, must have at most 8,192",
    )
