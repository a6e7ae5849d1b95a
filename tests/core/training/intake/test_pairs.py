"""Pairs are read from pasted lines and from files that belong together, and what is none is counted."""

import gzip
from pathlib import Path

import pytest

from transformer_core.training.intake import IntakeError
from transformer_core.training.intake.pairs import (
    FEWEST,
    aligned_files,
    read_aligned,
    read_pairs,
    read_pasted_pairs,
    write_pairs,
)

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
