"""SITES says what every model records, no more and no less."""

from functools import cache

import pytest
import torch

from tests.helpers.engine import MODELS, inputs, made
from transformer_core.models import Bert, Decoder, Translation
from transformer_core.probe import capture
from transformer_core.sites import RECURRENT_SITES, SITES, site_of
from transformer_core.trace import Trace

SOURCE, TARGET, BATCH = 6, 5, 3
CHANGES = {
    "plain": {},
    "post": {"norm_order": "post", "norm": "unbiased"},
    "bert": {"positions": "learned", "n_segments": 2, "embedding_norm": True, "tied_output": False},
    "rotary": {"positions": "rotary", "d_head": 6, "scale_embeddings": True},
    "alibi": {"positions": "alibi", "scoring": "additive"},
    "mean": {"pooling": "mean", "n_classes": 7, "share_query_key": True, "share_key_value": True},
    "pooled": {"pooler": "tanh", "pair_head": False, "activation": "silu"},
    "bare": {"projections": False, "positions": "none", "residual": False},
    "two_vocabularies": {"target_vocab_size": 17, "d_head": 10},
}
ALL = [(kind, name) for kind in MODELS for name in CHANGES]


@cache
def recorded(kind, variant: str) -> tuple[Trace, dict[str, int]]:
    """Capture everything; return it with the size that each axis of SITES has in this model."""
    model = made(kind, **CHANGES[variant])
    config = model.config
    sizes = {"batch": BATCH, "head": config.n_heads, "d_head": config.d_head, "d_model": config.d_model}
    sizes |= {"d_ff": config.d_ff, "one": 1, "bound": 2, "class": 2 if kind is Bert else config.n_classes}
    sizes["vocab"] = config.target_vocab_size if kind is Translation else config.vocab_size
    ids = inputs(kind, batch=BATCH, source=SOURCE, target=TARGET)
    return capture(model, *ids)[1], sizes


def lengths(kind, name: str) -> dict[str, int]:
    """Return the sizes of the axes of positions at one site of one model."""
    reads_source = kind is Translation and (name.startswith("encoder.") or name == "memory")
    here = SOURCE if reads_source else TARGET
    keys = SOURCE if ".cross_attention." in name else here
    return {"pos": here, "query_pos": here, "key_pos": keys}


@pytest.mark.parametrize(("kind", "variant"), ALL)
def test_every_recorded_tensor_has_the_shape_that_its_row_states(kind, variant):
    trace, sizes = recorded(kind, variant)
    assert trace
    for name, tensor in trace.items():
        row = site_of(name)
        assert trace.site(name) is row
        expected = sizes | lengths(kind, name)
        assert tuple(tensor.shape) == tuple(expected[axis] for axis in row.axes), name


def test_every_row_is_recorded_somewhere():
    leaves = {name.rpartition(".")[2] for kind, variant in ALL for name in recorded(kind, variant)[0]}
    assert leaves == set(SITES) - set(RECURRENT_SITES)  # those are met in models/test_recurrent_sites.py


@pytest.mark.parametrize(("kind", "variant"), ALL)
def test_values_keep_to_their_scale(kind, variant):
    trace, _ = recorded(kind, variant)
    for name, tensor in trace.items():
        scale = site_of(name).scale
        assert scale in ("probability", "signed", "count", "id")
        assert tensor.is_floating_point() == (scale != "id")
        if scale == "probability":
            assert tensor.min() >= 0
            assert tensor.max() <= 1 + 1e-6
        if scale == "id":
            assert tensor.min() >= 0


def test_cross_attention_reads_two_lengths():
    trace, _ = recorded(Decoder, "plain")
    assert trace["layer0.cross_attention.weights"].shape == (BATCH, 2, TARGET, SOURCE)
    assert trace["layer0.self_attention.weights"].shape == (BATCH, 2, TARGET, TARGET)


@pytest.mark.parametrize("leaf", SITES)
def test_every_row_is_filled_in(leaf):
    row = SITES[leaf]
    assert row.axes
    assert row.formula
    assert row.source
    assert row.meaning
    assert "\n" not in row.meaning
    assert row.formula.count("{") == row.formula.count("}")


def test_an_unknown_leaf_is_named():
    with pytest.raises(KeyError, match=r"'encoder\.layer0\.smell' ends in 'smell', which is not in SITES: token_ids, "):
        site_of("encoder.layer0.smell")


def test_tensors_are_recorded_in_the_order_they_are_computed():
    trace, _ = recorded(Translation, "plain")
    names = list(trace)
    assert names[0] == "encoder.embedding.token_ids"
    assert names[-1] == "logits"
    assert names.index("memory") < names.index("decoder.embedding.token_ids")
    inner = ("scores", "masked_scores", "weights", "heads", "output")
    places = [names.index(f"decoder.layer1.cross_attention.{leaf}") for leaf in inner]
    assert places == sorted(places)
    assert torch.equal(trace["memory"], trace["encoder.final_norm.normalized"])
