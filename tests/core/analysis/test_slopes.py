"""Each formula of a derivative that the glass shows, read by hand with the pass's own numbers, is that derivative."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.core.analysis.test_arithmetic import GATE
from tests.core.analysis.test_chain_rule import SWALLOWED, differentiated
from tests.helpers import nightly_but
from transformer_core.analysis.arithmetic import Pass
from transformer_core.analysis.arithmetic.chain_rule import _derivative
from transformer_core.analysis.arithmetic.recurrent import cell_of
from transformer_core.analysis.arithmetic.table import step_of
from transformer_core.layers.feed_forward import ACTIVATIONS
from transformer_core.models import AnswerFinder, Bert, Classifier, Gpt, SentenceEncoder, Translation
from transformer_core.models.classifier import POOLERS
from transformer_core.models.recurrent import RecurrentLm, Seq2Seq

QUICK = [
    *((Classifier, variant) for variant in ("additive", "pooled", "bent", "electra", "modernbert")),
    *(
        (Gpt, variant)
        for variant in ("gemma2", "olmo2", "mixture", "shared_expert", "t5", "yarn", "post", "unbiased", "factorised")
    ),
    *[(Bert, "bert"), (AnswerFinder, "plain"), (Translation, "rotary"), (SentenceEncoder, "mean")],
    *((Seq2Seq, variant) for variant in ("gru", "both_ways", "tanh")),
    *((RecurrentLm, f"lm_{unit}") for unit in ("gru", "lstm", "one_hot")),
]  # which have every formula between them
RUNS = list(dict.fromkeys((*QUICK, *(one for one in GATE if one[1] not in SWALLOWED))))
MOST, ENOUGH = 4, 12  # places of a tensor that are compared, and numbers of a formula in a run


@dataclass(frozen=True)
class At:
    """A formula's place: a cell y of the tensor reader, computed from a cell x of the tensor name, in one text."""

    run: Pass
    reader: str
    name: str
    y: tuple[int, ...]
    x: tuple[int, ...]

    @property
    def scope(self) -> str:
        return self.reader.rpartition(".")[0]

    @property
    def own(self) -> Tensor:
        return self.run[self.reader][0]

    @property
    def source(self) -> Tensor:
        return self.run[self.name][0]

    def of(self, letter: str) -> Tensor:
        """Return the tensor that a letter of the formula stands for; of keys and values that of the reader's head."""
        found = self.run[step_of(self.run, self.reader).sources[letter]][0]
        heads = getattr(self.run.config, "n_heads", 0) if letter in "qkvA" and found.dim() == 3 else 0
        return found[self.y[0] * found.shape[0] // heads] if heads else found

    def here(self, letter: str) -> float:
        return float(self.of(letter)[self.y])

    def weight(self, name: str) -> Tensor:
        """Return a linear map's matrix. # (k, j)"""
        return getattr(self.run.module(self.scope), name).weight.detach().double().T

    def of_head(self, *names: str) -> float:
        """Return an entry of a head's part of a linear map: of the first one there is, as some are shared."""
        name = next(name for name in names if getattr(self.run.module(self.scope), name) is not None)
        return float(self.weight(name)[self.x[-1], self.y[0] * self.own.shape[-1] + self.y[-1]])

    def inside(self, name: str) -> float:
        return float(self.weight(name)[self.x[-1], self.y[-1]])

    def gates(self, name: str) -> float:
        """Return an entry of a cell's matrix for the reader's part."""
        cell, leaf = cell_of(self.run, self.scope), self.reader.rpartition(".")[2]
        order = {"reset_gate": 0, "update_gate": 1, "input_gate": 0, "forget_gate": 1, "output_gate": 3, "hidden": 0}
        part = order.get(leaf, 2)
        owner = self.run.model.decoder if name == "context_proj" else cell
        return float(getattr(owner, name).weight.detach().double().chunk(cell.parts)[part][self.y[-1], self.x[-1]])

    def before(self, leaf: str) -> Tensor:
        """Return what a state was a step before the reader's place. # (d_hidden,)"""
        states = self.run[f"{self.scope}.{leaf}"][0]
        row = self.y[0] + (1 if self.scope.endswith("backward") else -1)
        if 0 <= row < len(states):
            return states[row]
        return self.run["decoder.start"][0] if self.scope == "decoder" else torch.zeros_like(states[0])

    def norm(self, leaf: str) -> float:
        return float(self.run[f"{self.scope}.{leaf}"][0, self.y[0], 0])

    @property
    def normed(self) -> Tensor:
        """What a normalisation reads. # (pos, width)"""
        model, config = self.run.model, self.run.config
        if self.scope == "mlm_head.norm":
            stream = self.run[self.run.wiring("encoder").leaving("encoder")][0]
            return ACTIVATIONS[config.head_activation](through(model.mlm_head.transform_proj, stream))
        if self.scope == "pooler_norm":
            return POOLERS[config.pooler](through(model.pooler_proj, self.run[f"{config.pooling}_embedding"][:1]))
        return self.run[self.run.wiring(self.scope).normalises(self.scope)][0]

    @property
    def gain(self) -> float:
        return float(self.run.module(self.scope).weight.detach().double()[self.y[-1]])


def through(proj: nn.Linear, x: Tensor) -> Tensor:
    return F.linear(x, proj.weight.detach().double(), None if proj.bias is None else proj.bias.detach().double())


def bent_gelu(a: float) -> float:
    return (1 + math.erf(a / math.sqrt(2))) / 2 + a * math.exp(-(a**2) / 2) / math.sqrt(2 * math.pi)


def sigmoid(a: float) -> float:
    return 1 / (1 + math.exp(-a))


def bent_tanh(a: float) -> float:
    t = math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * a**2)
    return (1 + math.tanh(t)) / 2 + a / 2 * (1 - math.tanh(t) ** 2) * slope


def softmax_slope(at: At) -> float:
    p, same = at.own[at.y[:-1]], float(at.y[-1] == at.x[-1])
    return float(p[at.y[-1]] * (same - p[at.x[-1]]))


def additive(at: At) -> float:
    _, i, j = at.y
    feature = at.x[-1]
    v = at.run.module(at.scope).additive_scores.weight.detach().double()[at.y[0], feature]
    return float(v * (1 - torch.tanh(at.of("q")[i, feature] + at.of("k")[j, feature]) ** 2))


def turned(at: At) -> float:
    """Return how a turned coordinate depends on one of its pair."""
    (i, j), k, d_head = at.y[-2:], at.x[-1], at.own.shape[-1]
    rotary = at.run.module(at.scope).rotary
    dims = rotary.dims or d_head
    if j >= dims:
        return float(j == k)  # it rests
    pair = j % (dims // 2) if rotary.halves else j // 2
    angle = rotary.base ** (-2 * pair / dims) if rotary.scaling == "none" else float(rotary.angles(d_head)[pair])
    theta = i * angle
    return rotary.growth * (math.cos(theta) if j == k else -math.sin(theta) if j < k else math.sin(theta))


def over_root(at: At) -> float:
    """Return how a query or key over its root mean square depends on a coordinate of its head, or of all heads."""
    head, i, j = at.y
    norm = at.run.module(f"{at.scope}.{at.name.rpartition('.')[2]}_norm")
    gain, whole = norm.weight.detach().double(), len(norm.weight) != at.own.shape[-1]
    counted = at.source[:, i].flatten() if whole else at.source[head, i]
    root = float((counted.square().mean() + norm.eps).sqrt())
    g = float(gain.unflatten(0, (-1, at.own.shape[-1]))[head, j] if whole else gain[j])
    product = float(at.source[at.y] * at.source[at.x])
    return g / root * (float(at.y == at.x) - product / (len(gain) * root**2))


def divisor(at: At) -> float:
    attention = at.run.module(at.scope)
    return (attention.score_width or attention.d_head) ** 0.5


def mapped(at: At) -> float:
    """Return an entry of the matrix of a map with no letter of its own: it is named after what it makes."""
    leaf, model = at.reader.rpartition(".")[2], at.run.model
    if leaf == "readout":
        before = {"hidden": (), "context": ("hidden",), "scaled_embedding": ("hidden", "context")}
        skipped = sum(at.run[f"decoder.{one}"].shape[-1] for one in before[at.name.rpartition(".")[2]])
        return float(model.decoder.readout_proj.weight.detach()[at.y[-1], skipped + at.x[-1]])
    places = {
        "projected_embedding": lambda: at.run.module(at.scope).stream_proj,
        "pooled": lambda: model.pooler_proj,
        "start": lambda: model.decoder.start_proj,
        "span_logits": lambda: model.bound_proj,
    }
    proj = places.get(leaf, lambda: at.run.module(at.scope).class_proj)()
    return float(proj.weight.detach()[at.y[-1], at.x[-1]])


def pooler_input(at: At) -> float:
    """Return u, which a pooler bends."""
    return float(through(at.run.model.pooler_proj, at.source)[at.y[-1]])


def of_words(at: At) -> float:
    """Return an entry of the matrix that words are scored by."""
    model = at.run.model
    proj = model.mlm_head.output.proj if isinstance(model, Bert) else model.output.proj
    return float(proj.weight.detach().double()[at.y[-1], at.x[-1]])


def capped(at: At) -> float:
    return 1 - (float(at.own[at.y]) / at.run.config.logit_cap) ** 2


def of_mean(at: At) -> float:
    real = at.run.ids["encoder"][0] != at.run.config.padding
    return float(real[at.x[0]]) / int(real.sum())


def of_experts(at: At) -> float:
    p = at.of("p")[at.y[0]]
    total = float(p.topk(at.run.module(at.scope).n_active).values.sum())
    return (float(at.y[-1] == at.x[-1]) - float(at.own[at.y])) / total


def squashed(at: At) -> float:
    return float(at.own[at.y]) * (1 - float(at.own[at.y]))


def straight(at: At) -> float:
    return 1 - float(at.own[at.y]) ** 2


TURNED, GROWN = (
    rf"{times}\cos\theta\ (j=k),\ -{times}\sin\theta\ (j\lt k),\ {times}\sin\theta\ (j\gt k)" for times in ("", r"g\,")
)
BACK = ("-1", "+1")  # the step before, of a cell that reads forward or backward
MAPS = {"W": "input_proj", "U": "hidden_proj", "C": "context_proj"}  # of a cell, by their letters
READ: dict[str, Callable[[At], float]] = {
    "1": lambda at: 1.0,
    r"W^{Q(h)}_{k,j}": lambda at: at.of_head("query_proj"),
    r"W^{K(h)}_{k,j}": lambda at: at.of_head("key_proj", "query_proj"),
    r"W^{V(h)}_{k,j}": lambda at: at.of_head("value_proj", "key_proj", "query_proj"),
    r"W^O_{k,j}": lambda at: float(at.weight("output_proj")[at.x[0] * at.source.shape[-1] + at.x[-1], at.y[-1]]),
    r"W^{(1)}_{k,j}": lambda at: at.inside("inner_proj"),
    r"W^{(2)}_{k,j}": lambda at: at.inside("outer_proj"),
    r"W^{(g)}_{k,j}": lambda at: at.inside("gate_proj"),
    r"W^{(r)}_{k,j}": lambda at: at.inside("router"),
    r"E^\top_{k,j}": of_words,
    r"E^\top_{k,j}/\sqrt{d_{model}}": lambda at: of_words(at) / at.run.config.d_model**0.5,
    r"W_{k,j}": mapped,
    r"(1-\tanh^2)\,W_{k,j}": lambda at: straight(at) * mapped(at),
    r"(1-\tanh^2u)\,W_{k,j}": lambda at: (1 - math.tanh(pooler_input(at)) ** 2) * mapped(at),
    r"[u>0]\,W_{k,j}": lambda at: float(pooler_input(at) > 0) * mapped(at),
    r"\left(\Phi(u)+u\,\varphi(u)\right)W_{k,j}": lambda at: bent_gelu(pooler_input(at)) * mapped(at),
    r"m_i/\sum_i m_i": of_mean,
    r"m_{k,j}": lambda at: float(at.of("m")[at.x[-1], at.y[-1]]),
    **dict.fromkeys((TURNED, GROWN), turned),
    **{
        rf"\frac{{g_j}}{{r_i}}\left([j=k]-\frac{{{letter}_{{i,j}}{letter}_{{i,k}}}}{{n\,r_i^2}}\right)": over_root
        for letter in "qk"
    },
    r"[e=f]\quad(e,f\in T_i)": lambda at: float(at.y[-1] == at.x[-1]),
    r"\gamma_i(1-\gamma_i)\,w_k": lambda at: (
        squashed(at) * float(at.run.module(at.scope).shared_gate.weight.detach()[0, at.x[-1]])
    ),
    r"V_{k,j}": lambda at: float(at.run.model.output.weight.detach().double()[at.y[-1], at.x[-1]]),
    r"\left(1-(\ell_{i,j}/c)^2\right)E^\top_{k,j}": lambda at: capped(at) * of_words(at),
    r"v_{k,j}": lambda at: float(at.of("v")[at.x[-1], at.y[-1]]),
    r"A_{i,k}": lambda at: float(at.of("A")[..., at.y[-2], at.x[-2]]),
    r"M_{i,j}": lambda at: float(at.own[at.y] > -1e19),
    r"p_{i,j}\left([j=k]-p_{i,k}\right),\quad p=\mathrm{softmax}": softmax_slope,
    r"k_{j,l}": lambda at: float(at.of("k")[at.y[2], at.x[2]]),
    r"q_{i,l}": lambda at: float(at.of("q")[at.y[1], at.x[2]]),
    r"k_{j,l}/\sqrt{d_k}": lambda at: READ["k_{j,l}"](at) / divisor(at),
    r"q_{i,l}/\sqrt{d_k}": lambda at: READ["q_{i,l}"](at) / divisor(at),
    r"v^{(h)}_l\left(1-\tanh^2(q_{i,l}+k_{j,l})\right)": additive,
    r"1-\tanh^2(s_{i,j}/c)": lambda at: 1 - math.tanh(at.here("s") / at.run.module(at.scope).score_cap) ** 2,
    r"\tfrac1d": lambda at: 1 / at.source.shape[-1],
    r"-\frac{r_i^3}{d}\left(x_{i,k}-\mu_i\right)": lambda at: (
        -(float(at.own[at.y]) ** 3) / at.source.shape[-1] * float(at.source[at.x] - at.norm("mean"))
    ),
    r"-\frac{r_i^2}{(d-1)\,\sigma_i}\left(x_{i,k}-\mu_i\right)": lambda at: (
        -(float(at.own[at.y]) ** 2)
        / ((at.source.shape[-1] - 1) * float(at.source[at.x[0]].std()))
        * float(at.source[at.x] - at.norm("mean"))
    ),
    r"-\frac{r_i^3}{d}\,x_{i,k}": lambda at: -(float(at.own[at.y]) ** 3) / at.source.shape[-1] * float(at.source[at.x]),
    r"0,\ \text{since}\ \sum_k(x_{i,k}-\mu_i)=0": lambda at: 0.0,
    r"g_j\,r_i": lambda at: at.gain * float(at.of("r")[at.y[0], 0]),
    r"-g_j\,r_i": lambda at: -at.gain * float(at.of("r")[at.y[0], 0]),
    r"g_j\,x_{i,j}": lambda at: at.gain * float(at.normed[at.y]),
    r"g_j\left(x_{i,j}-\mu_i\right)": lambda at: at.gain * float(at.normed[at.y] - at.norm("mean")),
    r"[a_{i,j}>0]": lambda at: float(at.here("a") > 0),
    r"\Phi(a)+a\,\varphi(a),\quad\varphi(a)=e^{-a^2/2}/\sqrt{2\pi}": lambda at: bent_gelu(at.here("a")),
    r"\sigma(a)\left(1+a\,(1-\sigma(a))\right)": lambda at: (
        sigmoid(at.here("a")) * (1 + at.here("a") * (1 - sigmoid(at.here("a"))))
    ),
    r"\tfrac12(1+\tanh t)+\tfrac a2(1-\tanh^2t)\,t',\quad t=\sqrt{2/\pi}\,(a+0.044715\,a^3)": lambda at: bent_tanh(
        at.here("a")
    ),
    r"\sqrt{d_{model}}": lambda at: at.run.config.d_model**0.5,
    r"\sqrt{d_e}": lambda at: at.run.config.embedding_width**0.5,
    r"E^{(e)}_{i,j}": lambda at: float(at.of("E")[(at.x[-1], *at.y)]),
    r"g_{i,e}": lambda at: float(at.of("g")[at.y[0], at.x[0]]),
    r"\tfrac{1}{\sum_T p}([e=f]-g_{i,e})\quad(e,f\in T_i)": of_experts,
    r"o_{i,j}\left(1-\tanh^2(c_{i,j})\right)": lambda at: at.here("o") * (1 - math.tanh(at.here("c")) ** 2),
    r"\tanh(c_{i,j})": lambda at: math.tanh(at.here("c")),
    r"1-z_{i,j}": lambda at: 1 - at.here("z"),
    **{f"h_{{i{one},j}}-n_{{i,j}}": lambda at: float(at.before("hidden")[at.y[-1]]) - at.here("n") for one in BACK},
    **{f"c_{{i{one},j}}": lambda at: float(at.before("cell")[at.y[-1]]) for one in BACK},
    r"(1-n_{i,j}^2)\,r_{i,j}\,U^{(n)}_{k,j}": lambda at: straight(at) * at.here("r") * at.gates("hidden_proj"),
    **{
        rf"(1-n_{{i,j}}^2)\left(h_{{i{one}}}\cdot U^{{(n)}}_{{:,j}}{bias}\right)": (
            lambda at: straight(at) * _state_part(at)
        )
        for one, bias in (*((one, "+c^{(n)}_{j}") for one in BACK), ("-1", ""))
    },
    **{f"{gate}_{{i,j}}": (lambda at, gate=gate: at.here(gate)) for gate in "ufgiz"},
    **{
        rf"{gate}_{{i,j}}(1-{gate}_{{i,j}})\,{matrix}^{{({gate})}}_{{k,j}}": (
            lambda at, name=name: squashed(at) * at.gates(name)
        )
        for gate in "rzifo"
        for matrix, name in MAPS.items()
    },
    **{
        rf"(1-{part}_{{i,j}}^2)\,{matrix}^{{({part})}}_{{k,j}}": (lambda at, name=name: straight(at) * at.gates(name))
        for part in "ghn"
        for matrix, name in MAPS.items()
        if part + matrix != "nU"  # which the reset gate multiplies
    },
}


def _state_part(at: At) -> float:
    """Return h . U, and c where the cell has one, of a GRU's candidate."""
    proj = cell_of(at.run, at.scope).hidden_proj
    return float(through(proj, at.before("hidden")).chunk(3)[2][at.y[-1]])


def compared(run: Pass, reader: str, name: str, formula: str) -> int:
    """Compare a declared formula with the derivative at some cells; return how many numbers were compared."""
    shape, count = run.trace[name].shape[1:], 0
    for place in {0, math.prod(shape) // 2, math.prod(shape) - 1}:
        x = tuple(int(at) for at in torch.unravel_index(torch.tensor(place), shape))
        slopes = _derivative(run, name, (0, *x), reader)[0]
        for y in slopes[0].nonzero()[:: max(1, len(slopes[0].nonzero()) // MOST)].tolist():
            read = READ[formula](At(run, reader, name, tuple(y), x))
            found = float(slopes[(0, *y)])
            assert read == pytest.approx(found, rel=1e-4, abs=1e-6), f"{reader} {y} of {name} {x}: {formula}"
            count += 1
    return count


@cache
def readings(kind: type, variant: str) -> dict[str, int]:
    """Compare every declared formula of a tiny model, which must be in READ; return how many numbers of each were."""
    run, met = differentiated(kind, variant), dict[str, int]()
    gradients = run.trace.gradients
    assert gradients is not None
    for reader in gradients:
        step = step_of(run, reader)
        for letter, name in step.sources.items():
            formula = step.slopes.get(letter)
            if formula and name in gradients:
                assert formula in READ, f"{reader} of {name}: nothing reads {formula}"
                if met.setdefault(formula, 0) < ENOUGH:
                    met[formula] += compared(run, reader, name, formula)
    return met


@pytest.mark.parametrize(("kind", "variant"), nightly_but(RUNS, QUICK))
def test_a_formula_is_the_derivative_at_every_cell_that_depends(kind: type, variant: str) -> None:
    assert sum(readings(kind, variant).values())


def test_each_reading_was_compared() -> None:
    met = [readings(kind, variant) for kind, variant in QUICK]
    assert {formula for formula in READ if not any(one.get(formula) for one in met)} == set()
