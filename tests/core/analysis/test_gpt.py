"""What a GPT expects, what its mask hides, how it writes on, and what its heads see in verse."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers import refusals
from tests.helpers.engine import TODAY, made, small_tokenizer, work_for_time
from transformer_core.analysis.gpt import cache as cache_module
from transformer_core.analysis.gpt import kept_logits as kept_module
from transformer_core.analysis.gpt.causality import changed_word, without_mask
from transformer_core.analysis.gpt.continuation import MOST_STEPS, greedy_loop, period_of, written_on
from transformer_core.analysis.gpt.draft import drafted
from transformer_core.analysis.gpt.kept_logits import entropy_bits, kept_logits, labels_after
from transformer_core.analysis.gpt.lens import logit_lens
from transformer_core.analysis.gpt.next_token import drawn, expected, redrawn, surprisals
from transformer_core.analysis.gpt.verse import laid_out, looks_of, measured_looks, poem_head, verse_looks
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.models import Classifier, Gpt
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

TEXT = "a cat sat on a mat"
FREE = {"temperature": 1.0, "top_k": None, "top_p": None}
TOKENIZER = Tokenizer.train("character", [TEXT, "the dog ran"], min_frequency=1, template="none")


def bundle_of(kind: type = Gpt, **changes: Any) -> Bundle:
    """Return a tiny lively model of letters."""
    model = made(kind, vocab_size=TOKENIZER.vocab_size, max_len=24, **changes)
    return Bundle("tiny", model, TOKENIZER)


BUNDLE = bundle_of()
N = len(TOKENIZER.encode(TEXT))
ASKED: dict[str, Any] = {"prompt": Prompt(BUNDLE, TEXT, N)}


def log_probs() -> Tensor:
    with torch.inference_mode():
        return BUNDLE.model(torch.tensor([TOKENIZER.encode(TEXT).ids]))[0].log_softmax(-1)


def test_surprisal_is_minus_log2_of_what_the_model_gave_the_token() -> None:
    found, ids, given = surprisals(**ASKED), TOKENIZER.encode(TEXT).ids, log_probs()
    due = [-float(given[place - 1, ids[place]]) / math.log(2) for place in range(1, N)]
    np.testing.assert_allclose(found.bits[1:], due, rtol=1e-5)
    assert np.isnan(found.bits[0])
    assert found.mean_bits == pytest.approx(float(np.mean(due)), rel=1e-5)
    assert found.foreseen == int((found.rank == 1).sum())
    assert len(found.entropy) == len(found.likeliest) == N + 1


@pytest.mark.parametrize("place", [1, 7, N])
def test_expectation_adds_up_to_one_and_names_what_came(place: int) -> None:
    found = expected(**ASKED, place=place, top=5)
    assert found.probabilities.sum() + found.rest == pytest.approx(1.0, abs=1e-5)
    assert found.n_rest + 5 == TOKENIZER.vocab_size
    assert 0 < found.entropy <= found.greatest + 1e-6
    if place < N:
        assert found.came == TOKENIZER.encode(TEXT).labels[place]
        assert found.came_bits == pytest.approx(surprisals(**ASKED).bits[place])
    else:
        assert (found.came, found.came_id) == ("", -1)


def test_temperature_and_cuts_need_no_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    forward = BUNDLE.model.forward

    def counted(*inputs: Any, **options: Any) -> Tensor:
        passes.append(1)
        return forward(*inputs, **options)

    monkeypatch.setattr(BUNDLE.model, "forward", counted)
    kept_module.kept_logits.cache_clear()
    for temperature in (0.3, 1.0, 2.0):
        for top_k, top_p in ((None, None), (3, None), (None, 0.5), (5, 0.9)):
            redrawn(**ASKED, place=N, temperature=temperature, top_k=top_k, top_p=top_p, top=5)
            drawn(**ASKED, place=4, temperature=temperature, top_k=top_k, top_p=top_p, top=5, seed=1, draws=10)
    assert len(passes) == 1


def test_the_rules_leave_nothing_as_it_was_when_they_are_off() -> None:
    found = redrawn(**ASKED, place=N, **FREE, top=5)
    np.testing.assert_allclose(found.before, found.after, rtol=1e-5)
    assert found.cut == pytest.approx(0.0, abs=1e-6)
    assert found.n_kept == found.n_tokens


def test_a_cut_keeps_the_likeliest_and_their_proportions() -> None:
    found = redrawn(**ASKED, place=N, temperature=1.0, top_k=3, top_p=None, top=5)
    assert found.rest_after == 0.0
    assert found.kept.tolist() == [True, True, True, False, False]
    assert found.n_kept == 3
    np.testing.assert_allclose(found.after[:3], found.before[:3] / found.before[:3].sum(), rtol=1e-4)
    assert found.cut == pytest.approx(1 - float(found.before[:3].sum()), abs=1e-5)
    assert found.entropy_after < found.entropy_before


def test_cooling_lowers_the_entropy_and_heating_raises_it() -> None:
    low, one, high = (
        redrawn(**ASKED, place=N, temperature=temperature, top_k=None, top_p=None, top=5).entropy_after
        for temperature in (0.3, 1.0, 3.0)
    )
    assert low < one < high


def test_draws_follow_the_probabilities_and_repeat_with_their_seed() -> None:
    many = drawn(**ASKED, place=N, **FREE, top=6, seed=3, draws=50_000)
    assert many.counts.sum() == 50_000
    np.testing.assert_allclose(many.counts / 50_000, many.probabilities, atol=0.01)
    assert many.distance < 0.02
    assert many.possible == 7
    few = drawn(**ASKED, place=N, temperature=1.0, top_k=2, top_p=None, top=6, seed=3, draws=100)
    assert few.possible == 2
    assert not few.counts[2:].any()
    again = drawn(**ASKED, place=N, **FREE, top=6, seed=3, draws=50_000)
    np.testing.assert_array_equal(many.counts, again.counts)


def test_entropy_is_known_for_simple_distributions() -> None:
    assert float(entropy_bits(torch.full((8,), 1 / 8))) == pytest.approx(3.0)
    assert float(entropy_bits(torch.tensor([1.0, 0.0]))) == 0.0


@pytest.mark.parametrize("order", ["pre", "post"])
def test_the_last_row_of_the_lens_is_the_model(order: str) -> None:
    bundle = bundle_of(norm_order=order)
    found = logit_lens(prompt=Prompt(bundle, TEXT, N), first=3, count=9)
    assert found.difference < 1e-5
    assert found.probability.shape == (bundle.config.n_layers + 1, 9)
    assert found.choices[-1] == found.answers
    assert (found.answer_rank[-1] == 1).all()
    with torch.inference_mode():
        probabilities = bundle.model(torch.tensor([TOKENIZER.encode(TEXT).ids]))[0, 2:11].softmax(-1)
    np.testing.assert_allclose(found.probability[-1], probabilities.amax(-1).numpy(), rtol=1e-4)
    came = surprisals(prompt=Prompt(bundle, TEXT, N)).bits[3:12]  # of the tokens after these places
    np.testing.assert_allclose(found.mean_bits[-1], came.mean(), rtol=1e-4)
    for column, stage in enumerate(found.settled):
        names = [row[column] == found.answers[column] for row in found.choices]
        assert all(names[stage:])
        assert stage == 0 or not names[stage - 1]


def test_nothing_before_a_changed_word_moves_under_the_mask_and_all_of_it_without() -> None:
    found = changed_word(**ASKED, place=10, words="dog")
    assert found.place == 10
    assert found.earlier_masked == 0.0
    assert not found.masked[:, :10].any()
    assert found.moved_masked == 0
    assert found.masked[:, 10].any()
    assert found.moved_unmasked == 10
    assert not found.unmasked[0, :10].any()  # the embedding looks at nobody


def test_words_that_stand_there_already_change_nothing() -> None:
    found = changed_word(**ASKED, place=2, words="cat")
    assert found.place == -1
    assert not found.replaced.any()
    assert not found.masked.any()


def test_without_the_mask_the_reading_is_another_one() -> None:
    found = without_mask(**ASKED)
    np.testing.assert_allclose(found.masked[1:], surprisals(**ASKED).bits[1:], rtol=1e-4)
    assert found.mean_masked != found.mean_unmasked
    assert 0 <= found.right_unmasked < N


def test_a_part_of_a_character_is_labelled_by_what_it_completes() -> None:
    tokenizer = Tokenizer.train("bpe", ["plain words only"], vocab_size=270, template="none")
    ids = tokenizer.encode("a你").ids
    assert labels_after(tokenizer, ids[:-1], [ids[-1]]) == ("你 3/3",)
    assert labels_after(tokenizer, [], [ids[1], tokenizer.vocab_size + 5]) == ("<E4>", f"<{tokenizer.vocab_size + 5}>")


def test_greedy_writing_takes_the_likeliest_and_any_number_of_steps_agrees() -> None:
    rules = {"how": "greedy", **FREE, "seed": 0, "choices": ()}
    few, many = (written_on(**ASKED, **rules, steps=steps) for steps in (3, 12))
    assert [step.token_id for step in many.steps[:3]] == [step.token_id for step in few.steps]
    assert all(step.rank == 1 and step.chance == 1.0 for step in many.steps)
    assert TOKENIZER.decode([step.token_id for step in many.steps]) == many.written


def test_a_persons_token_leaves_what_stands_before_it_and_changes_what_follows() -> None:
    rules = {"how": "sample", **FREE, "seed": 5}
    free = written_on(**ASKED, **rules, choices=(), steps=20)
    other = next(id_ for id_ in free.steps[6].top_ids if id_ not in (free.steps[6].token_id, TOKENIZER.eos_id))
    put = written_on(**ASKED, **rules, choices=((6, other),), steps=20)
    assert [step.token_id for step in put.steps[:6]] == [step.token_id for step in free.steps[:6]]
    assert put.steps[6].token_id == other
    assert put.steps[6].by_person
    assert put.steps[6].top_probabilities == free.steps[6].top_probabilities


def test_writing_ends_with_the_end_token() -> None:
    assert TOKENIZER.eos_id is not None
    rules = {"how": "greedy", **FREE, "seed": 0, "choices": ((2, TOKENIZER.eos_id),)}
    found = written_on(**ASKED, **rules, steps=10)
    assert found.ended
    assert len(found.steps) == 3


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ([1, 2, 3], (0, -1)),
        ([9, 1, 2, 1, 2, 1, 2], (2, 1)),
        ([7, 4, 4, 4], (1, 1)),
        ([1, 2, 1, 2], (0, -1)),
        ([], (0, -1)),
    ],
)
def test_a_circle_is_its_shortest_period(ids: list[int], found: tuple[int, int]) -> None:
    assert period_of(ids) == found


def test_a_circle_is_named_by_one_round() -> None:
    found = greedy_loop(**ASKED, steps=60)
    assert len(found.again) == found.period
    assert (found.since >= 0) == (found.period > 0)


def test_a_cache_gives_the_same_scores_from_less_work_and_holds_keys_and_values(monkeypatch) -> None:
    work_for_time(monkeypatch)
    found = cache_module.cache_times(**ASKED, measurement=0)
    config = BUNDLE.config
    assert found.apart < 1e-4
    assert (found.cached < found.plain).all()
    assert (np.diff(found.plain) > np.diff(found.cached)).all()
    per_token = 2 * config.n_layers * config.n_heads * (config.d_head or config.d_model // config.n_heads) * 4
    np.testing.assert_array_equal(found.size, found.lengths * per_token)
    assert found.lengths[-1] == config.max_len


@pytest.mark.parametrize("options", ["paper", *TODAY])
def test_what_is_kept_is_what_was_computed_and_takes_the_bytes_that_are_said(options: str) -> None:
    model = made(Gpt, max_len=90, **TODAY.get(options, {})).requires_grad_(False)
    config, prompt = model.config, Prompt(Bundle("kept", model, small_tokenizer()), "a glass box " * 28, 80)
    ids = torch.tensor([prompt.encoding.ids])
    _, trace = capture(model, ids, sites=("*.self_attention.*",))
    for layer in range(2):
        found, scope = cache_module.kept_of_text(prompt=prompt, layer=layer), f"decoder.layer{layer}.self_attention"
        forms = (f"{scope}.rotated_key", f"{scope}.normalized_key", f"{scope}.key")
        key = next(trace[form] for form in forms if form in trace)[0].numpy()
        window = config.window(layer)
        assert found.forgotten == (0 if window is None else max(0, 80 - window - 64))
        np.testing.assert_allclose(found.key, key[:, found.forgotten :], atol=1e-5)
        np.testing.assert_allclose(found.value, trace[f"{scope}.value"][0].numpy()[:, found.forgotten :], atol=1e-5)
        assert found.labels == prompt.encoding.labels[found.forgotten :]
        assert found.size == found.here[found.heads.index(config.kv_heads)]
        assert found.heads[0] == config.n_heads
        assert found.heads[-1] == 1
        of_one = np.array(found.needed) / np.array(found.heads)[:, None]
        np.testing.assert_allclose(of_one, of_one[:1].repeat(len(found.heads), 0))
        for length in (1, 65, 90):
            state = model.start(torch.ones(1, length, dtype=torch.int64))
            taken = sum(pair.key.nbytes + pair.value.nbytes for pair in (one.self_attention for one in state.layers))
            assert cache_module.bytes_kept(config, length, config.kv_heads, 4) == taken


POEM = "春风吹落日，秋月照空山。客路三千里，人家一水间。"
OTHER = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"
CHARACTERS = Tokenizer.train("character", [POEM, OTHER], min_frequency=1, template="none")


def poet_bundle() -> Bundle:
    """Return a GPT of two layers with random weights."""
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 2, "max_len": 64, "positions": "learned"}
    model = Gpt(ModelConfig(vocab_size=CHARACTERS.vocab_size, dropout=0.0, **sizes))
    return Bundle("poet", model.eval().requires_grad_(False), CHARACTERS)


def test_a_character_stands_under_its_place_of_the_line_before_and_even_lines_rhyme() -> None:
    above, rhyme = looks_of(POEM)
    assert laid_out(POEM)[6:8] == [(1, 0), (1, 1)]
    assert not above[:6].any()
    assert np.argwhere(above[6:11]).tolist() == [[place, place] for place in range(5)]
    assert not above[11].any()  # a sign stands under nothing
    assert np.argwhere(rhyme).tolist() == [[22, 10]]


def test_the_weights_on_a_poem_are_those_of_the_query_before_each_character() -> None:
    poet = poet_bundle()
    found = poem_head(prompt=Prompt(poet, POEM, 64), layer=1, head=0)
    ids = torch.tensor([CHARACTERS.encode(POEM).ids])
    _, trace = capture(poet.model, ids, sites=("decoder.layer1.self_attention.weights",))
    weights = trace["decoder.layer1.self_attention.weights"][0, 0].numpy()
    assert np.allclose(found.weights[1:], weights[:-1])
    assert not found.weights[0].any()
    assert "".join(found.characters) == POEM


def test_the_mean_over_poems_is_that_of_their_weights_and_heads_are_worth_what_is_lost_without_them() -> None:
    poet = poet_bundle()
    found = verse_looks(poet, [POEM, OTHER])
    assert found.places == (30, 2)
    on_rhyme = [poem_head(prompt=Prompt(poet, text, 64), layer=0, head=1).weights[22, 10] for text in (POEM, OTHER)]
    assert found.weights[1, 0, 1] == pytest.approx(np.mean(on_rhyme), rel=1e-5)
    assert found.uniform[1] == pytest.approx(1 / 22)
    assert found.worth.any()


WRITE: dict[str, Any] = ASKED | FREE | {"how": "greedy", "seed": 0, "choices": (), "steps": 1}
REFUSED = [
    (lambda: expected(**ASKED, place=0, top=5), f"place=0 must be from 1 to {N}"),
    (lambda: kept_logits(Prompt(bundle_of(Classifier), TEXT, N)), "must be a gpt"),
    (lambda: written_on(**WRITE | {"steps": MOST_STEPS + 1}), f"steps={MOST_STEPS + 1} must be from 0 to {MOST_STEPS}"),
    (lambda: written_on(**WRITE | {"choices": ((0, 999),)}), "an id below"),
    (lambda: written_on(**WRITE | {"how": "beam"}), "how='beam'"),
    (lambda: measured_looks(bundle=poet_bundle()), "'poet' has 0 measured looks"),
    (lambda: verse_looks(poet_bundle(), ["春风吹落日，"]), "no line that rhymes"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)


@pytest.mark.parametrize("options", ["", "llama", "window", "gemma2"])
@pytest.mark.parametrize("proposed", ["itself", "other", "layers", "text"])
def test_a_text_with_drafts_is_the_text_without_them_in_no_more_passes(options: str, proposed: str) -> None:
    bundle = bundle_of(**TODAY.get(options, {}))
    other = Bundle("other", made(Gpt, seed=1, vocab_size=TOKENIZER.vocab_size, max_len=24), TOKENIZER)
    found = drafted(
        prompt=Prompt(bundle, TEXT[:4], 4),
        drafter={"itself": bundle, "other": other}.get(proposed),
        layers=1 if proposed == "layers" else None,
        length=3,
        steps=16,
    )
    assert found.same == found.tokens > 0
    assert found.tokens == found.accepted + sum(one.own is not None for one in found.passes)
    assert all(one.own is not None for one in found.passes[:-1])
    assert all(one.accepted <= len(one.guessed) <= 3 for one in found.passes)
    if proposed == "itself":
        ended = found.passes[-1].own is None
        assert found.accepted == found.tokens - len(found.passes) + ended
        assert len(found.passes) == math.ceil(found.tokens / 4)
        assert (found.share, found.weights) == (1.0, len(found.passes) + found.guessed)
    if proposed == "text":
        assert found.share == 0
    if proposed == "layers":
        short, whole = bundle.model.first_layers(1), bundle.model
        numbers = [sum(parameter.numel() for parameter in model.parameters()) for model in (short, whole)]
        assert found.share == numbers[0] / numbers[1]


def test_drafts_end_with_the_models_room_and_refuse_another_vocabulary() -> None:
    asked = {"drafter": None, "layers": None, "length": 4}
    assert drafted(prompt=Prompt(BUNDLE, TEXT, N), **asked).tokens == 24 - N
    assert drafted(prompt=Prompt(BUNDLE, TEXT + TEXT, 24), **asked).tokens == 0
    with pytest.raises(ValueError, match=r"drafter has 13 tokens; it must have \d+, as the model has"):
        drafted(prompt=ASKED["prompt"], **asked | {"drafter": Bundle("other", made(Gpt), TOKENIZER)})
    with pytest.raises(ValueError, match="length=9 must be from 1 to 8"):
        drafted(prompt=ASKED["prompt"], **asked | {"length": 9})
    with pytest.raises(ValueError, match="count=3 must be from 1 to 2"):
        drafted(prompt=ASKED["prompt"], **asked | {"layers": 3})


def test_the_first_layers_are_those_of_the_model() -> None:
    ids = torch.tensor([TOKENIZER.encode(TEXT).ids])
    whole, short = BUNDLE.model, BUNDLE.model.first_layers(1)
    with torch.inference_mode():
        _, trace = capture(whole, ids, sites=("decoder.layer0.residual",))
        due = whole.output(whole.decoder.stack.final_norm(trace["decoder.layer0.residual"]))
        torch.testing.assert_close(short(ids), due)
        torch.testing.assert_close(whole.first_layers(2)(ids), whole(ids))
