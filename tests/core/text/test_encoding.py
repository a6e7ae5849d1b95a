import dataclasses
import re

import pytest

from transformer_core.text import Encoding


@pytest.fixture
def encoding() -> Encoding:
    return Encoding(
        ids=(2, 7, 3, 8, 3),
        tokens=("[CLS]", "cat", "[SEP]", "dog", "[SEP]"),
        labels=("[CLS]", "cat", "[SEP]", "dog", "[SEP]"),
        offsets=((0, 0), (4, 7), (0, 0), (2, 5), (0, 0)),
        segment_ids=(0, 0, 0, 1, 1),
        special=(True, False, True, False, True),
        unknown=(False,) * 5,
        text="the cat",
        pair="a dog",
    )


def test_surface_takes_the_slice_of_its_own_text(encoding: Encoding) -> None:
    assert [encoding.surface(position) for position in range(len(encoding))] == ["", "cat", "", "dog", ""]


@pytest.mark.parametrize("position", [-1, 5])
def test_surface_names_the_bad_position(encoding: Encoding, position: int) -> None:
    with pytest.raises(ValueError, match=re.escape(f"position={position} must be in [0, 5)")):
        encoding.surface(position)


def test_columns_must_agree_in_length(encoding: Encoding) -> None:
    with pytest.raises(ValueError, match=re.escape("len(labels)=1 must equal len(ids)=5")):
        dataclasses.replace(encoding, labels=("[CLS]",))


def test_frozen(encoding: Encoding) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        encoding.truncated = 3  # type: ignore[misc]
