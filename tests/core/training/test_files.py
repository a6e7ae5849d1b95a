"""IMDB, labelled files and pairs: read as a stream, refused with file and line."""

import csv
import gzip
import io
import json
import os
import tarfile
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_core.examples import Example
from transformer_core.untrusted.tables import (
    ROWS_FILE,
    IntakeError,
    read_imdb,
    read_labelled,
    read_rows,
    read_table,
    write_labelled,
    write_rows,
)
from transformer_core.untrusted.tables.pairs import (
    FEWEST,
    aligned_files,
    read_aligned,
    read_pairs,
    read_pasted_pairs,
    write_pairs,
)

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
            patch.setattr(f"transformer_core.untrusted.tables.imdb.{name}", bound)
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


LABELS = ("negative", "positive")
EXAMPLES = [Example("good, “really”\nso", 1), Example('a "dull" film', 0), Example("你好", 1)]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
lists = st.lists(st.builds(Example, texts, st.integers(0, 19)), min_size=1)


def read(path):
    return list(read_labelled(path, LABELS))


def refusal(path):
    with pytest.raises(ValueError, match=path.name) as error:
        read(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_is_written_is_read_back(tmp_path):
    write_labelled(tmp_path / "a.csv", EXAMPLES)
    assert read(tmp_path / "a.csv") == EXAMPLES


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_all_four_forms_and_both_ways_of_labelling_read_alike(tmp_path, zipped, named):
    def label(example):
        return LABELS[example.label] if named else example.label

    lines = "".join(json.dumps({"label": label(e), "text": e.text, "more": 1}) + "\n" for e in EXAMPLES)
    (tmp_path / "a.jsonl").write_text(lines + "\n", encoding="utf-8")
    with (tmp_path / "a.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([("id", "label", "text"), *((7, label(e), e.text) for e in EXAMPLES)])
    for name in ("a.jsonl", "a.csv"):
        path = tmp_path / name
        if zipped:
            path = tmp_path / f"{name}.gz"
            path.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        assert read(path) == EXAMPLES


def test_a_file_is_read_only_as_far_as_it_is_asked_for(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\ngood,1\nbad,0\nbroken,7\n")
    assert len(list(islice(read_labelled(path, LABELS), 2))) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.csv holds no examples; it needs at least one with text and label"),
        (b"text,label\n", "a.csv holds no examples; it needs at least one with text and label"),
        (b"words,label\nx,1\n", "a.csv, line 1 has no 'text'; it has 'words', 'label'"),
        (b"text\nx\n", "a.csv, line 1 has no 'label'; it has 'text'"),
        (b"text,label\nx,1\ny\n", "a.csv, line 3 has 1 columns; the header has 2"),
        (b"text,label\nx,1\n\xff\xfe,0\n", "a.csv, line 3: byte 1 of the line is not UTF-8; save the file as UTF-8"),
        (b'text,label\n"x\ny",1\n"z,0\n', "a.csv, line 4: the row that begins here is broken: unexpected end of data"),
        (b"text,label\nx,2\n", "a.csv, line 2: label='2' is unknown; it must be one of 0, 1, negative, positive"),
        (b"text,label\n  ,1\n", "a.csv, line 2: text='  ' must be a string that is not blank"),
    ],
)
def test_broken_csv(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    assert refusal(tmp_path / "a.csv") == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"text": "x", "label": 1}\n{"text": ',
            "a.jsonl, line 2 is not JSON: Expecting value: line 1 column 9 (char 8)",
        ),
        ("[1, 2]\n", "a.jsonl, line 1 must be a JSON object, not list"),
        ('{"text": "x"}\n', "a.jsonl, line 1 has no 'label'; it has 'text'"),
        ('{"text": 5, "label": 1}\n', "a.jsonl, line 1: text=5 must be a string that is not blank"),
        (
            '{"text": "x", "label": true}\n',
            "a.jsonl, line 1: label=True is unknown; it must be one of 0, 1, negative, positive",
        ),
        ('{"text": "\\ud800", "label": 1}\n', "a.jsonl, line 1: the text holds half a character (a lone surrogate)"),
    ],
)
def test_broken_jsonl(tmp_path, content, message):
    (tmp_path / "a.jsonl").write_text(content)
    assert refusal(tmp_path / "a.jsonl") == message


def test_broken_gzip(tmp_path):
    whole = gzip.compress(b"text,label\n" + b"".join(b"%d,1\n" % n for n in range(50_000)))
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert "the gzip data is broken" in refusal(tmp_path / "cut.csv.gz")
    (tmp_path / "no.csv.gz").write_bytes(b"text,label\nx,1\n")
    assert refusal(tmp_path / "no.csv.gz").startswith("no.csv.gz, line 1: the gzip data is broken: Not a gzipped file")


def test_a_long_text_is_read_whole(tmp_path):
    write_labelled(tmp_path / "a.csv", [Example("so " * 100_000 + "long", 1)])
    assert read(tmp_path / "a.csv") == [Example("so " * 100_000 + "long", 1)]


def test_an_endless_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_core.untrusted.tables.opening.LONGEST_LINE", 100)
    (tmp_path / "a.csv").write_text("text,label\n" + "x" * 101 + ",1\n")
    assert refusal(tmp_path / "a.csv") == "a.csv, line 2 is longer than 100 bytes, the most that are read"


def test_an_unknown_ending_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert refusal(tmp_path / "a.txt") == "a.txt must end in one of .csv, .jsonl, or in one of these with .gz after it"


@given(examples=lists)
def test_rows_come_back_equal(tmp_path_factory, examples):
    path = tmp_path_factory.mktemp("rows") / ROWS_FILE
    path.write_bytes(write_rows(examples))
    assert read_rows(path) == examples


def test_a_table_comes_back_equal(tmp_path):
    table = read_table('text,label\n"a ""b""\nc",x\n好😀\u2028\\,y\n'.encode(), "text", "label")
    (tmp_path / ROWS_FILE).write_bytes(write_rows(table))
    assert read_rows(tmp_path / ROWS_FILE) == list(table) == [Example('a "b"\nc', 0), Example("好😀\n\\", 1)]


def test_damaged_rows_get_words(tmp_path):
    for raw in (b"", b'{"text": "a"}\n', b'{"text": "a", "label": 20}\n', b'{"text": "a", "label": 1', b"\xff\n"):
        (tmp_path / ROWS_FILE).write_bytes(raw)
        with pytest.raises(ValueError, match=ROWS_FILE):
            read_rows(tmp_path / ROWS_FILE)


ROWS = [(f"one {n} dog", f"un {n} chien") for n in range(FEWEST)]


@pytest.mark.parametrize("between", ["\t", " | "])
def test_pasted_lines_are_pairs_and_the_first_of_a_source_counts(between: str) -> None:
    lines = [between.join(row) for row in ROWS]
    found = read_pasted_pairs("\r\n".join(["", *lines, lines[0].replace("un", "deux"), ""]))
    assert found.pairs == tuple(ROWS)
    assert not found.broken


def test_lines_that_are_no_pairs_are_counted_by_what_is_wrong() -> None:
    lines = ["\t".join(row) for row in ROWS]
    found = read_pasted_pairs("\n".join([*lines, "no tab", "a\tb\tc", "only this\t", "🙂 مرحبا\t😀"]))
    assert found.broken.counts == {"too_few_cells": 1, "too_many_cells": 1, "empty_text": 1}
    assert found.pairs[-1] == ("🙂 مرحبا", "😀")


@pytest.mark.parametrize("text", ["", "\x00\x01", "a\tb", "x" * 100_000, "\t\n" * 1_000])
def test_too_few_pairs_are_said_with_what_is_needed(text: str) -> None:
    with pytest.raises(IntakeError, match=f"the text has . different pairs; at least {FEWEST} are needed"):
        read_pasted_pairs(text)


def test_files_of_a_folder_go_together_by_their_names(tmp_path: Path) -> None:
    for language, place in (("en", 0), ("fr", 1)):
        text = "".join(f"{row[place]}\n" for row in ROWS)
        (tmp_path / f"train.{language}.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "train.de").write_text("ein Hund\n" * FEWEST, encoding="utf-8")
    (tmp_path / "notes.md").write_text("x", encoding="utf-8")
    files = aligned_files(tmp_path)
    assert list(files)[:3] == ["train: en → de", "train: en → fr", "train: de → en"]
    assert len(files) == 6
    found = read_aligned(*files["train: en → fr"], limit=FEWEST, seed=0)
    assert sorted(found.pairs) == sorted(ROWS)
    assert read_aligned(*files["train: en → fr"], limit=5, seed=0).pairs == found.pairs[:5]
    with pytest.raises(IntakeError, match=r"train.de with train.en.gz has 1 different pairs"):
        read_aligned(*files["train: de → en"], limit=5, seed=0)
    (tmp_path / "train.de").write_text("ein Hund\n", encoding="utf-8")
    with pytest.raises(IntakeError, match=r"must have as many lines; one has no line 2$"):
        read_aligned(*files["train: en → de"], limit=5, seed=0)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(IntakeError, match=r"empty holds no two files NAME.L1 and NAME.L2"):
        aligned_files(empty)


def test_what_a_run_keeps_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(write_pairs(ROWS))
    assert read_pairs(path) == ROWS
    path.write_bytes(b"one\ttwo\nthree\n")
    with pytest.raises(IntakeError, match=r"pairs.tsv, line 2 must have two texts with a tab between them"):
        read_pairs(path)
