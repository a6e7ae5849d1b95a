"""What lies beside a card: how sure verdicts are, and what training took; each comes back as it was written."""

import json
from pathlib import Path

import pytest

from transformer_core.bundle_files import BundleError
from transformer_core.measured import (
    FEWEST,
    MEASURED,
    HeadLook,
    Measured,
    Sureness,
    Trained,
    read_measured,
    write_measured,
)

ROWS = (
    Sureness((1, 6), (0.0, 0.6), 40, 20),
    Sureness((1, 6), (0.6, 0.9), 10, 7),
    Sureness((1, 6), (0.9, 1.0), 25, 24),
    Sureness((7, 12), (0.0, 0.6), 5, 3),
    Sureness((7, 12), (0.6, 1.0), 6, 5),
    Sureness((13, 25), (0.0, 1.0), 90, 80),
)
KNOWN = Measured(
    trained=(
        Trained("pretraining", 8_265, 40.5, 41.25, "NVIDIA H100 80GB HBM3", "bfloat16"),
        Trained("training", 17_549, 78.0, 0.0, "cpu", ""),
    ),
    sureness=ROWS,
    verse=(HeadLook("rhyme", 2, 5, 0.851, 0.04, -0.0012, 1800),),
)


@pytest.mark.parametrize("order", [1, -1])
def test_a_verdict_is_right_as_often_as_those_of_its_range_and_length(order: int) -> None:
    assert Measured(sureness=ROWS[::order]).sure(3, 0.55) == ROWS[0]
    assert Measured(sureness=ROWS[::order]).sure(25, 0.99) == ROWS[5]


def test_the_ranges_beside_it_are_taken_in_where_there_are_few_texts() -> None:
    assert KNOWN.sure(6, 0.95) == Sureness((1, 6), (0.6, 1.0), 35, 31)
    assert KNOWN.sure(6, 0.6) == Sureness((1, 6), (0.0, 1.0), 75, 51)
    assert KNOWN.sure(1, 1.0) == KNOWN.sure(1, 0.9)  # 1 is in the last range


def test_what_is_not_known_is_none() -> None:
    assert KNOWN.sure(8, 0.7) is None  # 11 texts in all
    assert sum(row.texts for row in ROWS if row.words == (7, 12)) < FEWEST
    assert KNOWN.sure(40, 0.7) is None
    assert Measured().sure(3, 0.7) is None


def test_everything_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_measured(tmp_path, KNOWN)
    found = read_measured(tmp_path)
    assert (found.trained, found.verse) == (KNOWN.trained, KNOWN.verse)
    assert found == KNOWN


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("trained", {"minutes": -1}, "minutes=-1 must be a number from 0"),
        ("trained", {"cpu_minutes": None}, "cpu_minutes=None"),
        ("trained", {"steps": 0}, "steps=0 must be a whole number from 1"),
        ("trained", {"device": ""}, "device=''"),
        ("trained", {"precision": "a\u202eb"}, "precision="),
        ("trained", {"stage": "x" * 81}, "stage="),
        ("sureness", {"right": 41}, "right=41 must be at most texts=40"),
        ("sureness", {"words": [1]}, r"words=\[1\] must be a list of two numbers"),
        ("sureness", {"probability": [0, 2]}, "probability=2 must be a number from 0 to 1"),
        ("verse", {"look": "below"}, "look='below' must be one of above, rhyme"),
        ("verse", {"weight": 1.5}, "weight=1.5 must be a number from 0 to 1"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, name: str, row: dict, said: str) -> None:
    write_measured(tmp_path, KNOWN)
    found = json.loads((tmp_path / MEASURED).read_text())
    found[name][0] |= row
    (tmp_path / MEASURED).write_text(json.dumps(found))
    with pytest.raises(BundleError, match=said):
        read_measured(tmp_path)
