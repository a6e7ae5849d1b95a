"""The cache: word by word, with keys and values kept, the logits are those of the whole text read at once."""

import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.models.test_properties import CHANGES, POSITIONS
from tests.helpers.engine import close, exactly, inputs, made, padded_ids
from transformer_core.config import ModelConfig
from transformer_core.layers.cache import KeyValueCache
from transformer_core.models import Gpt, Translation
from transformer_core.probe import Probe

CACHED = {name: changes for name, changes in CHANGES.items() if name != "bert"} | {
    "embedding_norm": {"positions": "learned", "embedding_norm": True}
}


def in_pieces(model, ids: torch.Tensor, cuts: list[int], *memory, **options) -> torch.Tensor:
    """Read a text piece by piece with one cache; return the logits of all positions."""
    cache, start, logits = KeyValueCache(model.config.n_layers), 0, []
    read = model if isinstance(model, Gpt) else model.decode
    for end in [*cuts, ids.shape[1]]:
        if end > start:
            logits.append(read(ids[:, start:end], *memory, cache=cache, **options))
            start = end
    return torch.cat(logits, 1)


@pytest.mark.parametrize("changes", CACHED.values(), ids=CACHED)
@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_cached_logits_are_those_without(changes, norm_order):
    gpt, ids = made(Gpt, norm_order=norm_order, **changes), padded_ids(3, 10)
    close(in_pieces(gpt, ids, list(range(1, 10))), gpt(ids))
    model, (source, target) = made(Translation, norm_order=norm_order, **changes), inputs(Translation, target=9)
    memory, memory_mask = model.encode(source)
    pieces = in_pieces(model, target, list(range(1, 9)), memory, memory_mask=memory_mask)
    close(pieces, model(source, target))


@given(st.lists(st.integers(1, 11), max_size=5), st.sampled_from(POSITIONS), st.booleans())
@settings(max_examples=30)
def test_any_pieces_will_do(cuts, positions, silent):
    gpt, ids = made(Gpt, positions=positions), padded_ids(2, 12)
    options = {} if silent else {"probe": Probe()}
    with torch.inference_mode():
        close(in_pieces(gpt, ids, sorted(cuts), **options), gpt(ids))


@pytest.mark.parametrize("kind", [Gpt, Translation])
@pytest.mark.parametrize("causal", [True, False])
def test_a_state_is_a_value_and_its_rows_can_be_picked(kind, causal):
    model, ids = made(kind, causal=causal), padded_ids(3, 7, seed=3)
    source = padded_ids(3, 5)

    def whole(rows: list[int]) -> torch.Tensor:
        return model(torch.cat((source, ids), 1)[rows] if kind is Gpt else source[rows], *given_ids(rows))[:, -1]

    def given_ids(rows: list[int]) -> tuple[torch.Tensor, ...]:
        return () if kind is Gpt else (ids[rows],)

    _, state = model.advance(ids[:, :6], model.start(source))
    first, _ = model.advance(ids[:, 6:], state)
    close(first, whole([0, 1, 2]))
    close(model.advance(ids[:, 6:], state)[0], first)
    rows = [2, 0, 0, 1]
    close(model.advance(ids[rows, 6:], model.reorder(state, torch.tensor(rows)))[0], whole(rows))


def test_the_probe_sees_new_positions_and_every_key():
    model, (source, target) = made(Translation, positions="rotary"), inputs(Translation)
    whole = Probe()
    model(source, target, probe=whole)
    _, state = model.advance(target[:, :4], model.start(source))
    last = Probe()
    model.advance(target[:, 4:], state, probe=last)
    for layer in range(2):
        for site in ("self_attention.weights", "cross_attention.weights", "self_attention.query", "residual"):
            name = f"decoder.layer{layer}.{site}"
            tensor = whole.trace[name]
            close(last.trace[name], tensor[:, -1:] if site == "residual" else tensor[:, :, -1:])
        close(
            last.trace[f"decoder.layer{layer}.self_attention.rotated_key"],
            whole.trace[f"decoder.layer{layer}.self_attention.rotated_key"][:, :, -1:],
        )
        assert f"decoder.layer{layer}.cross_attention.key" not in last.trace


def test_keys_of_the_memory_are_computed_once():
    model, (source, target) = made(Translation), inputs(Translation)
    _, state = model.advance(target[:, :1], model.start(source))
    _, after = model.advance(target[:, 1:2], state)
    for before, now in zip(state.cache.layers, after.cache.layers, strict=True):
        assert now.cross_attention.key is before.cross_attention.key
        assert now.self_attention.length == before.self_attention.length + 1


def test_what_a_cache_cannot_do_is_refused():
    with pytest.raises(ValueError, match="cache was given, but causal=False"):
        made(Gpt, causal=False)(padded_ids(1, 3), cache=KeyValueCache(2))
    gpt = made(Gpt)
    state = gpt.start(padded_ids(1, 12))
    with pytest.raises(ValueError, match=exactly("token_ids has 13 positions; max_len=12 is the most")):
        gpt.advance(torch.tensor([[1]]), state)


def test_it_is_quicker_by_far_than_reading_the_whole_text_again():
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=8_000, d_model=256, n_heads=4, d_ff=1024, n_layers=4, max_len=128)
    gpt, ids = Gpt(config).eval(), torch.randint(1, 8_000, (1, 128))

    def seconds(read) -> float:
        times = []
        for _ in range(4):
            start = time.process_time()
            read()
            times.append(time.process_time() - start)
        return min(times)

    with torch.inference_mode():
        state = gpt.start(ids[:, :-1])
        assert seconds(lambda: gpt(ids)) > 2.5 * seconds(lambda: gpt.advance(ids[:, -1:], state))
