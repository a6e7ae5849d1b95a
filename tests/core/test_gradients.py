"""The gradient of every recorded tensor is that of plain autograd and of central differences, on every kind."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.core.analysis.test_arithmetic import ALL, CHANGES, GATE, LM, RECURRENT
from tests.helpers import nightly_but
from tests.helpers.engine import MIXTURES, first_of, inputs, made, shipped
from transformer_core.analysis.arithmetic.nudge import moved_cell
from transformer_core.analysis.attention.heads import head_off
from transformer_core.analysis.gradients.loss import text_loss
from transformer_core.bundle import Bundle
from transformer_core.models import Bert, Classifier
from transformer_core.models.recurrent import RecurrentClassifier, Seq2Seq
from transformer_core.probe import Edit, Probe, TraceTooLarge, capture
from transformer_core.trace import Trace

EVERY = [*ALL, (RecurrentClassifier, "lstm_one_way")]
QUICK = [*GATE[::3], (RecurrentClassifier, "lstm_one_way"), *((Seq2Seq, variant) for variant in RECURRENT)]
NOTHING: Mapping[str, Edit] = {}
OWN: dict[str, dict[str, Any]] = {"lstm_one_way": {"unit": "lstm", "bidirectional": False}}


SWALLOWED = (
    "article",
)  # -1e20 is added to a hidden score, whose own digits are lost; autograd takes that sum as exact


def case(kind: type[nn.Module], variant: str) -> tuple[Any, tuple[Tensor, ...], dict[str, Tensor]]:
    """Return a tiny model, a batch with padding, and the options of its pass."""
    model = made(kind, **(CHANGES | RECURRENT | LM | OWN)[variant])
    segmented = kind is Bert and model.config.n_segments
    return model, inputs(kind), {"segment_ids": torch.tensor([[0, 0, 1, 1, 1]] * 3)} if segmented else {}


def loss_of(output: Any) -> Tensor:
    """Return the cross entropy of some answers that are nobody's."""
    scores = first_of(output).flatten(0, -2)
    return F.cross_entropy(scores, torch.arange(len(scores)) % scores.shape[-1])


def by_autograd(
    tensors: Mapping[str, Tensor],
    call: Callable[[Probe], Any],
    loss: Callable[[Any], Tensor] = loss_of,
    edited: Mapping[str, Edit] = NOTHING,
) -> dict[str, Tensor]:
    """Return the gradients with respect to tensors of 0 that edits add to what these sites hold, of one edited pass."""
    added: dict[str, list[Tensor]] = {name: [] for name in tensors}

    def adding(name: str) -> Edit:
        def add(tensor: Tensor) -> Tensor:
            added[name].append(torch.zeros_like(tensor, requires_grad=True))
            return tensor + added[name][-1]

        return add

    edits, several = {name: adding(name) for name in tensors}, len(tensors) > 1  # a norm's mean and what it is taken of
    value = loss(call(Probe((), edits=edits | dict(edited), differentiates=several)))
    every = [zeros for steps in added.values() for zeros in steps]
    slopes = iter(torch.autograd.grad(value, every, allow_unused=True, materialize_grads=True))
    found = {}
    for name, steps in added.items():
        parts = [next(slopes) for _ in steps]
        pairs = zip(parts[0].shape, tensors[name].shape, strict=True)
        axis = next((axis for axis, (one, whole) in enumerate(pairs) if one != whole), 0)
        found[name] = torch.cat(parts[::-1] if ".backward." in name else parts, axis)
    return found


def compare_with_differences(
    model: nn.Module,
    given: tuple[Tensor, ...],
    loss: Callable[[Any], Tensor],
    *,
    most: int | None = None,
    **options: Any,
) -> None:
    """Hold recorded gradients against central differences in float64, at two random cells of every site.

    Args:
        most: so many sites alone, by chance.
    """
    model = model.double()
    given = tuple(one.double() if one.is_floating_point() else one for one in given)
    _, trace = capture(model, *given, backward=loss, **options)
    assert trace.gradients is not None
    draw, eps = np.random.default_rng(0), 1e-5
    names = [*trace.gradients]
    for name in names if most is None else draw.choice(names, min(most, len(names)), replace=False).tolist():
        gradient = trace.gradients[name]
        for _ in range(2):
            index = tuple(int(draw.integers(size)) for size in gradient.shape)
            if name.endswith("expert_weights") and not trace[name][index]:
                continue  # any weight but 0 chooses the expert: a jump
            losses, places = [], []
            for by in (eps, -eps):
                edit = moved_cell(index, tuple(gradient.shape), by, from_end=".backward." in name)
                output, found = capture(model, *given, sites=(name,), edits={name: edit}, **options)
                losses.append(float(loss(output)))
                places.append(float(found[name][index]))  # a table of positions is in float32, and rounds the step
            step = places[0] - places[1] if np.isfinite(places).all() else 2 * eps
            assert float(gradient[index]) == pytest.approx((losses[0] - losses[1]) / step, abs=1e-6), f"{name} {index}"


@pytest.mark.parametrize(("kind", "variant"), nightly_but(EVERY, QUICK))
def test_every_gradient_is_that_of_plain_autograd(kind: type[nn.Module], variant: str) -> None:
    model, given, options = case(kind, variant)
    output, trace = capture(model, *given, backward=loss_of, **options)
    gradients = trace.gradients
    assert gradients is not None
    assert list(gradients) == [name for name, tensor in trace.items() if tensor.is_floating_point()]
    largest = max(1.0, *(float(gradient.abs().max()) for gradient in gradients.values()))
    asked = [{name: trace[name] for name in gradients}]
    if variant not in (*SWALLOWED, *MIXTURES):  # there torch's fused attention goes wrong, or experts' sums in order
        asked.append({name: trace[name] for name in [*gradients][:1]})  # by a pass that records and edits nothing else
    for tensors in asked:
        for name, expected in by_autograd(tensors, lambda probe: model(*given, probe=probe, **options)).items():
            assert gradients[name].shape == trace[name].shape
            assert float((gradients[name] - expected).abs().max()) <= 1e-6 * largest, name
    plain, values = capture(model, *given, **options)
    torch.testing.assert_close(first_of(output), first_of(plain), atol=1e-5, rtol=1e-5)
    assert all(torch.allclose(trace[name], values[name], atol=1e-4, rtol=1e-4) for name in values)
    assert list(trace) == list(values)
    assert values.gradients is None
    assert not first_of(output).requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("kind", "variant"),
    nightly_but(
        [one for one in EVERY if one[1] not in SWALLOWED], [one for one in QUICK[::2] if one[1] not in SWALLOWED]
    ),
)
def test_every_gradient_is_that_of_central_differences_in_float64(kind: type[nn.Module], variant: str) -> None:
    model, given, options = case(kind, variant)
    compare_with_differences(model, given, loss_of, **options)


def test_edits_and_gradients_go_together() -> None:
    model, given, _ = case(Classifier, "plain")
    edits: Mapping[str, Edit] = head_off("encoder.layer0.self_attention", 1)
    _, trace = capture(model, *given, edits=edits, backward=loss_of)
    assert trace.gradients is not None
    scope = "encoder.layer0.self_attention"
    assert not trace[f"{scope}.heads"][:, 1].any()
    assert not trace.gradients[f"{scope}.weights"][:, 1].any()
    assert trace.gradients[f"{scope}.heads"][:, 1].any()
    name = f"{scope}.value"
    expected = by_autograd({name: trace[name]}, lambda probe: model(*given, probe=probe), edited=edits)
    torch.testing.assert_close(trace.gradients[name], expected[name], atol=1e-6, rtol=1e-5)


def test_the_gradients_count_in_the_bound_and_no_graph_is_left_in_inference_mode() -> None:
    model, given, _ = case(Classifier, "plain")
    bound = capture(model, *given)[1].nbytes
    capture(model, *given, max_bytes=bound)
    with pytest.raises(TraceTooLarge):
        capture(model, *given, max_bytes=bound, backward=loss_of)
    with torch.inference_mode():
        ids = given[0].clone()
        _, trace = capture(model, ids, sites=("*.query",), backward=loss_of)
    assert isinstance(trace.gradients, Trace)
    assert trace.nbytes == 2 * sum(tensor.nbytes for tensor in trace.values())
    assert not any(tensor.requires_grad for tensor in (*trace.values(), *trace.gradients.values()))


REFUSED = [
    ({"backward": lambda output: output}, "backward returned shape (3, 2); it must return one number"),
    (
        {"backward": lambda output: torch.zeros(())},
        "backward returned a loss that depends on no tensor of sites=('*',)",
    ),
    ({"backward": loss_of, "until": "*.query"}, "until='*.query' must be None with backward"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_cannot_be_differentiated_is_refused(options: dict[str, Any], message: str) -> None:
    model, given, _ = case(Classifier, "plain")
    with pytest.raises(ValueError, match=re.escape(message)):
        capture(model, *given, **options)


def expected_loss(bundle: Bundle, text: str, answer: int | None) -> float:
    """Return a text's loss by another way: the log of what softmax gives to each answer."""
    ids = bundle.tokenizer.encode(text).ids
    with torch.no_grad():
        shares = first_of(bundle.model(torch.tensor([ids]))).double().softmax(-1)[0]
    if bundle.kind == "classifier":
        return -float(shares[answer or 0].log())
    if bundle.kind == "bert":
        place = ids.index(bundle.tokenizer.mask_id)
        return -float(shares[place, answer or 0].log())
    return -float(torch.stack([shares[place, word].log() for place, word in enumerate(ids[1:])]).mean())


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("sentiment", "The film was good.", 1),
        ("gpt", "The film was good.", None),
        ("lm-gru", "The film was good.", None),
        ("bert", "The film was [MASK].", 100),
    ],
)
def test_the_loss_of_a_text_is_what_the_model_missed_the_answers_by(name: str, text: str, answer: int | None) -> None:
    bundle = shipped(name)
    encoding = bundle.tokenizer.encode(text)
    loss = text_loss(bundle, encoding, answer=answer)
    output, trace = capture(bundle.model, torch.tensor([encoding.ids]), backward=loss)
    assert float(loss(output)) == pytest.approx(expected_loss(bundle, text, answer), rel=1e-4)
    site = next(one for one in trace if one.rpartition(".")[2] == loss.site)
    assert trace.gradients is not None
    scores, gradient = trace[site][0].double(), trace.gradients[site][0].double()
    rows = scores[None] if loss.asks == "class" else scores[list(loss.slots)]
    found = gradient[None] if loss.asks == "class" else gradient[list(loss.slots)]
    hot = F.one_hot(torch.tensor(loss.answers), rows.shape[-1])
    torch.testing.assert_close(found, (rows.softmax(-1) - hot) / len(rows), atol=1e-6, rtol=1e-4)


def test_a_text_without_a_hidden_word_is_guessed_where_it_stands_and_a_translation_word_by_word() -> None:
    bert, pair = shipped("bert"), shipped("seq2seq-en-fr")
    encoding = bert.tokenizer.encode("The film was good.")
    loss = text_loss(bert, encoding)
    assert (loss.slots, loss.answers) == (encoding.own, tuple(encoding.ids[place] for place in encoding.own))
    words = text_loss(pair, pair.tokenizer.encode("A man."), target_ids=(2, 30, 31))
    assert (words.slots, words.answers) == ((0, 1), (30, 31))
    for call, message in (
        (lambda: text_loss(shipped("gpt-char"), shipped("gpt-char").tokenizer.encode("")), "no token that is guessed"),
        (lambda: text_loss(bert, encoding, answer=10**6), "answer=1000000 must be from 0 to"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
