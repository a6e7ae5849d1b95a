"""A score's sum adds up, its openings add up, and shares and effects are those of plain passes."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.engine import READ_BY, TODAY, made, shipped
from transformer_core.analysis.bert.masked_words import hidden_text
from transformer_core.analysis.outcome import read
from transformer_core.analysis.stream.asked_score import ALONE
from transformer_core.analysis.stream.score_sum import ScoreSum, likeliest, score_sum
from transformer_core.analysis.stream.score_without import compared, score_without, score_without_each
from transformer_core.analysis.translation.greedy_steps import written_greedily
from transformer_core.bundle import MODELS, Bundle
from transformer_core.probe import capture
from transformer_core.prompt import Prompt

KINDS = ("gpt", "bert", "translation", "classifier")
OLD: dict[str, dict[str, Any]] = {
    "post": {"norm_order": "post", "embedding_norm": True, "n_segments": 2},
    "unbiased": {"norm": "unbiased", "norm_order": "post", "output_bias": True, "tied_output": False},
    "plain": {"projections": False, "residual": False},
    "shared_values": {"share_key_value": True, "pooling": "mean", "pooler": "relu", "scoring": "additive"},
    "tanh": {"pooler": "tanh", "bias": False, "norm_order": "pre"},
    "mean_mixture": TODAY["shared_expert"] | {"pooling": "mean", "norm_order": "post"},
}
CONFIGS = TODAY | OLD
TEXT = "a man in a red shirt"


def asked(kind: str, **changes: Any) -> dict[str, Any]:
    """Return what score_sum takes, of a tiny lively model of this kind."""
    tokenizer = shipped(READ_BY[kind]).tokenizer
    model = made(MODELS[kind], vocab_size=tokenizer.vocab_size, max_len=16, **changes).requires_grad_(False)
    bundle = Bundle(kind, model, tokenizer, ("no", "yes") if kind == "classifier" else ())
    return asking(bundle)


def asking(bundle: Bundle, text: str = TEXT) -> dict[str, Any]:
    prompt = Prompt(bundle, text, 12)
    if bundle.kind == "translation":
        return {"prompt": prompt, "target_ids": (bundle.tokenizer.bos_id, 5, 9, 7), "place": 2}
    return {"prompt": prompt} | ({"hidden": (2,)} if bundle.kind == "bert" else {})


def check(found: ScoreSum, atol: float) -> None:
    assert found.values.sum() == pytest.approx(found.total)
    assert found.total == pytest.approx(found.score, abs=atol)
    for opening in found.openings:
        assert opening.values.sum() == pytest.approx(opening.share, abs=atol)
        products, single = opening.factors.prod(0), np.isfinite(opening.factors).all(0)
        np.testing.assert_allclose(opening.values[single], products[single], atol=1e-9)


def check_openings(about: dict[str, Any], atol: float) -> None:
    """Open one head and its token, one feed-forward layer, an expert where there is one, and a neuron."""
    bundle, closed = about["prompt"].bundle, score_sum(**about)
    check(closed, atol)
    heads = [name for name in closed.names if ".head" in name]
    config = bundle.config
    assert len(heads) == config.n_layers * config.n_heads * (2 if bundle.kind == "translation" else 1)
    strongest = max(heads, key=lambda name: abs(closed.values[closed.names.index(name)]))
    head = score_sum(**about, opened=f"{strongest}.token1")
    check(head, atol)
    np.testing.assert_allclose(head.values, closed.values, atol=atol)
    of_head, of_token = head.openings
    assert of_head.share == pytest.approx(closed.values[closed.names.index(strongest)], abs=atol)
    assert of_token.share == pytest.approx(of_head.values[1], abs=atol)
    layer = "layer1.feed_forward"
    if config.n_experts:
        experts = score_sum(**about, opened=layer).openings[0]
        check(score_sum(**about, opened=layer), atol)
        for one in experts.names:
            opened = score_sum(**about, opened=f"{one}.neuron3")
            check(opened, atol)
            assert opened.openings[1].share == pytest.approx(experts.values[experts.names.index(one)], abs=atol)
            assert opened.openings[2].share == pytest.approx(opened.openings[1].values[3], abs=atol)
    else:
        opened = score_sum(**about, opened=f"{layer}.neuron3")
        check(opened, atol)
        assert opened.openings[1].share == pytest.approx(opened.openings[0].values[3], abs=atol)
        gate = opened.openings[1].numbers
        if config.gated:
            assert gate["gate"] * gate["up"] == pytest.approx(gate["activation"], abs=1e-5)
        assert ("gate" in gate) == config.gated


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_add_up_to_the_score_for_every_option(kind: str, name: str) -> None:
    if kind == "translation" and CONFIGS[name].get("parallel"):
        pytest.skip("no sublayer runs beside cross-attention")
    check_openings(asked(kind, **CONFIGS[name]), 1e-4)


SHIPPED = ("gpt", "gpt-today", "bert", "translation-en-fr", "sentiment")


@pytest.mark.parametrize("name", SHIPPED)
def test_the_parts_add_up_to_the_score_of_a_shipped_model(name: str) -> None:
    bundle = shipped(name)
    about = asking(bundle)
    if bundle.kind == "translation":
        written = written_greedily(prompt=about["prompt"])
        about |= {"target_ids": written.token_ids[:-1], "place": 3}
    check_openings(about, 1e-4)
    alone = score_sum(**about, against=ALONE)
    second = score_sum(**about, answer=int(likeliest(**about).numbers[1]), against=ALONE)
    check(alone, 1e-4)
    assert score_sum(**about).total == pytest.approx(alone.total - second.total, abs=1e-4)


def model_scores(about: dict[str, Any]) -> torch.Tensor:
    """Return the scores at the place that is asked for, by the model's own call."""
    prompt = about["prompt"]
    bundle = prompt.bundle
    if bundle.kind == "translation":
        source = torch.tensor([prompt.encoding.ids])
        return bundle.model(source, torch.tensor([about["target_ids"]]))[0, about["place"]]
    if bundle.kind == "bert":
        ids = torch.tensor([hidden_text(prompt, about["hidden"]).masked.ids])
        return bundle.model(ids).mlm_logits[0, about["hidden"][0]]
    output = bundle.model(torch.tensor([prompt.encoding.ids]))[0]
    return output if bundle.kind == "classifier" else output[-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["llama", "gemma2", "post"])
def test_the_score_is_the_models_own_and_a_cap_is_said(kind: str, name: str) -> None:
    about = asked(kind, **CONFIGS[name])
    found, scores = score_sum(**about), model_scores(about)
    assert found.logit == pytest.approx(float(scores[found.answer] - scores[found.against]), abs=1e-5)
    first = likeliest(**about)
    assert first.numbers.tolist() == scores.topk(len(first.numbers)).indices.tolist()
    assert first.labels[:2] == (found.label, found.against_label)
    capped = name == "gemma2" and kind != "classifier"
    assert (found.cap == 3.0) == capped
    assert (abs(found.score - found.logit) > 1e-3) == capped


@pytest.mark.parametrize("name", ["llama", "gemma3", "post", "olmo2", "mixture"])
def test_a_share_is_what_a_pass_loses_with_all_else_held(name: str) -> None:
    """Hold every norm's factor and what all other parts write: the score without a part falls by the part's share."""
    about = asked("gpt", **CONFIGS[name])
    prompt = about["prompt"]
    ids = torch.tensor([prompt.encoding.ids])
    output, trace = capture(prompt.bundle.model, ids)
    found = score_sum(**about)
    held = [site for site in trace if ".inverse_" in site or site.endswith(("heads", "feed_forward.output"))]
    for part in ("layer0.self_attention.head1", "layer0.feed_forward", "layer1.self_attention.head0"):
        scope, _, head = part.partition(".head")

        def edit(site: str, scope: str = scope, head: str = head) -> Any:
            kept = trace[site].clone()
            if site == f"decoder.{scope}.heads":
                kept[:, int(head)] = 0
            elif site == f"decoder.{scope}.output":
                kept = kept * 0 + _bias(prompt.bundle.model, scope)
            return lambda _: kept

        without, _ = capture(prompt.bundle.model, ids, sites=(), edits={site: edit(site) for site in held})
        lost = (output - without)[0, -1].double()
        share = found.values[found.names.index(part)]
        assert share == pytest.approx(float(lost[found.answer] - lost[found.against]), abs=1e-4)


def _bias(model: Any, scope: str) -> Any:
    layer = model.decoder.stack.layers[int(scope[5])].feed_forward
    bias = getattr(getattr(layer, "outer_proj", None), "bias", None)
    return 0 if bias is None else bias


@pytest.mark.parametrize("kind", KINDS)
def test_the_effect_is_that_of_a_plain_ablation(kind: str) -> None:
    about = asked(kind, norm_order="post")
    prompt, found = about["prompt"], score_sum(**about)
    stack = "decoder" if kind in ("gpt", "translation") else "encoder"
    own, against = model_scores(about), found.against
    layer = getattr(prompt.bundle.model, stack).stack.layers[0]
    d_head = prompt.bundle.config.d_head
    cases = {"layer0.self_attention.head1": (layer.self_attention.output_proj, slice(d_head, 2 * d_head))}
    cases |= {"layer0.feed_forward": (layer.feed_forward.outer_proj, slice(None))}
    cases |= {"layer0.feed_forward.neuron4": (layer.feed_forward.outer_proj, slice(4, 5))}
    for part, (proj, columns) in cases.items():
        kept = proj.weight.clone()
        with torch.no_grad():
            proj.weight[:, columns] = 0.0
            scores = model_scores(about)
            proj.weight.copy_(kept)
        wanted = float((own - scores)[found.answer] - (own - scores)[against])
        assert score_without(**about, part=part).effect == pytest.approx(wanted, abs=1e-4)
    each = score_without_each(**about)
    assert set(each.names) == {name for name in found.names if name.startswith("layer") and "bias" not in name}
    for part in ("layer0.self_attention.head1", "layer0.feed_forward"):
        alone = score_without(**about, part=part).effect
        assert each.effects[each.names.index(part)] == pytest.approx(alone, abs=1e-4)
    assert abs(each.effects - each.shares).argmax() == each.apart


def test_the_mean_takes_the_place_of_a_head_and_a_token_goes_with_its_weight() -> None:
    about = asked("gpt")
    prompt, found = about["prompt"], score_sum(**about)
    encoding, site = prompt.encoding, "decoder.layer0.self_attention"

    def scored(edits: Any) -> float:
        output, _ = capture(prompt.bundle.model, torch.tensor([encoding.ids]), sites=(), edits=edits)
        return float(output[0, -1, found.answer] - output[0, -1, found.against])

    def mean(heads: torch.Tensor) -> torch.Tensor:
        heads[:, 1] = heads[:, 1].mean(-2, keepdim=True)
        return heads

    def unread(weights: torch.Tensor) -> torch.Tensor:
        weights[:, 1, :, 2] = 0.0
        return weights

    part = "layer0.self_attention.head1"
    assert score_without(**about, part=part, how="mean").after == pytest.approx(
        scored({f"{site}.heads": mean}), abs=1e-4
    )
    without = score_without(**about, part=f"{part}.token2")
    assert without.after == pytest.approx(scored({f"{site}.weights": unread}), abs=1e-4)


@pytest.mark.parametrize(
    ("share", "effect", "said"),
    [
        (0.049, -0.049, "small"),
        (0.05, 0.05, "alike"),
        (1.0, 0.75, "alike"),
        (1.0, 0.74, "less"),
        (0.74, 1.0, "more"),
        (1.0, -0.2, "against"),
        (-1.0, -2.0, "more"),
    ],
)
def test_share_and_effect_are_compared(share: float, effect: float, said: str) -> None:
    assert compared(share, effect) == said


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": 10**6}, "answer=1000000"),
        ({"answer": 3, "against": 3}, "against=3 must be another one than answer=3"),
        ({"opened": "layer0.self_attention"}, "must name a head of it"),
        ({"opened": "layer0.self_attention.head9"}, "part='head9' must be head0 to head1"),
        ({"opened": "layer7.feed_forward"}, "part='layer7' must be layer0 to layer1"),
        ({"opened": "layer0.cross_attention.head0"}, "must be of a sublayer that the stack has"),
        ({"opened": "layer0.self_attention.head0.token99"}, "part='token99' must be token0 to"),
        ({"opened": "<b>"}, "must be a head, a feed-forward layer or what is inside one"),
        ({"opened": "layer0.feed_forward.neuron²"}, "must be neuron0 to neuron23"),
        ({"place": 99}, "place=99 must be from 1 to"),
    ],
)
def test_what_is_not_there_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score_sum(**(asked("gpt") | changes))


def test_a_long_text_records_only_what_is_opened() -> None:
    bundle = shipped("gpt")
    text = " ".join(["the dog ran to the park"] * 14)
    prompt = Prompt(bundle, text, 80)
    assert len(prompt.encoding) > 64
    check(score_sum(prompt=prompt, opened="layer2.self_attention.head3.token70"), 1e-4)
    check(score_sum(prompt=prompt, opened="layer3.feed_forward.neuron11"), 1e-4)
    assert math.isfinite(score_without(prompt=prompt, part="layer2.self_attention.head3").effect)
    assert read(bundle, prompt.encoding, sites=()).probabilities.argmax() == score_sum(prompt=prompt).answer
