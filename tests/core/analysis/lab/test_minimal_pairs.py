"""One patch on built-in pairs is, pair by pair, what a map of that pair says of the place with the same role."""

import json

import numpy as np
import pytest

from tests.helpers import ROOT
from tests.helpers.lab_models import bundle_of
from transformer_core import load
from transformer_core.analysis.lab.minimal_pairs import PAIRS, minimal_pairs, patch_on_pairs
from transformer_core.analysis.lab.patching import patch_map, patched_stacks

TEXTS = {
    "sentiment": ("The film was not good.", "The film was not bad."),
    "bert": ("the girl said [MASK] was here", "the boy said [MASK] was here"),
    "gpt": ("Lily was in the shop, and", "Tom was in the shop, and"),
    "sentiment-zh": ("这家饭店很好。", "这家饭店很差。"),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("role", ["read", "changed"])
def test_the_shares_are_those_of_the_maps_of_each_pair(name: str, role: str) -> None:
    bundle, (text, other) = load(ROOT / "assets/checkpoints" / name), TEXTS[name]
    (stack,) = patched_stacks(bundle)
    asked = {"bundle": bundle, "n_tokens": 64, "stack": stack}
    own = patch_map(text=text, other=other, **asked)
    ids = bundle.tokenizer.encode(text).ids
    read = {"gpt": len(ids) - 1, "bert": ids.index(bundle.tokenizer.mask_id or -1) if name == "bert" else 0}
    position = own.pairs[own.changed.index(True)][0] if role == "changed" else read.get(name, 0)
    found = patch_on_pairs(
        text=text, other=other, place="attention", layer=2, position=int(position), controls=3, **asked
    )
    assert found.offset == (None if role == "read" else 0)
    assert found.random.shape == (3, len(found.pairs))
    assert len(found.pairs) + found.left_out == len(minimal_pairs(bundle)) >= 30
    for index in (0, len(found.pairs) // 2, -1):
        first, second = found.pairs[index]
        exact = patch_map(text=first, other=second, **asked)
        place = len(exact.labels) - 1 if name == "gpt" else 0
        if name == "bert":
            place = exact.labels.index("[MASK]")
        column = exact.changed.index(True) if role == "changed" else place
        assert found.shares[index] == pytest.approx(exact.exact[1, 2, column], abs=1e-4)


def test_the_pairs_say_where_they_come_from_and_differ_in_a_word() -> None:
    assert "Written for Vitrine" in json.loads(PAIRS.read_text(encoding="utf-8"))["source"]
    for name in ("sentiment", "bert", "gpt"):
        for one, other in minimal_pairs(load(ROOT / "assets/checkpoints" / name)):
            words = [text.split() for text in (one, other)]
            assert np.sum([left != right for left, right in zip(*words, strict=True)]) == 1


def test_a_model_without_pairs_or_a_place_that_is_not_there_is_told() -> None:
    asked = {"text": "the glass bell rings", "other": "the glass box rings", "n_tokens": 20, "position": 0}
    with pytest.raises(ValueError, match="no pairs are built in"):
        patch_on_pairs(bundle=bundle_of("lm gru"), stack="recurrent", place="residual", layer=0, **asked)
    classifier = load(ROOT / "assets/checkpoints/sentiment")
    for wrong, said in (({"place": "cross"}, "place="), ({"layer": 4}, "layer=4"), ({"controls": 99}, "controls=99")):
        with pytest.raises(ValueError, match=said):
            patch_on_pairs(bundle=classifier, **({"stack": "encoder", "place": "residual", "layer": 0} | asked | wrong))
