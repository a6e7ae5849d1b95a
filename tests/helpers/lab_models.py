"""Tiny random models of every kind that the Lab changes, and the same changes made by torch's own hooks on a copy."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from transformer_core.analysis.lab.cases import Cases, one_case
from transformer_core.bundle import MODELS, Bundle
from transformer_core.config import ModelConfig
from transformer_core.models.recurrent import RecurrentConfig, RecurrentLmConfig
from transformer_core.probe import Probe
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

TEXTS = ["a glass box rings", "a glass bell rings", "a box of glass", "the bell was not good", "the film was good"] * 3
HELD_OUT = ("a glass bell was good", "the box was not good", "a film rings the bell", "the film was a good box")
TEXT, OTHER = "the glass bell rings", "the glass box was good"
MASKED = {"bert": ("the glass [MASK] rings", "a good [MASK] rings")}
RECURRENT: dict[str, Any] = {"vocab_size": 24, "d_model": 16, "d_hidden": 10, "max_len": 32, "dropout": 0.0}
MODEL: dict[str, Any] = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 2, "max_len": 32, "dropout": 0.0}
MADE: dict[str, tuple[str, str, Any]] = {
    "classifier": ("classifier", "cls", ModelConfig(vocab_size=24, norm_order="pre", **MODEL)),
    "classifier post-norm": (
        "classifier",
        "cls",
        ModelConfig(vocab_size=24, norm_order="post", pooling="mean", **MODEL),
    ),
    "bert": ("bert", "cls", ModelConfig(vocab_size=24, norm_order="post", **MODEL)),
    "gpt": ("gpt", "none", ModelConfig(vocab_size=24, **MODEL)),
    "translation": ("translation", "bos_eos", ModelConfig(vocab_size=24, **MODEL)),
    "lm gru": ("lm", "none", RecurrentLmConfig(unit="gru", **RECURRENT)),
    "lm lstm": ("lm", "none", RecurrentLmConfig(unit="lstm", **RECURRENT)),
    "lm rnn": ("lm", "none", RecurrentLmConfig(unit="tanh", **RECURRENT)),
    "seq2seq": ("seq2seq", "bos_eos", RecurrentConfig(unit="gru", **RECURRENT)),
}
TRANSFORMERS = tuple(name for name, (kind, *_) in MADE.items() if kind not in ("lm", "seq2seq"))
NEAR = 1e-5
Change = Callable[[Tensor], Tensor]


def bundle_of(name: str, seed: int = 3) -> Bundle:
    """Return a tiny random model."""
    kind, template, config = MADE[name]
    torch.manual_seed(seed)
    tokenizer = Tokenizer.train("word", TEXTS, vocab_size=24, min_frequency=1, template=template)
    model = MODELS[kind](config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.4)
    labels = ("negative", "positive") if kind == "classifier" else ()
    held_out = [*((text, place % 2) for place, text in enumerate(HELD_OUT))]
    if kind in ("translation", "seq2seq"):
        held_out = [(text, f"the {text}") for text in HELD_OUT]
    tokenizer = tokenizer.widened(24)
    return Bundle(
        name, model.eval().requires_grad_(False), tokenizer, labels, reads="en", read_held_out=lambda: held_out
    )


def texts_of(name: str) -> tuple[str, str]:
    """Return two texts for a model, with a word to guess where it needs one."""
    return MASKED.get(name, (TEXT, OTHER))


def hooked(model: nn.Module, changes: Mapping[str, Change]) -> nn.Module:
    """Return a deep copy of a model in which torch's hooks change activations, by the names of our sites.

    Shapes:
        changes: functions of (batch, pos, width); of ``….heads``, query, key and value of (batch, head, pos, d_head)
    """
    other: Any = copy.deepcopy(model)
    for site, change in changes.items():
        if site in ("recurrent.hidden", "decoder.hidden"):
            _hook_steps(getattr(other, site.partition(".")[0]).cell, change)
        elif site == "encoder.annotations":
            other.encoder.register_forward_hook(lambda _, __, made, f=change: (f(made[0].clone()), made[1]))
        else:
            stack, layer, *leaf = site.split(".")
            block = getattr(other, stack).stack.layers[int(layer.removeprefix("layer"))]
            if leaf[-1] == "heads":
                _hook_heads(getattr(block, leaf[0]), change)
            elif leaf[-1] in ("query", "key", "value"):
                _hook_projected(getattr(block, leaf[0]), leaf[-1], change)
            else:
                part = block if leaf == ["residual"] else getattr(block, leaf[0])
                part.register_forward_hook(lambda _, __, made, f=change: f(made.clone()))
    return other


def _hook_heads(attention: Any, change: Change) -> None:
    def before(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        joined = given[0]  # (batch, pos, head * d_head)
        heads = joined.unflatten(2, (attention.n_heads, attention.d_head)).transpose(1, 2).clone()
        return (change(heads).transpose(1, 2).flatten(2),)

    attention.output_proj.register_forward_pre_hook(before)


def _hook_projected(attention: Any, name: str, change: Change) -> None:
    def after(_: nn.Module, __: Any, made: Tensor) -> Tensor:
        split = made.unflatten(2, (-1, attention.d_head)).transpose(1, 2).clone()
        return change(split).transpose(1, 2).flatten(2)

    getattr(attention, f"{name}_proj").register_forward_hook(after)


def _hook_steps(cell: Any, change: Change) -> None:
    """Change the hidden states, one step after the other, by a function of them side by side."""
    plain, states = cell.step, []

    def step(*given: Any) -> tuple[Tensor, ...]:
        hidden, *rest = plain(*given)
        states.append(hidden)
        whole = torch.stack(states + [torch.zeros_like(hidden)] * (64 - len(states)), 1)  # (batch, 64, d_hidden)
        return (change(whole)[:, len(states) - 1], *rest)

    cell.step = step


def log_prob(cases: Cases, model: nn.Module) -> float:
    """Return ln p of the answer by plain indexing."""
    with torch.no_grad():
        output: Any = model(*cases.inputs, probe=Probe(()))  # without one, a classifier computes [CLS] alone
    kind = cases.bundle.kind
    scores = output.mlm_logits if kind == "bert" else output[:, None] if kind == "classifier" else output
    log_probs = scores[0].double().log_softmax(-1)  # (slot, outcome)
    asked = cases.answers[0].tolist()
    return sum(float(log_probs[slot, answer]) for slot, answer in enumerate(asked) if answer >= 0)


def cases_of(bundle: Bundle, which: int = 0, answer: int | str | None = None) -> Cases:
    """Return the first or second of a model's texts, with what is asked of it."""
    return one_case(prompt=Prompt(bundle, texts_of(bundle.name)[which], 20), answer=answer)


def near(cases: Cases) -> float:
    """Return how near two sums of ln p must be: 1e-5 nats a word."""
    return NEAR * int(cases.asked[0])


def found_at(bundle: Bundle, site: str, *inputs: Tensor) -> Tensor:
    """Return what a hook finds at a site; of a loop, its steps side by side."""
    seen = []

    def keep(found: Tensor) -> Tensor:
        seen.append(found.clone())
        return found

    with torch.no_grad():
        hooked(bundle.model, {site: keep})(*inputs, probe=Probe(()))
    return seen[-1]


def without(head: int, kept: Tensor | float = 0.0) -> Change:
    """Return a change that gives every position the same mixture of one head."""

    def change(heads: Tensor) -> Tensor:
        heads[:, head] = kept
        return heads

    return change


def put(rows: Sequence[int], values: Tensor, head: int | None = None) -> Change:
    """Return a change that puts values, one a row, at some positions: of everything, or of one head."""

    def change(tensor: Tensor) -> Tensor:
        for place, row in enumerate(rows):
            if head is None:
                tensor[..., row, :] = values[..., place, :]
            else:
                tensor[:, head, row] = values[:, head, place]
        return tensor

    return change
