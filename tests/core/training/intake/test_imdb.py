"""IMDB is read from the folder, the archive and tables alike; archives that are no plain ones are refused."""

import gzip
import io
import os
import tarfile
from collections import Counter

import pytest

from transformer_core.training.intake import IntakeError, read_imdb

CLASSES = ("neg", "pos")


def reviews(per_class=30):
    return {
        f"aclImdb/{part}/{name}/{n}_{n % 10}.txt": f"{part} {name} {n}<br /><br />é".encode()
        for part in ("train", "test")
        for name in CLASSES
        for n in range(per_class)
    }


def write_tar(path, files, *, mode="w:gz", special=()):
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in special:
            archive.addfile(member)
    return path


def write_folder(path, files):
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def others():
    return {
        "aclImdb/README": b"\xff",
        "aclImdb/train/unsup/0_0.txt": b"no label",
        "aclImdb/train/pos/._0_0.txt": b"\xff",
        "aclImdb/train/labeledBow.feat": bytes(3 << 20),
    }


def special(name, kind, link=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


@pytest.mark.parametrize("limit", [None, 2, 11, 20, 1_000])
def test_folder_and_archive_give_the_same_balanced_sample(tmp_path, limit):
    files = others() | reviews()
    folder = write_folder(tmp_path, files)
    turned = write_tar(tmp_path / "turned.tgz", dict(reversed(files.items())))
    train, test = read_imdb(folder, limit=limit, seed=3)
    size = 60 if limit in (None, 1_000) else limit // 2 * 2
    for part in (train, test):
        assert Counter(example.label for example in part) == {0: size // 2, 1: size // 2}
        assert all(CLASSES[example.label] in example.text for example in part)
    assert {example.text.split()[0] for example in train} == {"train"}
    assert train[0].text.endswith(" é")
    assert len({example.label for example in train[:2]} | {example.label for example in train}) == 2
    for other in (folder / "aclImdb", turned, write_tar(tmp_path / "plain.tar", files, mode="w")):
        assert read_imdb(other, limit=limit, seed=3) == (train, test)


def test_the_seed_chooses_and_a_smaller_limit_chooses_less_of_the_same(tmp_path):
    folder = write_folder(tmp_path, reviews())
    large, small, other = (read_imdb(folder, limit=n, seed=s)[0] for n, s in ((40, 1), (10, 1), (10, 2)))
    assert set(small) < set(large)
    assert small != other
    assert [example.label for example in large] != sorted(example.label for example in large)


def test_more_of_one_class_is_balanced(tmp_path):
    files = {name: data for name, data in reviews().items() if "/neg/" not in name or name[-5] in "01"}
    train, _ = read_imdb(write_folder(tmp_path, files), limit=None, seed=0)
    assert Counter(example.label for example in train) == {0: 6, 1: 6}


def test_tables_are_read_too(tmp_path):
    rows = "".join(f"{name} {n}<br />x,{name}itive\n" for n in range(20) for name in ("pos", "neg"))
    (tmp_path / "train.csv.gz").write_bytes(gzip.compress(f"review,sentiment\n{rows}".encode()))
    (tmp_path / "test.csv").write_text("text,label\ngood,1\nbad,0\nawful,0\n")
    train, test = read_imdb(tmp_path, limit=10, seed=0)
    assert Counter(example.label for example in train) == {0: 5, 1: 5}
    assert all(example.text.endswith(" x") and ("pos" in example.text) == example.label for example in train)
    assert Counter(example.label for example in test) == {0: 1, 1: 1}
    assert read_imdb(tmp_path / "train.csv.gz", limit=10, seed=0) == (train, [])


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (special("../etc/passwd", tarfile.REGTYPE), "'../etc/passwd', whose name leads out of the archive"),
        (special("/etc/passwd", tarfile.REGTYPE), "whose name leads out of the archive"),
        (special("aclImdb/train/pos/x.txt", tarfile.SYMTYPE, "/etc/passwd"), "which is neither a file nor a folder"),
        (special("aclImdb/train/pos/x.txt", tarfile.LNKTYPE, "../y"), "which is neither a file nor a folder"),
        (special("aclImdb/train/pos/x.txt", tarfile.FIFOTYPE), "which is neither a file nor a folder"),
    ],
)
def test_what_no_archive_of_texts_holds_is_refused(tmp_path, extra, message):
    with pytest.raises(IntakeError, match=message):
        read_imdb(write_tar(tmp_path / "a.tar.gz", reviews(2), special=[extra]), limit=4, seed=0)


def test_archives_over_a_bound_are_refused(tmp_path, monkeypatch):
    huge = {"aclImdb/train/pos/9_9.txt": b"x" * (1 << 19)} | reviews(2)
    with pytest.raises(IntakeError, match=r"'9_9.txt' of 524,288 bytes; at most 262,144 are read"):
        read_imdb(write_tar(tmp_path / "a.tar.gz", huge), limit=None, seed=0)
    header = tarfile.TarInfo("aclImdb/big")
    header.pax_headers = {"comment": "x" * (2 << 20)}
    with pytest.raises(IntakeError, match="holds more than its list of files says"):
        read_imdb(write_tar(tmp_path / "a.tar.gz", {}, special=[header]), limit=None, seed=0)
    path = write_tar(tmp_path / "a.tar.gz", reviews(4) | others())
    for name, bound in (("MOST_MEMBERS", 5), ("MOST_STREAMED", 1 << 20), ("MOST_PACKED", 100)):
        with monkeypatch.context() as patch:
            patch.setattr(f"transformer_core.training.intake.imdb.{name}", bound)
            with pytest.raises(IntakeError, match=r"a\.tar\.gz"):
                read_imdb(path, limit=None, seed=0)


def test_every_cut_of_an_archive_gets_words(tmp_path):
    whole = write_tar(tmp_path / "a.tar", reviews(2), mode="w").read_bytes()
    packed = gzip.compress(whole)
    for cut in range(0, 8_192, 97):
        for suffix, data in (
            (".tar", whole[:cut]),
            (".tgz", gzip.compress(whole[:cut])),
            (".tgz", packed[: cut // 40]),
        ):
            path = (tmp_path / "cut").with_suffix(suffix)
            path.write_bytes(data)
            with pytest.raises(IntakeError, match="cut"):
                read_imdb(path, limit=None, seed=0)


def test_links_in_a_folder_are_not_followed(tmp_path):
    folder = write_folder(tmp_path, reviews(2))
    (tmp_path / "secret").write_text("train pos secret")
    os.symlink(tmp_path / "secret", folder / "aclImdb/train/pos/9_9.txt")
    train, _ = read_imdb(folder, limit=None, seed=0)
    assert not any("secret" in example.text for example in train)


@pytest.mark.parametrize(
    ("files", "path", "message"),
    [
        ({}, "nowhere", "nowhere is not there; needed is aclImdb/"),
        ({"empty/x.bin": b""}, "empty", "empty holds neither the folder train nor train.csv; needed is aclImdb/"),
        ({"a/train/pos/1.txt": b"x"}, "a", "a holds no folder train/neg; needed is aclImdb/"),
        ({**reviews(1), "aclImdb/test/neg/0_0.txt": b"  \n"}, "aclImdb", "holds no review test/neg/"),
        ({**reviews(1), "aclImdb/test/neg/1_0.txt": b"\xff"}, "aclImdb", "test/neg/1_0.txt: byte 1 is not UTF-8"),
        ({"a.csv": b"text,label\na,1\nb,2\nc,3\n"}, "a.csv", "a.csv has the labels 1, 2, 3; a negative and a positive"),
        ({"a.csv": b"text\na\nb\n"}, "a.csv", "a.csv has no columns text and label; it has 'text'"),
    ],
)
def test_what_is_missing_is_named(tmp_path, files, path, message):
    with pytest.raises(IntakeError, match=message):
        read_imdb(write_folder(tmp_path, files) / path, limit=None, seed=0)


def test_the_limit_is_checked(tmp_path):
    with pytest.raises(IntakeError, match="limit=1 must be at least 2"):
        read_imdb(tmp_path, limit=1, seed=0)
