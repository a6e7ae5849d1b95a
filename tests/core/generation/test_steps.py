"""Writing word by word: the cache, greedy steps, sampling and its probabilities."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.core.models.test_properties import CHANGES, POSITIONS
from tests.helpers import nightly_but
from tests.helpers.engine import TODAY, close, exactly, inputs, made, numbers_made, padded_ids
from transformer_core.generation import Written, greedy, greedy_words, probabilities, sample
from transformer_core.generation.sampling import without
from transformer_core.layers import cache
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
@pytest.mark.parametrize("norm_order", nightly_but(["pre", "post"], ["pre"]))
def test_cached_logits_are_those_without(changes, norm_order):
    changes = {"norm_order": norm_order} | changes
    gpt, ids = made(Gpt, **changes), padded_ids(3, 10)
    close(in_pieces(gpt, ids, list(range(1, 10))), gpt(ids))
    if changes.get("parallel"):
        return
    model, (source, target) = made(Translation, **changes), inputs(Translation, target=9)
    memory, memory_mask = model.encode(source)
    pieces = in_pieces(model, target, list(range(1, 9)), memory, memory_mask=memory_mask)
    close(pieces, model(source, target))


@given(st.lists(st.integers(1, 11), max_size=5), st.sampled_from(POSITIONS), st.booleans())
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


@torch.inference_mode()
@pytest.mark.parametrize("changes", ["llama", "gemma3", "window"])
def test_a_windows_cache_is_bounded_and_words_can_be_taken_back(changes, monkeypatch):
    monkeypatch.setattr(cache, "MOST_TAKEN_BACK", 2)
    gpt, ids = made(Gpt, max_len=64, **TODAY[changes]), padded_ids(1, 40)
    state = KeyValueCache(2)
    for place in range(38):
        gpt(ids[:, place : place + 1], cache=state)
    for layer, kept in enumerate(state.layers):
        window = gpt.config.window(layer)
        assert kept.self_attention.length == 38
        assert kept.self_attention.key.shape[2] == (38 if window is None else window + 2)
    back = state.truncated(36)
    close(gpt(ids[:, 36:], cache=back)[:, -1], gpt(ids)[:, -1])
    if any(gpt.config.windows):
        with pytest.raises(ValueError, match=exactly("length=30 must be at least 36: the rest is forgotten")):
            state.truncated(30)


def test_what_a_cache_cannot_do_is_refused():
    with pytest.raises(ValueError, match="cache was given, but causal=False"):
        made(Gpt, causal=False)(padded_ids(1, 3), cache=KeyValueCache(2))
    gpt = made(Gpt)
    state = gpt.start(padded_ids(1, 12))
    with pytest.raises(ValueError, match=exactly("token_ids has 13 positions; max_len=12 is the most")):
        gpt.advance(torch.tensor([[1]]), state)


@torch.inference_mode()
def test_a_cache_makes_far_fewer_numbers_than_reading_the_whole_text_again():
    gpt = made(Gpt, max_len=64)
    ids = torch.randint(1, 13, (1, 64))
    state = gpt.start(ids[:, :-1])
    assert numbers_made(lambda: gpt(ids)) > 5 * numbers_made(lambda: gpt.advance(ids[:, -1:], state))


def test_greedy_takes_the_likeliest_word_given_what_it_wrote() -> None:
    model, source = made(Translation), torch.tensor([[1, 5, 6, 7, 2]])
    written = [step.token_id for step in greedy(model, source, bos_id=1, eos_id=2, most=6)]
    target = torch.tensor([[1, *written]])
    logits = model(source, target[:, :-1])
    assert logits[0].argmax(-1).tolist() == written
    assert len(written) == 6 or written[-1] == 2


def test_greedy_ends_with_the_end_token() -> None:
    model, source = made(Translation), torch.tensor([[1, 5, 2]])
    likeliest = next(greedy(model, source, bos_id=1, eos_id=2, most=1)).token_id
    assert [step.token_id for step in greedy(model, source, bos_id=1, eos_id=likeliest, most=9)] == [likeliest]


def test_a_sample_repeats_with_its_seed_and_reads_its_last_tokens() -> None:
    model = made(Gpt)
    beginning = torch.randint(1, model.config.vocab_size, (1, model.config.max_len + 3))

    def write(seed: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed)
        return [step.token_id for step in sample(model, beginning, most=12, generator=generator)]

    assert write(0) == write(0)
    assert write(0) != write(1)
    assert len(write(0)) == 12


def test_a_low_temperature_takes_the_likeliest() -> None:
    model, beginning = made(Gpt), torch.tensor([[3, 4, 5]])
    for step in sample(model, beginning, most=5, temperature=1e-4):
        assert step.token_id == int(step.logits.argmax())


def test_what_cannot_be_sampled_is_refused() -> None:
    model = made(Gpt)
    with pytest.raises(ValueError, match="temperature=0 must be more than 0"):
        next(sample(model, torch.tensor([[3]]), most=1, temperature=0))
    with pytest.raises(ValueError, match="at least one token"):
        next(sample(model, torch.zeros(1, 0, dtype=torch.long), most=1))


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("causal", [True, False])
def test_a_cache_changes_nothing_not_even_past_the_window(positions, causal):
    model, beginning = made(Gpt, positions=positions, causal=causal), torch.tensor([[3, 4, 5]])

    def drawn(cached: bool) -> list[Written]:
        return list(sample(model, beginning, most=16, generator=torch.Generator().manual_seed(0), cached=cached))

    greedily = [list(greedy_words(model, beginning, most=16, cached=cached)) for cached in (True, False)]
    for kept, whole in (greedily, (drawn(True), drawn(False))):
        assert [step.token_id for step in kept] == [step.token_id for step in whole]
        close(torch.stack([step.logits for step in kept]), torch.stack([step.logits for step in whole]))


def test_what_is_excluded_is_never_written_and_nothing_is_unasked():
    model, beginning = made(Gpt), torch.tensor([[3, 4]])
    likeliest = next(greedy_words(model, beginning, most=1)).token_id
    assert next(greedy_words(model, beginning, most=1, exclude=(likeliest,))).token_id != likeliest
    drawn = {step.token_id for step in sample(model, beginning, most=60, temperature=1e4)}
    assert drawn == set(range(13))
    drawn = {step.token_id for step in sample(model, beginning, most=60, temperature=1e4, exclude=(0, 1))}
    assert drawn == set(range(2, 13))


def test_top_k_of_one_is_greedy():
    model, beginning = made(Gpt), torch.tensor([[3, 4]])
    greedily = [step.token_id for step in greedy_words(model, beginning, most=9)]
    assert [step.token_id for step in sample(model, beginning, most=9, top_k=1)] == greedily


LOGITS = torch.log(torch.tensor([0.5, 0.25, 0.15, 0.1]))


def test_the_published_rules_on_four_words():
    close(probabilities(LOGITS), torch.tensor([0.5, 0.25, 0.15, 0.1]))
    close(probabilities(LOGITS, top_k=2), torch.tensor([2 / 3, 1 / 3, 0.0, 0.0]))
    close(probabilities(LOGITS, top_p=0.7), torch.tensor([2 / 3, 1 / 3, 0.0, 0.0]))
    close(probabilities(LOGITS, top_p=0.76), torch.tensor([0.5, 0.25, 0.15, 0.0]) / 0.9)
    close(probabilities(LOGITS, top_k=2, top_p=0.6), torch.tensor([1.0, 0.0, 0.0, 0.0]))
    close(probabilities(LOGITS, temperature=0.5), torch.tensor([0.25, 0.0625, 0.0225, 0.01]) / 0.345)


@given(st.integers(0, 1000), st.floats(1e-30, 50), st.integers(1, 30), st.floats(1e-6, 1))
def test_they_sum_to_one_and_keep_the_likeliest(seed, temperature, top_k, top_p):
    logits = torch.randn(3, 20, generator=torch.Generator().manual_seed(seed)) * 5
    kept = probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    close(kept.sum(-1), torch.ones(3))
    assert bool((kept > 0).sum(-1).le(min(top_k, 20)).all())
    assert torch.equal(kept.argmax(-1), logits.argmax(-1))
    everything = probabilities(logits, temperature=temperature)
    before = (everything * (kept > 0)).sum(-1)
    fewest = before - everything.masked_fill(kept == 0, 2).amin(-1)
    assert bool((fewest < top_p + 1e-5).all())


@pytest.mark.parametrize("top_p", [1.0, None])
def test_nothing_is_cut_unasked(top_p):
    logits = torch.randn(5, 40)
    close(probabilities(logits, top_k=40, top_p=top_p), logits.softmax(-1))


def test_ties_leave_exactly_k():
    assert int((probabilities(torch.zeros(9), top_k=4) > 0).sum()) == 4
    assert int((probabilities(torch.zeros(10), top_p=0.25) > 0).sum()) == 3


def test_excluded_tokens_have_no_chance_and_the_logits_stay_as_they_were():
    logits = LOGITS.clone()
    close(probabilities(without(logits, (0, 3))), torch.tensor([0.0, 0.625, 0.375, 0.0]))
    assert torch.equal(logits, LOGITS)
    with pytest.raises(ValueError, match="exclude="):
        without(logits, (4,))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature=0 must be more than 0"),
        ({"temperature": float("nan")}, "temperature=nan"),
        ({"top_k": 0}, "top_k=0 must be at least 1"),
        ({"top_p": 0.0}, "top_p=0.0 must be more than 0 and at most 1"),
        ({"top_p": 1.5}, "top_p=1.5"),
    ],
)
def test_arguments_out_of_range_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        probabilities(LOGITS, **options)
