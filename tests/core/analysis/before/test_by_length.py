"""What was measured by length is read as it was written; a file that says what cannot be is refused with the reason."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import ROOT
from transformer_core.analysis.before.by_length import FOLDER, by_length, read_by_length, write_by_length

SHIPPED = FOLDER / "length_en_fr.json"


def changed(folder: Path, **changes) -> Path:
    """Write the shipped file with other values."""
    path = folder / "other.json"
    path.write_text(json.dumps(json.loads(SHIPPED.read_text()) | changes))
    return path


def test_the_shipped_file_is_of_shipped_models_and_fits_their_cards() -> None:
    found = by_length(name="length_en_fr")
    assert found.bleu.shape == (len(found.models), len(found.fewest)) == (3, 5)
    assert int(found.sentences.sum()) == 1_000
    for name, overall in zip(found.models, found.overall, strict=True):
        card = (ROOT / "assets" / "checkpoints" / name / "card.md").read_text(encoding="utf-8")
        assert f"BLEU {overall:.2f}" in card
        assert name in found.command
    np.testing.assert_allclose(found.lost, found.bleu[:, 0] - found.bleu[:, -1])


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = read_by_length(SHIPPED)
    write_by_length(tmp_path / "copy.json", found)
    assert (tmp_path / "copy.json").read_bytes() == SHIPPED.read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bins": []}, "bins must be a list of 1 to 40 objects"),
        ({"bins": [{"fewest": 9, "most": 8, "sentences": 1}]}, "must follow each other"),
        (
            {"bins": [{"fewest": n, "most": n, "sentences": n - 1} for n in range(1, 6)]},
            "sentences=0 must be a whole number",
        ),
        ({"models": [{"name": "x", "overall": 1, "bleu": [1]}]}, "must be a list of 5 numbers"),
        ({"models": [{"name": "x", "overall": 1, "bleu": [101] * 5}]}, "bleu=101 must be a number from 0 to 100"),
        (
            {"models": [{"name": "x", "overall": 1, "bleu": [9] * 5, "low": [10] * 5, "high": [11] * 5}]},
            "bleu must be from low to high",
        ),
        ({"command": ""}, "command='' must be printable"),
        ({"beam": True}, "beam=True must be a whole number"),
    ],
)
def test_impossible_values_are_refused(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_by_length(changed(tmp_path, **changes))


def test_other_files_are_refused(tmp_path: Path) -> None:
    for text in ("[]", "{", "[" * 10_000, "x" * 100_000):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(ValueError, match=r"bad\.json"):
            read_by_length(tmp_path / "bad.json")
    for name in ("../checkpoints", "nothing", ""):
        with pytest.raises(ValueError, match="must be that of a file in assets/measured"):
            by_length(name=name)
