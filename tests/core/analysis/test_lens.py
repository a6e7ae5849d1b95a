"""The tuned lens: what is read through it, by plain torch; how it is trained, measured, kept and refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.helpers.bundles import refused
from tests.helpers.engine import made, shipped
from transformer_core.analysis.bert.layers import by_layer, each_by_layer
from transformer_core.analysis.gpt.lens import logit_lens
from transformer_core.analysis.lens import divergence, read_out
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import SHIPPED, load
from transformer_core.layers.tuned_lens import TunedLens
from transformer_core.models import Bert, Classifier, Gpt
from transformer_core.prompt import Prompt
from transformer_core.recipes import lens as recipe
from transformer_core.text import MASK_ID, Tokenizer
from transformer_core.untrusted.bundle_files import LENS

TEXT = "a cat sat on a mat"
LETTERS = Tokenizer.train("character", [TEXT, "the dog ran"], min_frequency=1, template="none")
WORDS = Tokenizer.train("wordpiece", [TEXT, "the dog ran"] * 3, vocab_size=60, lowercase=True, min_frequency=1)
MODELS = [(kind, order) for kind in (Gpt, Bert) for order in ("pre", "post")]


def bundle_of(kind: type, order: str = "pre", *, size: float = 0.3) -> Bundle:
    """Return a tiny lively model with a lens of random maps."""
    tokenizer = LETTERS if kind is Gpt else WORDS
    model = made(kind, vocab_size=tokenizer.vocab_size, max_len=32, norm_order=order).requires_grad_(False)
    lens = TunedLens(model.config)
    torch.manual_seed(1)
    for parameter in lens.parameters():
        nn.init.normal_(parameter, std=size)
    return Bundle("tiny", model, tokenizer, lens=lens.requires_grad_(False))


def stages_of(bundle: Bundle, ids: list[int]) -> list[Tensor]:
    """Return the residual stream after the embedding and each layer, (pos, d_model) each, by calling part by part."""
    part = bundle.model.decoder if isinstance(bundle.model, Gpt) else bundle.model.encoder
    token_ids = torch.tensor([ids])
    streams = [part.embedding(token_ids)]
    mask = torch.ones(len(ids), len(ids), dtype=torch.bool)
    mask = (mask.tril() if isinstance(bundle.model, Gpt) else mask)[None, None]
    for layer in part.stack.layers:
        streams.append(layer(streams[-1], mask=mask))
    return [x[0] for x in streams]


def plainly_read(bundle: Bundle, x: Tensor, stage: int) -> Tensor:
    """Return log-probabilities of a stage's stream by matrices, norms and nothing of the library."""
    config, lens, weights = bundle.config, bundle.lens, dict(bundle.model.named_parameters())
    if stage < config.n_layers:
        x = x + x @ lens.maps[stage].T + lens.biases[stage]
    side = "decoder" if isinstance(bundle.model, Gpt) else "encoder"

    def normed(x: Tensor, name: str) -> Tensor:
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / (variance + config.norm_eps).sqrt() * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    if config.norm_order == "pre":
        x = normed(x, f"{side}.stack.final_norm")
    bias: Tensor | float = 0.0
    if isinstance(bundle.model, Bert):
        x = F.gelu(x @ weights["mlm_head.transform_proj.weight"].T + weights["mlm_head.transform_proj.bias"])
        x, bias = normed(x, "mlm_head.norm"), weights["mlm_head.output.proj.bias"]
    matrix = weights.get("output.proj.weight", weights.get("mlm_head.output.proj.weight"))
    matrix = weights[f"{side}.embedding.token.weight"] if matrix is None else matrix
    return (x @ matrix.T + bias).log_softmax(-1)


@pytest.mark.parametrize("order", ["pre", "post"])
def test_a_gpt_is_read_through_its_maps_as_by_plain_torch(order: str) -> None:
    bundle = bundle_of(Gpt, order)
    prompt = Prompt(bundle, TEXT, len(LETTERS.encode(TEXT)))
    found = logit_lens(prompt=prompt, first=1, count=18, through="tuned")
    due = [plainly_read(bundle, x, stage) for stage, x in enumerate(stages_of(bundle, LETTERS.encode(TEXT).ids))]
    np.testing.assert_allclose(found.probability, [row.exp().amax(-1).numpy() for row in due], rtol=1e-4)
    answer = due[-1].argmax(-1)
    np.testing.assert_allclose(
        found.answer_probability, [row.exp()[range(18), answer].numpy() for row in due], rtol=1e-4, atol=1e-7
    )
    through_logit = logit_lens(prompt=prompt, first=1, count=18)
    assert found.answers == through_logit.answers
    assert np.abs(found.probability[:-1] - through_logit.probability[:-1]).max() > 0.01
    np.testing.assert_array_equal(found.probability[-1], through_logit.probability[-1])


@pytest.mark.parametrize("order", ["pre", "post"])
def test_a_bert_is_read_through_its_maps_as_by_plain_torch(order: str) -> None:
    bundle = bundle_of(Bert, order)
    ids = list(WORDS.encode(TEXT).ids)
    found = by_layer(prompt=Prompt(bundle, TEXT, 32), hidden=(2,), place=2, through="tuned")
    ids[2] = MASK_ID
    due = [plainly_read(bundle, x, stage)[2].exp() for stage, x in enumerate(stages_of(bundle, ids))]
    words = torch.from_numpy(found.word_ids)
    np.testing.assert_allclose(found.probabilities, [row[words].numpy() for row in due], rtol=1e-4, atol=1e-7)
    each = each_by_layer(prompt=Prompt(bundle, TEXT, 32), through="tuned")
    place = each.places.tolist().index(2)
    np.testing.assert_allclose(each.probabilities[:, place], found.probabilities[:, 0], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("kind", [Gpt, Bert])
def test_maps_that_add_nothing_are_the_logit_lens(kind: type) -> None:
    bundle = bundle_of(kind, size=0.0)
    x = torch.randn(5, bundle.config.d_model)
    for stage in range(bundle.config.n_layers + 1):
        assert torch.equal(read_out(bundle, x, stage, "tuned"), read_out(bundle, x, stage))


def test_a_model_without_a_lens_says_so() -> None:
    bundle = replace(bundle_of(Gpt), lens=None)
    with pytest.raises(ValueError, match="bundle='tiny' has no tuned lens; through must be 'logit'"):
        logit_lens(prompt=Prompt(bundle, TEXT, 18), first=1, count=1, through="tuned")
    with pytest.raises(ValueError, match="through='glass' must be one of logit, tuned"):
        read_out(bundle, torch.zeros(1, 8), 0, "glass")  # type: ignore[arg-type]


def test_the_divergence_is_that_of_torch() -> None:
    p, q = torch.randn(4, 9).log_softmax(-1), torch.randn(4, 9)
    due = torch.distributions.kl_divergence(*(torch.distributions.Categorical(logits=one) for one in (p, q)))
    torch.testing.assert_close(divergence(p, q), due)
    assert float(divergence(p, p).abs().max()) < 1e-6


@pytest.mark.parametrize("kind", [Gpt, Bert])
def test_training_moves_the_lens_alone_towards_the_models_answer(kind: type) -> None:
    bundle = bundle_of(kind, size=0.0)
    ids = torch.tensor([list((LETTERS if kind is Gpt else WORDS).encode(TEXT).ids)] * 12)
    before = {name: parameter.clone() for name, parameter in bundle.model.named_parameters()}
    lens = TunedLens(bundle.config)
    optimizer, losses = torch.optim.Adam(lens.parameters(), lr=0.02), []
    for _ in range(60):
        torch.manual_seed(0)  # the same hidden words
        loss = recipe.distance(lens, ids, bundle=bundle)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 4
    assert all(parameter.grad is None for parameter in bundle.model.parameters())
    assert all(torch.equal(before[name], parameter) for name, parameter in bundle.model.named_parameters())


@pytest.mark.parametrize("order", ["pre", "post"])
def test_what_is_measured_is_the_mean_divergence_with_its_interval(order: str) -> None:
    bundle = bundle_of(Gpt, order)
    rows = [list(LETTERS.encode(text).ids) for text in (TEXT, "the dog ran", "a mat", "on a cat the dog sat")]
    found = recipe.measure_lens(bundle, rows, "rhymes")
    total: dict[str, Any] = {"logit": 0.0, "tuned": 0.0}
    for row in rows:
        streams = stages_of(bundle, row)
        own = plainly_read(bundle, streams[-1], bundle.config.n_layers)
        for name, lens in (("logit", TunedLens(bundle.config)), ("tuned", bundle.lens)):
            read = [plainly_read(replace(bundle, lens=lens), x, stage) for stage, x in enumerate(streams[:-1])]
            total[name] += np.array([float((own.exp() * (own - one)).detach().sum()) for one in read])
    tokens = sum(map(len, rows))
    assert {(row.data, row.tokens, row.texts) for row in found} == {("rhymes", tokens, 4)}
    for name, due in total.items():
        np.testing.assert_allclose([getattr(row, name) for row in found], due / tokens, atol=1e-4)
    assert all(row.low < row.tuned - row.logit < row.high for row in found)


@pytest.mark.parametrize(("kind", "order"), MODELS)
def test_a_lens_is_kept_with_its_model_and_goes_with_it(kind: type, order: str, tmp_path: Path) -> None:
    bundle, folder = bundle_of(kind, order), tmp_path / "glass"
    save(bundle, folder)
    lens = load(folder).lens
    assert lens is not None
    for name, parameter in lens.named_parameters():
        assert torch.equal(parameter, bundle.lens.get_parameter(name))
        assert not parameter.requires_grad
    save(replace(bundle, lens=None), folder)
    assert not (folder / LENS).exists(), "it was of the weights before"
    assert load(folder).lens is None


def test_a_lens_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    bundle, folder = bundle_of(Gpt), tmp_path / "glass"
    other = TunedLens(replace(bundle.config, d_model=2 * bundle.config.d_model))
    save(replace(bundle, lens=other), folder)
    refused(folder, f"glass/{LENS}: maps has shape")
    save(bundle, folder)
    (folder / LENS).write_bytes((folder / LENS).read_bytes()[:-1] + b"\1")
    refused(folder, f"glass/{LENS} is not the file that was written")
    (folder / LENS).unlink()
    refused(folder, f"glass/{LENS} is missing")
    save(
        Bundle("glass", made(Classifier, vocab_size=LETTERS.vocab_size), LETTERS, labels=("a", "b"), lens=bundle.lens),
        folder,
    )
    refused(folder, f"glass/{LENS} is of a classifier; only gpt or bert has one")


def test_each_shipped_model_with_a_lens_has_a_small_one_that_is_nearer_at_every_stage() -> None:
    names = [path.parent.name for path in sorted(SHIPPED.glob(f"*/{LENS}"))]
    assert {*names} == {*recipe.MODELS}
    for name in names:
        bundle = shipped(name)
        rows = bundle.measured.lens
        assert [row.stage for row in rows] == list(range(bundle.config.n_layers)), name
        assert all(row.high < 0 and row.tuned < row.logit and row.tokens >= 1_000 for row in rows), name
        assert (SHIPPED / name / LENS).stat().st_size < 500_000, name
        for card, heading in ((bundle.card, "## Tuned lens"), (bundle.card_zh, "## 调谐透镜")):
            assert card.count(heading) == 1, name
            assert f"{rows[0].tokens:,}" in card, name


@torch.no_grad()
def test_the_shipped_lens_is_nearer_on_a_text_of_today() -> None:
    """Of texts that were written for this test the divergence falls at every stage, as the card says of others."""
    bundle = shipped("gpt")
    text = "Once upon a time, there was a boy named Tim. He had a red ball. One day, Tim lost the ball in the park."
    prompt = Prompt(bundle, text, len(bundle.tokenizer.encode(text)))
    ids = bundle.tokenizer.encode(text).ids
    streams = stages_of(bundle, list(ids))
    own = plainly_read(bundle, streams[-1], bundle.config.n_layers)
    for stage, x in enumerate(streams[:-1]):
        near, far = (
            float((own.exp() * (own - plainly_read(replace(bundle, lens=lens), x, stage))).sum(-1).mean())
            for lens in (bundle.lens, TunedLens(bundle.config))
        )
        assert near < far, stage
    found = logit_lens(prompt=prompt, first=1, count=24, through="tuned")
    assert found.difference < 1e-4
