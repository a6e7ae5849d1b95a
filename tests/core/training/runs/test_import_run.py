"""A zip from elsewhere: what an attacker or an accident puts in is refused with words, and nothing of it stays."""

import io
import json
import re
import stat
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.bundles import zipped
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.exchange import import_run
from transformer_core.training.runs.run_list import RunList


def refused(tmp_path, packed, words):
    runs = RunList(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=words) as caught:
        runs.import_zip(packed)
    assert len(str(caught.value)) < 600
    assert runs.all() == []
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and "queue" not in path.name]


def with_records(files, change):
    """Return the files with other records: `change` gets the list of all, each as [kind, values]."""
    records = [list(*json.loads(line).items()) for line in files["records.jsonl"].splitlines()]
    change(records)
    return files | {"records.jsonl": "\n".join(json.dumps({kind: values}) for kind, values in records).encode()}


def with_arrays(files, **changed):
    """Return the files with other arrays; None leaves one out, bytes stand for its whole file."""
    with zipfile.ZipFile(io.BytesIO(files["arrays.npz"])) as packed:
        contents = {name: packed.read(name) for name in packed.namelist()}
    for name, array in changed.items():
        contents[f"{name}.npy"] = array if isinstance(array, bytes | None) else saved(array)
    return files | {"arrays.npz": zipped({n: c for n, c in contents.items() if c is not None}).getvalue()}


def saved(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def arrays_of(files):
    return dict(np.load(io.BytesIO(files["arrays.npz"])))


def of(kind, number=0):
    """Return a function that gives the values of a record."""
    return lambda records: [values for found, values in records if found == kind][number]


def put(kind, place=0, /, **values):
    """Return a change of records: other values in one of them."""
    return lambda records: of(kind, place)(records).update(values)


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
    for name in ("spec.json", "records.jsonl", "arrays.npz"):
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
    packed = bytearray(
        zipped({"spec.json": exported[1]["spec.json"], "records.jsonl": b"x", "arrays.npz": b"x"}).getvalue()
    )
    packed[packed.index(b"PK\1\2") + 8] |= 1
    refused(tmp_path, io.BytesIO(bytes(packed)), "this is no zip that can be read")


def test_bombs_are_refused_before_they_are_unpacked(exported, tmp_path, monkeypatch):
    files = exported[1]
    refused(tmp_path, zipped(files | {"spec.json": b" " * (2 << 20)}), r"spec\.json has 2,097,152 bytes")
    refused(tmp_path, zipped(files | {"bundle/card.md": b" " * (33 << 20)}), r"card\.md has .* at most 33,554,432")
    monkeypatch.setattr(import_run, "MOST_UNPACKED", 1 << 20)
    refused(tmp_path, zipped(files | {"rows.csv": b" " * (2 << 20)}), "the zip unpacks to .* at most 1,048,576")
    monkeypatch.setattr(import_run, "MOST_ENTRIES", 3)
    refused(tmp_path, zipped(files), "the zip has 16 files; at most 3 are taken in")
    monkeypatch.setattr(import_run, "MOST_PACKED", 100)
    refused(tmp_path, zipped(files), "at most 100 are taken in")


def without(kind, *names):
    """Return a change of records: one kind, or entries of its first record, left out."""

    def change(records):
        for name in names:
            del of(kind)(records)[name]
        if not names:
            records[:] = [record for record in records if record[0] != kind]

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda records: records.append(["trigger", {}]), "holds in a record what no run writes: 'trigger'"),
        (lambda records: records.append(["steps", {}]), "holds in a record what no run writes: 'steps'"),
        (lambda records: records.append(["status", of("status")(records)]), "more than 1 of status"),
        (lambda records: records.extend([["point", of("point")(records)]] * 1_400), "more than 1,400 of point"),
        (lambda records: records.extend([["frame", of("frame")(records)]] * 64), "more than 64 of frame"),
        (without("layout"), "arrays.npz has 'pca_000.npy', which no run has"),
        (without("curves"), "records.jsonl has no curves"),
        (without("facts"), "records.jsonl has no facts"),
        (without("format"), "records.jsonl has no format"),
        (put("point", 1, evil="x"), "holds in point"),
        (without("point", "text"), "holds in point"),
        (put("format", version=9), "has format=9; format=2 is taken in"),
        (put("status", step=99), "holds in status"),
        (put("status", step=True), "holds in status"),
        (put("status", state="done"), "holds in status"),
        (put("status", epoch="1"), "holds in status"),
        (put("status", message="x" * 10_001), "holds in status"),
        (without("status"), "records.jsonl has no status"),
        (put("status", total_steps=10**8), "the run has 100,000,000 steps; at most 300,000 are taken in"),
        (put("status", updated=float("nan")), "has NaN, which is not finite"),
        (put("curves", steps=900), "holds in curves"),
        (
            put("curves", steps=3),
            r"has step of shape \(15,\) and type <i8, by rows; shape \(3,\) and type <i8, ",
        ),
        (put("point", 2, label=7), "holds in point"),
        (put("point", 2, text="x" * 18_000), "holds in point"),
        (put("point", 2, text=7), "holds in point"),
        (put("point", 2, held_out=1), "holds in point"),
        (lambda records: records.remove(["point", of("point", 2)(records)]), r"has embeddings_000 of shape \(27, 16\)"),
        (put("frame", 2, number=900), "holds in frame"),
        (put("frame", 2, step=99), "holds in frame"),
        (put("frame", 2, seconds=float("inf")), "has Infinity, which is not finite"),
        (put("frame", 2, measures=[1]), "holds in measures"),
        (put("frame", 2, measures={"loss": "low"}), "holds in measures"),
        (put("frame", 2, measures={str(number): 1.0 for number in range(33)}), "holds in measures"),
        (put("frame", 2, published=False), "holds in layout"),
        (put("layout", 2, method="umap"), "holds in layout"),
        (put("layout", 2, frame=[1]), "holds in layout what no run writes"),
        (put("layout", 2, frame=64), "holds in layout"),
        (put("layout", 0, method="tsne"), "arrays.npz lacks tsne_000, or two records name it"),
        (put("facts", kind="gpt"), "is of kind 'gpt'; its settings call for 'classifier'"),
        (put("facts", prompt=7), "fact prompt=7 must be a text"),
        (put("facts", model={"d_model": -1}), "the run's model: "),
        (without("facts", "prompt"), "too much or missing: prompt"),
        (put("facts", x=1), "too much or missing: x"),
        (put("facts", device='a" + evil()'), "fact device="),
    ],
)
def test_records_that_no_run_wrote_are_refused(exported, tmp_path, change, words):
    refused(tmp_path, zipped(with_records(exported[1], change)), words)


def test_a_run_of_an_earlier_version_that_says_not_how_many_it_measured_is_taken_in(exported, tmp_path):
    store = RunList(tmp_path).import_zip(zipped(with_records(exported[1], without("facts", "counts"))))
    assert "counts" not in store.facts()


class Evil:
    """An object that would write a file if anybody unpickled it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return self.path.write_text, ("unpickled",)


def test_ten_million_steps_are_refused_before_they_are_read(exported, tmp_path, monkeypatch):
    def longer(records):
        of("status")(records)["total_steps"] = 10_000_000
        of("curves")(records)["steps"] = 10_000_000

    monkeypatch.setattr(import_run._Contents, "_array", lambda *_, **__: pytest.fail("an array is read"))
    packed = zipped(with_records(exported[1], longer))
    refused(tmp_path, packed, "the run has 10,000,000 steps; at most 300,000 are taken in")


def test_records_of_many_small_values_are_refused_at_their_first_line(exported, tmp_path, monkeypatch):
    read = []
    reader = SimpleNamespace(loads=lambda line, **how: read.append(line) or json.loads(line, **how))
    monkeypatch.setattr(import_run, "json", reader)
    nested = b'{"point": {"text": [' + b"[]," * 300_000 + b'[]], "label": 0, "held_out": true}}\n'
    lines = exported[1]["records.jsonl"] + nested * 3
    refused(tmp_path, zipped(exported[1] | {"records.jsonl": lines}), "holds in point what no run writes")
    assert len(read) == len(exported[1]["records.jsonl"].splitlines()) + 1


def test_a_tokenizer_that_swells_a_text_is_refused_with_the_run(exported, tmp_path):
    longer = {"type": "Replace", "pattern": {"String": "z"}, "content": "z" * 100}
    for name in ("tokenizer.json", "bundle/tokenizer.json"):
        values = json.loads(exported[1][name]) | {"normalizer": {"type": "Sequence", "normalizers": [longer] * 4}}
        files = exported[1] | {name: json.dumps(values).encode()}
        refused(tmp_path, zipped(files), "a model in the zip cannot be read: ")


def header_of(dtype, shape, by_column=False):
    """Return the first bytes of an .npy file, which promise any type and shape."""
    buffer = io.BytesIO()
    description = {"descr": dtype, "fortran_order": by_column, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, description)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda _: {"evil": np.zeros(3)}, r"arrays.npz has 'evil.npy', which no run has"),
        (lambda _: {"pca_002": None}, "arrays.npz lacks pca_002"),
        (lambda _: {"loss": None}, "arrays.npz lacks loss"),
        (
            lambda had: {"loss": had["loss"][1:]},
            r"has loss of shape \(14,\) .* shape \(15,\) and type <f8",
        ),
        (lambda had: {"loss": had["loss"].astype("<f4")}, "has loss of shape .* and type <f4"),
        (
            lambda had: {"loss": np.where(had["step"] == 3, np.nan, had["loss"])},
            "has numbers in loss that are not finite",
        ),
        (lambda had: {"loss": had["loss"] * np.inf}, "has numbers in loss that are not finite"),
        (lambda had: {"step": np.where(had["step"] == 3, 900, had["step"])}, "holds in curves"),
        (lambda had: {"step": np.where(had["step"] == 3, 2, had["step"])}, "holds in curves"),
        (lambda had: {"step": had["step"] - 1}, "holds in curves"),
        (lambda had: {"embeddings_002": had["embeddings_002"][:, :2]}, r"has embeddings_002 of shape \(27, 2\)"),
        (lambda had: {"predictions_002": had["predictions_002"][:2]}, r"has predictions_002 of shape \(2, 2\)"),
        (lambda had: {"tsne_002": had["tsne_002"][:1]}, r"has tsne_002 of shape \(1, 2\)"),
        (lambda had: {"tsne_002": had["tsne_002"] + np.float32(np.nan)}, "has numbers in tsne_002 that are not finite"),
        (lambda had: {"tsne_002": np.asfortranarray(had["tsne_002"])}, "has tsne_002 of shape .*, by columns; "),
        (lambda _: {"loss": header_of("<f8", (1 << 40,))}, r"has loss of shape \(1099511627776,\)"),
        (lambda _: {"loss": header_of("<f8", (15,))}, "has loss of another size than its shape"),
        (lambda _: {"loss": header_of("<f8", (15,)) + bytes(200)}, "has loss of another size than its shape"),
        (lambda _: {"loss": header_of("|O", (15,))}, r"has loss of shape .* and type \|O"),
        (lambda _: {"loss": b"\x93NUMPY\x02\x00" + bytes(90)}, r"has loss in no .npy format 1\.0"),
        (
            lambda _: {"loss": b"\x93NUMPY\x01\x00\x10\x27" + b"(" * 10_000},
            "loss with a header that numpy does not write",
        ),
        (lambda _: {"loss": b"\x80\x04pickled"}, r"has loss in no .npy format 1\.0"),
        (lambda _: {"loss": b""}, r"has loss in no .npy format 1\.0"),
    ],
)
def test_arrays_that_no_run_wrote_are_refused(exported, tmp_path, change, words):
    files = exported[1]
    refused(tmp_path, zipped(with_arrays(files, **change(arrays_of(files)))), words)


def test_a_pickle_in_an_array_is_refused_and_never_loaded(exported, tmp_path):
    target = tmp_path / "unpickled.txt"
    objects = np.array([Evil(target)] * 15, dtype=object)
    refused(tmp_path, zipped(with_arrays(exported[1], loss=objects)), r"has loss of shape .* and type \|O")
    refused(tmp_path, zipped(with_arrays(exported[1], evil=objects)), "which no run has")
    assert not target.exists()


def test_histograms_that_no_run_writes_are_refused(exported, tmp_path):
    files = exported[1]
    for values in ({"groups": ["a"] * 41}, {"frame": 5}, {"groups": ["a"]}, {"groups": ["a" * 41]}):
        packed = zipped(with_records(files, put("histograms", 1, **values)))
        refused(tmp_path, packed, r"what no run writes|has counts_001 of shape|which no run has")
    infinite = np.full((3, 3), np.inf, np.float32)
    refused(tmp_path, zipped(with_arrays(files, rms_001=infinite)), "has numbers in rms_001 that are not finite")


def test_arrays_beyond_the_bounds_are_refused_before_they_are_read(exported, tmp_path, monkeypatch):
    files = exported[1]
    many = {f"x{number}": np.zeros(1) for number in range(400)}
    refused(tmp_path, zipped(with_arrays(files, **many)), "the zip has 435 files; at most 389 are taken in")
    monkeypatch.setitem(import_run.SIZES, re.escape("arrays.npz"), 60_000)
    large = zipped(with_arrays(files, loss=np.zeros(1 << 20)))  # packed, it is small
    refused(tmp_path, large, "the zip unpacks to .* bytes; at most 60,000 are taken in")


def test_a_zip_of_an_older_version_says_so(exported, tmp_path):
    files = {name: content for name, content in exported[1].items() if name not in ("records.jsonl", "arrays.npz")}
    refused(tmp_path, zipped(files | {"run.sqlite": b"x"}), "it was exported by an older version of Vitrine")
    refused(tmp_path, zipped(exported[1] | {"run.sqlite": b"x"}), "it was exported by an older version of Vitrine")


def test_damaged_records_arrays_models_tokenizers_and_specs_are_refused(exported, tmp_path):
    files = exported[1]
    torn = bytearray(files["arrays.npz"])
    torn[2000:4000] = b"\xff" * 2000
    lines = files["records.jsonl"]
    for name, content, words in (
        ("arrays.npz", bytes(torn), "this is no zip that can be read: Bad CRC-32"),
        ("arrays.npz", files["arrays.npz"][:-100], "this is no zip that can be read"),
        ("arrays.npz", b"SQLite format 3\0" + b"\0" * 100, "this is no zip that can be read"),
        ("records.jsonl", b"SQLite format 3\0" + b"\0" * 100, "holds what no run writes"),
        ("records.jsonl", lines[: len(lines) // 2], "(holds what no run writes|has no|lacks)"),
        ("records.jsonl", lines.replace(b'"facts"', b'"facts', 1), "holds what no run writes"),
        ("records.jsonl", lines + b"[" * 100_000, "holds what no run writes"),
        ("records.jsonl", lines + b'{"a": 1, "b": 2}', "holds in a line"),
        ("records.jsonl", lines + b"7", "holds in a line"),
        ("records.jsonl", lines + b"\xff\xfe", "holds what no run writes"),
        ("records.jsonl", lines + b" " * ((16 << 20) + 1), "holds in a line"),
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
