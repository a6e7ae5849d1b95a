"""Every tensor is what its formula makes of its inputs, and every parameter is counted."""

import math
import re
from functools import cache

import numpy as np
import pytest
import torch

from tests.helpers import ROOT, nightly_but, refusals
from tests.helpers.engine import CROSSING, TODAY, inputs, made, seq2seq_bundle, shipped, small_tokenizer, value_of
from transformer_core.analysis.arithmetic import RULES, Pass, explain_cell, pass_through, recompute, tensor_of
from transformer_core.analysis.arithmetic.computation import apart
from transformer_core.analysis.attention.heads import head_off
from transformer_core.analysis.parameter_counts import PARTS, REST, count_parts
from transformer_core.analysis.part_tensors import part_tensors
from transformer_core.analysis.source import lines_of
from transformer_core.bundle import CONFIGS, MODELS, Bundle
from transformer_core.config import ModelConfig
from transformer_core.models import AnswerFinder, Bert, Classifier, Gpt, SentenceEncoder, TokenClassifier, Translation
from transformer_core.models.recurrent import RecurrentLm, Seq2Seq
from transformer_core.prompt import Prompt
from transformer_core.sites import SITES

KINDS = (Classifier, Gpt, Bert, SentenceEncoder, Translation)
CHANGES = {
    "plain": {},
    "post": {"norm_order": "post", "norm": "unbiased"},
    "bert": {"positions": "learned", "n_segments": 2, "embedding_norm": True, "tied_output": False},
    "rotary": {"positions": "rotary", "d_head": 6, "scale_embeddings": True, "activation": "relu"},
    "additive": {"positions": "alibi", "scoring": "additive", "activation": "gelu_tanh", "n_heads": 4},
    "mean": {"pooling": "mean", "share_query_key": True, "share_key_value": True, "positions": "sinusoidal_doubled"},
    "bare": {"projections": False, "positions": "none", "residual": False},
    "pooled": {"pooler": "tanh", "norm_order": "post", "pair_head": False, "activation": "silu"},
    "bent": {"pooler": "relu", "pooling": "mean"},
    "electra": {"pooler": "gelu", "embedding_width": 6, "n_segments": 2, "tied_output": False},
    "roberta": {"positions": "learned", "positions_skip_padding": True, "embedding_norm": True},
    "marian": {"sinusoidal_halves": True, "starts_with_pad": True, "output_bias": True, "scale_embeddings": True},
    "article": {"padding_mask": "mixed_heads"},
    **TODAY,
    "unbiased": {"bias": False, "pad_id": None, "scale_scores": False, "causal": False, "positions": "alibi"},
}
RECURRENT = {
    "gru": {},
    "dot": {"attention": "dot_product", "tied_output": False},
    "lstm": {"unit": "lstm", "bidirectional": False},
    "both_ways": {"unit": "lstm", "attention": None},
    "tanh": {"unit": "tanh", "attention": "dot_product", "pad_id": None},
}
LM = {f"lm_{unit}": {"unit": unit} for unit in ("gru", "lstm", "tanh")} | {"lm_one_hot": {"one_hot": True}}
ALL = [(kind, variant) for kind in KINDS for variant in CHANGES if kind not in CROSSING or variant != "neox"]
ALL += [(Seq2Seq, variant) for variant in RECURRENT]
ALL += [(RecurrentLm, variant) for variant in LM] + [(kind, "plain") for kind in (TokenClassifier, AnswerFinder)]
GATE = [
    *((Translation, variant) for variant in CHANGES if variant not in TODAY),
    *((Gpt, variant) for variant in TODAY),
    (Translation, "t5"),
    *((Classifier, variant) for variant in ("plain", "mean", "pooled", "bent", "electra")),
    *[(Bert, "bert"), (Bert, "roberta"), (Gpt, "plain"), (Gpt, "unbiased"), (SentenceEncoder, "mean")],
    *((kind, variant) for kind, variant in ALL if kind in (Seq2Seq, RecurrentLm, TokenClassifier, AnswerFinder)),
]
LOOKED_UP = re.compile(r"[BEPS]_{\d+,")  # printed as a place in a matrix, such as E_{30,7}


@cache
def run_of(kind, variant: str) -> Pass:
    """Run a tiny model over a batch with padding."""
    model = made(kind, **(CHANGES | RECURRENT | LM)[variant])
    segments = None
    if kind is Bert and model.config.n_segments:
        segments = torch.tensor([[0, 0, 1, 1, 1]] * 3)
    return pass_through(model, *inputs(kind), segment_ids=segments)


def some_cells(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the first, the last, and a few cells between."""
    size = math.prod(shape)
    return [tuple(map(int, np.unravel_index(place, shape))) for place in {0, size // 3, size // 2 + 1, size - 1}]


def test_every_leaf_has_its_rule_and_is_met_here() -> None:
    assert RULES.keys() == SITES.keys()
    assert {name.rpartition(".")[2] for kind, variant in GATE for name in run_of(kind, variant).trace} == SITES.keys()


@pytest.mark.parametrize(("kind", "variant"), nightly_but(ALL, GATE))
def test_every_tensor_is_its_formula_recomputed_in_float64(kind, variant: str) -> None:
    run = run_of(kind, variant)
    for name, recorded in run.trace.items():
        found = recompute(run, name)
        assert found.agrees, f"{name} is {found.difference} away"
        assert not found.edited
        assert found.recomputed.shape == tuple(recorded.shape)
        assert not recorded.is_floating_point() or found.recomputed.dtype == np.float64
        np.testing.assert_allclose(found.recomputed, recorded.numpy(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("kind", "variant"), nightly_but(ALL, GATE[::2]))
def test_a_cells_numbers_come_from_what_was_recorded_and_make_its_value_and_print_it(kind, variant: str) -> None:
    run = run_of(kind, variant)
    order = list(run.trace)
    for name, recorded in run.trace.items():
        for source in explain_cell(run, name, (0,) * recorded.dim()).sources.values():
            of_the_step_before = source.rpartition(".")[2] in ("hidden", "cell") and kind in (Seq2Seq, RecurrentLm)
            assert of_the_step_before or order.index(source) < order.index(name), f"{name} cannot come from {source}"
        for index in some_cells(tuple(recorded.shape)):
            found = explain_cell(run, name, index)
            assert found.recorded == float(recorded[index])
            assert found.cell.value == pytest.approx(found.recorded, rel=1e-5, abs=1e-5), f"{name} {index}"
            if LOOKED_UP.match(found.cell.numbers):
                continue
            printed = value_of(found.cell.numbers)
            assert printed == pytest.approx(found.cell.value, rel=2e-2, abs=1e-2), f"{name}: {found.cell.numbers}"
            assert value_of(found.result) == pytest.approx(found.cell.value, rel=1e-3, abs=1e-9)
            assert found.cell.symbols.count("{") == found.cell.symbols.count("}")
            assert "<" not in found.cell.symbols + found.cell.numbers


def test_a_looked_up_row_is_printed_with_its_id() -> None:
    run = run_of(Classifier, "plain")
    ids = run.trace["encoder.embedding.token_ids"]
    found = explain_cell(run, "encoder.embedding.token_embedding", (1, 2, 7))
    assert found.cell.numbers == rf"E_{{{int(ids[1, 2])},\,7}}"
    assert found.entry == "e_{2,7}"


def test_a_hidden_pair_and_a_wholly_hidden_row_are_said_to_be_so() -> None:
    run = run_of(Classifier, "plain")
    scope = "encoder.layer0.self_attention"
    hidden = explain_cell(run, f"{scope}.masked_scores", (2, 1, 0, 4))
    assert hidden.cell.numbers == r"-\infty"
    assert "M_{0,4}=0" in hidden.cell.symbols
    ids = torch.zeros(1, 3, dtype=torch.int64)
    empty = pass_through(run.model, ids)
    found = explain_cell(empty, f"{scope}.weights", (0, 0, 1, 1))
    assert (found.cell.numbers, found.cell.value) == ("0", 0.0)
    assert recompute(empty, f"{scope}.weights").difference == 0.0


def test_an_edited_tensor_says_so_and_what_follows_from_it_agrees() -> None:
    model = made(Classifier)
    scope = "encoder.layer0.self_attention"
    run = pass_through(model, *inputs(Classifier), edits=head_off(scope, 1))
    edited = recompute(run, f"{scope}.heads")
    assert edited.edited
    assert not edited.agrees
    assert edited.difference == pytest.approx(float(np.abs(edited.recomputed[:, 1]).max()))
    rest = [recompute(run, name) for name in run.trace if name != f"{scope}.heads"]
    assert all(found.agrees and not found.edited for found in rest)


def test_another_number_in_the_trace_is_found_out() -> None:
    run = run_of(Gpt, "plain")
    name = "decoder.layer1.feed_forward.activation"
    tensors = dict(run.trace.items())
    tensors[name] = tensors[name].clone()
    tensors[name][0, 0, 0] += 0.01
    spoilt = Pass(run.model, run.ids, type(run.trace)(tensors))
    assert not recompute(spoilt, name).agrees
    assert recompute(spoilt, name).difference == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor_has_its_line(kind) -> None:
    run = run_of(kind, "bert")
    lines = lines_of(run.model)
    assert lines.keys() == run.trace._tensors.keys()
    for name, line in lines.items():
        assert f'tap("{name.rpartition(".")[2]}"' in line.code
        text = (ROOT / line.path).read_text(encoding="utf-8").splitlines()
        assert text[line.number - 1].strip() == line.code.splitlines()[-1].strip()


TEXT = "The actors were bad, the story was good."


@pytest.mark.parametrize(
    "name",
    nightly_but(
        ["sentiment", "sentiment-zh", "bert", "gpt", "gpt-poem", "translation-en-fr"], ["sentiment", "bert", "gpt"]
    ),
)
def test_each_part_has_its_tensor(name: str) -> None:
    bundle = shipped(name)
    found, config = part_tensors(prompt=Prompt(bundle, TEXT, 64)), bundle.config
    ids = bundle.tokenizer.encode(TEXT, max_len=64).ids
    n = len(ids)
    assert found["tokens"].tolist() == list(ids)
    assert found["embedding"].shape == found["positions"].shape == (n, config.d_model)
    assert found["attention"].shape == (config.n_heads, n, n)
    np.testing.assert_allclose(found["attention"].sum(-1), 1, atol=1e-5)
    assert found["feed_forward"].shape == (n, config.d_ff)
    with torch.inference_mode():
        if name.startswith("sentiment"):
            own = bundle.model(torch.tensor([ids])).softmax(-1)[0]
            assert found["pooled"].shape == (config.d_model,)
        elif name.startswith("gpt"):
            own = bundle.model(torch.tensor([ids])).softmax(-1)[0]
        else:
            assert "outcome" not in found
            return
    if name.startswith("gpt"):
        np.testing.assert_allclose(found["word_scores"], own, atol=1e-6)
        assert found["outcome"].shape == (config.vocab_size,)
    else:
        np.testing.assert_allclose(found["outcome"], own, atol=1e-6)


def test_what_stands_at_mask_is_the_outcome_of_a_bert() -> None:
    bundle = shipped("bert")
    found = part_tensors(prompt=Prompt(bundle, "A man is riding a [MASK].", 64))
    place = found["tokens"].tolist().index(bundle.tokenizer.mask_id)
    np.testing.assert_allclose(found["outcome"], found["word_scores"][place], atol=1e-6)


def test_a_text_of_one_token_keeps_its_shapes() -> None:
    bundle = shipped("gpt-char")
    found = part_tensors(prompt=Prompt(bundle, "a", 64))
    width = bundle.config.d_model
    assert [found[part].shape for part in ("tokens", "embedding", "positions")] == [(1,), (1, width), (1, width)]
    assert found["word_scores"].shape == (1, bundle.config.vocab_size)


@pytest.mark.parametrize("kind", MODELS)
def test_all_parameters_are_counted(kind: str) -> None:
    torch.manual_seed(0)
    config = CONFIGS[kind](vocab_size=13) if kind in CONFIGS else ModelConfig(vocab_size=13, d_model=8, n_heads=2)
    bundle = Bundle("x", MODELS[kind](config), small_tokenizer())
    found = count_parts(bundle=bundle)
    assert found.counts.sum() == bundle.n_parameters
    assert set(found.parts) <= {*PARTS, REST}
    assert list(found.counts) == sorted(found.counts, reverse=True)
    assert found.shares.sum() == pytest.approx(1)


def test_of_a_mixture_as_many_experts_count_as_active_as_a_token_chooses() -> None:
    sizes = {"n_experts": 5, "n_active_experts": 2, "shared_d_ff": 7, "shared_gate": True, "gated": True}
    model = made(Gpt, bias=False, **sizes)
    found, config = count_parts(bundle=Bundle("x", model, small_tokenizer())), model.config
    counts, active = (dict(zip(found.parts, numbers, strict=True)) for numbers in (found.counts, found.active))
    routing = config.d_model * 5 + 3 * config.d_model * 7 + config.d_model
    expert = 3 * config.d_model * config.d_ff
    assert counts["feed_forward"] == config.n_layers * (5 * expert + routing)
    assert active["feed_forward"] == config.n_layers * (2 * expert + routing)
    assert {part: n for part, n in counts.items() if part != "feed_forward"} == {
        part: n for part, n in active.items() if part != "feed_forward"
    }


def test_the_parts_of_a_gpt() -> None:
    model = made(Gpt)
    found = count_parts(bundle=Bundle("x", model, small_tokenizer()))
    counts = dict(zip(found.parts, found.counts, strict=True))
    config = model.config
    width = config.n_heads * config.d_head
    per_layer = 4 * config.d_model * width + 3 * width + config.d_model
    assert counts["attention"] == config.n_layers * per_layer
    assert counts["feed_forward"] == config.n_layers * (2 * config.d_model * config.d_ff + config.d_ff + config.d_model)


PAIR = Bundle("pair", made(Translation), shipped("sentiment").tokenizer)
PLAIN = run_of(Classifier, "plain")
REFUSED = [
    (lambda: explain_cell(PLAIN, "class_logits", (0, 9)), "index=(0, 9) must lie within class_logits of shape (3, 2)"),
    (
        lambda: tensor_of(prompt=Prompt(shipped("sentiment"), "a dull film", 4), name="smell"),
        "name='smell' is not recorded; recorded: encoder.embedding.token_ids, ",
    ),
    (
        lambda: tensor_of(prompt=Prompt(PAIR, "hello", 4), name="logits"),
        "bundle='pair' is a translation, which reads two texts; it must read one",
    ),
    (lambda: part_tensors(prompt=Prompt(seq2seq_bundle(), TEXT, 64)), "must be a Classifier"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)


@pytest.mark.parametrize(
    ("recorded", "difference"),
    [((-math.inf, 2.0), math.inf), ((math.nan, 2.0), math.inf), ((1.0, math.inf), 0.0), ((3.0, math.inf), 2.0)],
)
def test_a_difference_is_infinite_where_one_side_alone_is(recorded: tuple[float, float], difference: float) -> None:
    recomputed = torch.tensor([1.0, recorded[1]], dtype=torch.float64)
    assert apart(torch.tensor(recorded), recomputed) == difference
