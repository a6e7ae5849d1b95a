"""A zip from elsewhere: what an attacker or an accident puts in is refused with words, and nothing of it stays."""

import io
import sqlite3
import stat
import zipfile
from contextlib import closing

import pytest

from tests.core.tools.zips import zipped
from transformer_core.training.runs import arrival
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.shelf import Shelf


def refused(tmp_path, packed, words):
    shelf = Shelf(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=words) as caught:
        shelf.import_zip(packed)
    assert len(str(caught.value)) < 600
    assert shelf.all() == []
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and ".queue" not in path.parts]


def with_database(tmp_path, files, *statements):
    """Return the files with a database that an attacker has worked on."""
    path = tmp_path / "changed.sqlite"
    path.write_bytes(files["run.sqlite"])
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.execute("VACUUM")
    changed = path.read_bytes()
    path.unlink()
    return files | {"run.sqlite": changed}


@pytest.mark.parametrize(
    "name",
    [
        *("../evil.py", "/tmp/evil.py", "frames/../../evil", "C:\\evil", "evil.py", "state/x.pkl", "bundle/model.bin"),
        *("frames/0.safetensors", "frames/000.safetensors.py", "worker.lock", "other.csv", ".hidden"),
    ],
)
def test_a_name_that_no_run_has_is_refused(exported, tmp_path, name):
    refused(tmp_path, zipped(exported[1] | {name: b"x"}), "the zip has .* which no run has")


def test_a_zip_that_is_none_or_lacks_or_repeats_something_is_refused(exported, tmp_path):
    files = exported[1]
    refused(tmp_path, io.BytesIO(b"no zip"), "this is no zip that can be read")
    refused(tmp_path, io.BytesIO(zipped(files).getvalue()[:-400]), "this is no zip that can be read")
    for name in ("spec.json", "run.sqlite"):
        refused(tmp_path, zipped({key: files[key] for key in files if key != name}), f"the zip has no {name}")
    packed = zipped(files)
    with zipfile.ZipFile(packed, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("spec.json", b"{}")
    refused(tmp_path, packed, "has 'spec.json' twice")
    refused(tmp_path, tmp_path / "missing.zip", "No such file")


def test_links_and_encrypted_files_are_refused(exported, tmp_path):
    def as_link(entry):
        if entry.filename == "tokenizer.json":
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16

    refused(tmp_path, zipped(exported[1], as_link), "'tokenizer.json' is a link")
    packed = bytearray(zipped({"spec.json": exported[1]["spec.json"], "run.sqlite": b"x"}).getvalue())
    packed[packed.index(b"PK\1\2") + 8] |= 1
    refused(tmp_path, io.BytesIO(bytes(packed)), "this is no zip that can be read")


def test_bombs_are_refused_before_they_are_unpacked(exported, tmp_path, monkeypatch):
    files = exported[1]
    refused(tmp_path, zipped(files | {"spec.json": b" " * (2 << 20)}), r"spec\.json has 2,097,152 bytes")
    refused(tmp_path, zipped(files | {"bundle/card.md": b" " * (33 << 20)}), r"card\.md has .* at most 33,554,432")
    monkeypatch.setattr(arrival, "MOST_UNPACKED", 1 << 20)
    refused(tmp_path, zipped(files | {"rows.csv": b" " * (2 << 20)}), "the zip unpacks to .* at most 1,048,576")
    monkeypatch.setattr(arrival, "MOST_ENTRIES", 3)
    refused(tmp_path, zipped(files), "the zip has 15 files; at most 3 are taken in")
    monkeypatch.setattr(arrival, "MOST_PACKED", 100)
    refused(tmp_path, zipped(files), "at most 100 are taken in")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON steps BEGIN DELETE FROM facts; END", "has the trigger t"),
        ("CREATE VIEW v AS SELECT * FROM steps", "has the view v"),
        ("CREATE TABLE more (a)", "has the table more"),
        ("CREATE INDEX i ON steps (loss)", "has the index i"),
        ("DROP TABLE layouts", "lacks the table layouts"),
        ("ALTER TABLE steps ADD COLUMN evil TEXT", "has another table steps"),
        ("PRAGMA user_version = 9", "has format=9"),
        ("UPDATE status SET step = 99", "holds in status"),
        ("UPDATE status SET state = 'done'", "holds in status"),
        ("DELETE FROM status", "holds in status"),
        ("UPDATE steps SET step = 900 WHERE step = 3", "holds in steps"),
        ("UPDATE steps SET loss = 9e999 WHERE step = 3", "holds in steps"),
        ("UPDATE points SET label = 7 WHERE number = 2", "holds in points"),
        ("UPDATE points SET text = hex(zeroblob(9000)) WHERE number = 2", "holds in points"),
        ("UPDATE frames SET embeddings = zeroblob(8) WHERE number = 2", "holds in frames"),
        ("UPDATE frames SET number = 900 WHERE number = 2", "holds in frames"),
        ("UPDATE frames SET measures = '[1]' WHERE number = 2", "holds in measures"),
        ("UPDATE layouts SET xy = zeroblob(4) WHERE frame = 2", "holds in layouts"),
        ("UPDATE layouts SET method = 'umap' WHERE frame = 2 AND method = 'pca'", "holds in layouts"),
        ("UPDATE facts SET value = '\"gpt\"' WHERE name = 'kind'", "is of kind 'gpt'; its data call for 'classifier'"),
        ("UPDATE facts SET value = '7' WHERE name = 'prompt'", "fact prompt=7 has another form"),
        ("UPDATE facts SET value = '{' WHERE name = 'prompt'", "holds what no run writes"),
        ("UPDATE facts SET value = '{\"d_model\": -1}' WHERE name = 'model'", "the run's model: "),
        ("DELETE FROM facts WHERE name = 'prompt'", "too much or missing: prompt"),
        ("INSERT INTO facts VALUES ('x', '1')", "too much or missing: x"),
        ("UPDATE facts SET value = '\"a\\\" + evil()\"' WHERE name = 'device'", "fact device="),
    ],
)
def test_a_database_that_no_run_wrote_is_refused(exported, tmp_path, statement, words):
    refused(tmp_path, zipped(with_database(tmp_path, exported[1], statement)), words)


def test_a_damaged_database_model_tokenizer_or_spec_is_refused(exported, tmp_path):
    files = exported[1]
    torn = bytearray(files["run.sqlite"])
    torn[5000:9000] = b"\xff" * 4000
    for name, content, words in (
        ("run.sqlite", bytes(torn), "the run's database (is damaged|cannot be read|holds)"),
        ("run.sqlite", b"SQLite format 3\0" + b"\0" * 100, "the run's database"),
        ("frames/002.safetensors", b"\x80\x04pickled", "a model in the zip cannot be read"),
        ("frames/002.safetensors", files["frames/002.safetensors"][:-8], "a model in the zip cannot be read"),
        ("bundle/model.safetensors", b"", "a model in the zip cannot be read"),
        ("tokenizer.json", b"{}", "a model in the zip cannot be read"),
        ("spec.json", b"{}", r"spec\.json: the run's settings cannot be read"),
        ("spec.json", files["spec.json"].replace(b'"epochs": 5', b'"epochs": -5'), "epochs=-5"),
        ("spec.json", b"\xff\xfe", r"spec\.json: "),
        ("spec.json", b"[" * 100_000, r"spec\.json: "),
    ):
        refused(tmp_path, zipped(files | {name: content}), words)
