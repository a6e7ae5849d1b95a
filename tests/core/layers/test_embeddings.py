"""Embeddings are summed rows, and refuse ids that have none."""

import math

import pytest
import torch

from tests.helpers.engine import close, exactly, lively, padded_ids, tiny
from transformer_core.layers.embeddings import Embedding, InputEmbedding
from transformer_core.layers.initialization import initialize
from transformer_core.layers.positions import sinusoidal_table
from transformer_core.probe import Probe

IDS = padded_ids(2, 5)
AT_LEAST = "it needs a sentence of at least one token"
WHOLE = "it must hold whole numbers: torch.int64 or torch.int32"


def embedding(**changes) -> InputEmbedding:
    module = InputEmbedding(tiny(**changes))
    initialize(module)
    return lively(module)


def test_looking_up_is_a_one_hot_product():
    table = Embedding(13, 16)
    torch.nn.init.normal_(table.weight)
    close(table(IDS), torch.nn.functional.one_hot(IDS, 13).float() @ table.weight)


@pytest.mark.parametrize("scale", [False, True])
def test_token_position_and_segment_are_summed(scale):
    module = embedding(scale_embeddings=scale, n_segments=2)
    segments = torch.tensor([[0, 0, 1, 1, 1]] * 2)
    factor = math.sqrt(16) if scale else 1.0
    expected = module.token.weight[IDS] * factor + sinusoidal_table(5, 16) + module.segment.weight[segments]
    probe = Probe()
    close(module(IDS, segment_ids=segments, probe=probe), expected)
    assert ("scaled_embedding" in probe.trace) == scale
    if scale:
        close(probe.trace["scaled_embedding"], probe.trace["token_embedding"] * 4.0)


def test_segments_are_the_first_where_none_are_given():
    module = embedding(n_segments=2)
    assert torch.equal(module(IDS), module(IDS, segment_ids=torch.zeros_like(IDS)))


def test_the_sum_is_normalised_where_the_config_says_so():
    module, probe = embedding(embedding_norm=True), Probe()
    close(module(IDS, probe=probe), module.norm(probe.trace["residual"]))


def test_both_integer_widths_are_read():
    module = embedding()
    assert torch.equal(module(IDS), module(IDS.int()))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.tensor([1, 2]), "token_ids has shape (2,); it must be (batch, pos)"),
        (torch.empty(0, 5, dtype=torch.int64), f"token_ids is empty: shape (0, 5); {AT_LEAST}"),
        (torch.empty(2, 0, dtype=torch.int64), f"token_ids is empty: shape (2, 0); {AT_LEAST}"),
        (torch.ones(1, 2), f"token_ids has dtype torch.float32; {WHOLE}"),
        (torch.ones(1, 2, dtype=torch.bool), f"token_ids has dtype torch.bool; {WHOLE}"),
        (torch.ones(1, 2, dtype=torch.uint8), f"token_ids has dtype torch.uint8; {WHOLE}"),
        (torch.tensor([[1, 13]]), "token_ids holds 13, outside the vocabulary: ids run from 0 to 12"),
        (torch.tensor([[-1, 3]]), "token_ids holds -1, outside the vocabulary: ids run from 0 to 12"),
        (torch.ones(1, 13, dtype=torch.int64), "token_ids has 13 positions; max_len=12 is the most"),
    ],
)
def test_bad_ids_are_named(ids, message):
    with pytest.raises(ValueError, match=exactly(message)):
        embedding()(ids)


@pytest.mark.parametrize(
    ("n_segments", "segments", "message"),
    [
        (0, IDS * 0, "segment_ids were given, but n_segments=0: this model has no segment embeddings"),
        (2, IDS * 0 + 2, "segment_ids holds 2, outside the vocabulary: ids run from 0 to 1"),
        (2, IDS[:, :3] * 0, "segment_ids has shape (2, 3); it must be token_ids' (2, 5)"),
    ],
)
def test_bad_segments_are_named(n_segments, segments, message):
    with pytest.raises(ValueError, match=exactly(message)):
        embedding(n_segments=n_segments)(IDS, segment_ids=segments)


def test_an_edit_that_makes_bad_ids_is_named():
    with pytest.raises(ValueError, match=exactly("token_ids holds 99, outside the vocabulary: ids run from 0 to 12")):
        embedding()(IDS, probe=Probe(edits={"token_ids": lambda ids: ids.fill_(99)}))
