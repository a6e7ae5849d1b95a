"""Embeddings and positions are lookups and their formulas."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import close, exactly, lively, made, padded_ids, tiny
from transformer_core.layers.embeddings import Embedding, InputEmbedding
from transformer_core.layers.initialization import initialize
from transformer_core.layers.positions import LearnedPositions, alibi_bias, make_positions, rotate, sinusoidal_table
from transformer_core.models import Encoder
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


CPU = torch.device("cpu")


@given(st.integers(0, 600), st.integers(0, 31), st.sampled_from([64, 128, 300]), st.booleans())
def test_sinusoidal_is_the_papers_formula_and_doubled_multiplies_its_even_index_by_two_again(pos, i, d_model, doubled):
    table = sinusoidal_table(601, d_model, doubled=doubled)
    of_sine, of_cosine = (4 * i, 4 * i + 2) if doubled else (2 * i, 2 * i)
    assert table[pos, 2 * i].item() == pytest.approx(math.sin(pos / 10_000 ** (of_sine / d_model)), abs=1e-6)
    assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(pos / 10_000 ** (of_cosine / d_model)), abs=1e-6)


def test_an_odd_width_is_named():
    with pytest.raises(ValueError, match=exactly("d_model=7 must be even: sines and cosines come in pairs")):
        sinusoidal_table(4, 7)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("doubled", [False, True])
def test_a_sentence_gets_the_first_rows_of_the_table(length, doubled):
    positions = make_positions("sinusoidal_doubled" if doubled else "sinusoidal", 12, 16)
    close(positions(length, CPU), sinusoidal_table(12, 16, doubled=doubled)[:length])
    assert not list(positions.parameters())


def test_the_longest_allowed_text_costs_nothing_before_it_comes():
    vectors = make_positions("sinusoidal", 131_072, 65_536)(3, CPU)
    assert vectors.untyped_storage().nbytes() <= 4 * 65_536 * 4


def test_learned_positions_are_rows_of_a_parameter():
    positions = make_positions("learned", 12, 16)
    assert isinstance(positions, LearnedPositions)
    torch.nn.init.normal_(positions.weight)
    assert torch.equal(positions(5, CPU), positions.weight[:5])


@pytest.mark.parametrize("positions", ["rotary", "alibi", "none"])
def test_the_other_schemes_add_no_vector(positions):
    assert make_positions(positions, 12, 16) is None


def test_rotary_turns_pairs_by_position_times_frequency():
    x = torch.randn(1, 1, 9, 4)
    turned = rotate(x)
    for pos in (0, 1, 8):
        for pair, frequency in enumerate((1.0, 10_000 ** (-2 / 4))):
            cos, sin = math.cos(pos * frequency), math.sin(pos * frequency)
            even, odd = (x[0, 0, pos, 2 * pair + k].item() for k in (0, 1))
            assert turned[0, 0, pos, 2 * pair].item() == pytest.approx(even * cos - odd * sin, abs=1e-6)
            assert turned[0, 0, pos, 2 * pair + 1].item() == pytest.approx(even * sin + odd * cos, abs=1e-6)
    close(turned.norm(dim=-1), x.norm(dim=-1))


EIGHT = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


@pytest.mark.parametrize(
    ("n_heads", "slopes"),
    [
        (1, [1 / 256]),
        (2, [1 / 16, 1 / 256]),
        (8, EIGHT),
        (12, [*EIGHT, 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
        (16, [2 ** (-(k + 1) / 2) for k in range(16)]),
    ],
)
def test_alibi_slopes_are_the_published_ones(n_heads, slopes):
    bias = alibi_bias(n_heads, 4, 4, CPU)
    assert bias.shape == (n_heads, 4, 4)
    assert bias[:, 3, 2].tolist() == pytest.approx([-slope for slope in slopes])
    for head in range(n_heads):
        for i in range(4):
            for j in range(4):
                assert bias[head, i, j].item() == pytest.approx(-slopes[head] * abs(i - j))


def test_alibi_with_more_keys_than_queries_counts_from_the_last_positions():
    assert torch.equal(alibi_bias(2, 2, 5, CPU), alibi_bias(2, 5, 5, CPU)[:, 3:])


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_doubled", "learned", "rotary", "alibi", "none"])
def test_every_scheme_but_none_tells_the_order(positions):
    model, ids = made(Encoder, positions=positions, pad_id=None), padded_ids(1, 5)
    there, back = model(ids), model(ids.flip(1)).flip(1)
    if positions == "none":
        close(there, back)
    elif positions == "alibi":  # distances alone: a mirrored sentence has the same ones
        close(there, back)
        swapped = ids[:, [1, 0, 2, 3, 4]]
        assert not torch.allclose(model(swapped)[:, 2:], there[:, 2:], atol=1e-3)
    else:
        assert not torch.allclose(there, back, atol=1e-3)
