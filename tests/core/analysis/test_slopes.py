"""Each formula of a derivative that the glass shows, read by hand with the pass's own numbers, is that derivative."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import Tensor

from tests.core.analysis.test_chain_rule import differentiated
from tests.helpers import nightly_but
from transformer_core.analysis.arithmetic import Pass
from transformer_core.analysis.arithmetic.chain_rule import _derivative
from transformer_core.analysis.arithmetic.recurrent import cell_of, hidden_before
from transformer_core.analysis.arithmetic.table import step_of
from transformer_core.models import Classifier, Gpt, Translation
from transformer_core.models.recurrent import RecurrentLm

RUNS = [
    *((Classifier, variant) for variant in ("plain", "post", "additive", "rotary", "pooled")),
    *((Gpt, variant) for variant in ("gemma2", "llama", "mixture", "unbiased")),
    (Translation, "plain"),
    *((RecurrentLm, f"lm_{unit}") for unit in ("gru", "lstm", "tanh")),
]
MOST = 6  # places of a tensor that are compared
TURNED = r"\cos\theta,\ -\sin\theta\ \text{or}\ \sin\theta"  # which of these depends on the place
NOT_READ = {TURNED, r"W_{k,j}", r"(1-\tanh^2u)\,W_{k,j}"}


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
        heads = self.run.config.n_heads if letter in "qkvA" and found.dim() == 3 else 0
        return found[self.y[0] * found.shape[0] // heads] if heads else found

    def here(self, letter: str) -> float:
        return float(self.of(letter)[self.y])

    def weight(self, name: str) -> Tensor:
        """Return a linear map's matrix. # (k, j)"""
        return getattr(self.run.module(self.scope), name).weight.detach().double().T

    def of_head(self, name: str) -> float:
        """Return an entry of a head's part of a linear map."""
        return float(self.weight(name)[self.x[-1], self.y[0] * self.own.shape[-1] + self.y[-1]])

    def inside(self, name: str) -> float:
        return float(self.weight(name)[self.x[-1], self.y[-1]])

    def gates(self, name: str) -> float:
        """Return an entry of a cell's matrix for the reader's part."""
        cell, leaf = cell_of(self.run, self.scope), self.reader.rpartition(".")[2]
        order = {"reset_gate": 0, "update_gate": 1, "input_gate": 0, "forget_gate": 1, "output_gate": 3, "hidden": 0}
        part = order.get(leaf, 2)
        return float(getattr(cell, name).weight.detach().double().chunk(cell.parts)[part][self.y[-1], self.x[-1]])

    def before(self, leaf: str) -> float:
        """Return what a state was a step before, at the reader's place."""
        row, col = self.y
        return float(self.run[f"{self.scope}.{leaf}"][0, row - 1, col]) if row else 0.0

    def norm(self, leaf: str) -> float:
        return float(self.run[f"{self.scope}.{leaf}"][0, self.y[0], 0])

    @property
    def normed(self) -> Tensor:
        return self.run[self.run.wiring(self.scope).normalises(self.scope)][0]

    @property
    def gain(self) -> float:
        return float(self.run.module(self.scope).weight.detach().double()[self.y[-1]])


def cumulative(a: float) -> float:
    return (1 + math.erf(a / math.sqrt(2))) / 2


def density(a: float) -> float:
    return math.exp(-(a**2) / 2) / math.sqrt(2 * math.pi)


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


def of_experts(at: At) -> float:
    p = at.of("p")[at.y[0]]
    total = float(p.topk(at.run.module(at.scope).n_active).values.sum())
    return (float(at.y[-1] == at.x[-1]) - float(at.own[at.y])) / total


def squashed(at: At) -> float:
    return float(at.own[at.y]) * (1 - float(at.own[at.y]))


def straight(at: At) -> float:
    return 1 - float(at.own[at.y]) ** 2


READ: dict[str, Callable[[At], float]] = {
    "1": lambda at: 1.0,
    r"W^{Q(h)}_{k,j}": lambda at: at.of_head("query_proj"),
    r"W^{K(h)}_{k,j}": lambda at: at.of_head("key_proj"),
    r"W^{V(h)}_{k,j}": lambda at: at.of_head("value_proj"),
    r"W^O_{k,j}": lambda at: float(at.weight("output_proj")[at.x[0] * at.source.shape[-1] + at.x[-1], at.y[-1]]),
    r"W^{(1)}_{k,j}": lambda at: at.inside("inner_proj"),
    r"W^{(2)}_{k,j}": lambda at: at.inside("outer_proj"),
    r"W^{(g)}_{k,j}": lambda at: at.inside("gate_proj"),
    r"W^{(r)}_{k,j}": lambda at: at.inside("router"),
    r"E^\top_{k,j}": lambda at: float(at.run.module("output").proj.weight.detach().double()[at.y[-1], at.x[-1]]),
    r"V_{k,j}": lambda at: float(at.run.model.output.weight.detach().double()[at.y[-1], at.x[-1]]),
    r"\left(1-(\ell_{i,j}/c)^2\right)E^\top_{k,j}": lambda at: (
        (1 - (float(at.own[at.y]) / at.run.config.logit_cap) ** 2) * READ[r"E^\top_{k,j}"](at)
    ),
    r"v_{k,j}": lambda at: float(at.of("v")[at.x[-1], at.y[-1]]),
    r"A_{i,k}": lambda at: float(at.of("A")[at.y[1], at.x[1]]),
    r"M_{i,j}": lambda at: float(at.own[at.y] > -1e19),
    r"p_{i,j}\left([j=k]-p_{i,k}\right),\quad p=\mathrm{softmax}": softmax_slope,
    r"k_{j,l}": lambda at: float(at.of("k")[at.y[2], at.x[2]]),
    r"q_{i,l}": lambda at: float(at.of("q")[at.y[1], at.x[2]]),
    r"k_{j,l}/\sqrt{d_k}": lambda at: READ["k_{j,l}"](at) / at.run.module(at.scope).d_head ** 0.5,
    r"q_{i,l}/\sqrt{d_k}": lambda at: READ["q_{i,l}"](at) / at.run.module(at.scope).d_head ** 0.5,
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
    r"\Phi(a)+a\,\varphi(a),\quad\varphi(a)=e^{-a^2/2}/\sqrt{2\pi}": lambda at: (
        cumulative(at.here("a")) + at.here("a") * density(at.here("a"))
    ),
    r"\sigma(a)\left(1+a\,(1-\sigma(a))\right)": lambda at: (
        sigmoid(at.here("a")) * (1 + at.here("a") * (1 - sigmoid(at.here("a"))))
    ),
    r"\tfrac12(1+\tanh t)+\tfrac a2(1-\tanh^2t)\,t',\quad t=\sqrt{2/\pi}\,(a+0.044715\,a^3)": lambda at: bent_tanh(
        at.here("a")
    ),
    r"\sqrt{d_{model}}": lambda at: at.run.config.d_model**0.5,
    r"E^{(e)}_{i,j}": lambda at: float(at.of("E")[(at.x[-1], *at.y)]),
    r"g_{i,e}": lambda at: float(at.of("g")[at.y[0], at.x[0]]),
    r"\tfrac{1}{\sum_T p}([e=f]-g_{i,e})\quad(e,f\in T_i)": of_experts,
    r"o_{i,j}\left(1-\tanh^2(c_{i,j})\right)": lambda at: at.here("o") * (1 - math.tanh(at.here("c")) ** 2),
    r"\tanh(c_{i,j})": lambda at: math.tanh(at.here("c")),
    r"1-z_{i,j}": lambda at: 1 - at.here("z"),
    r"h_{i-1,j}-n_{i,j}": lambda at: at.before("hidden") - at.here("n"),
    r"c_{i-1,j}": lambda at: at.before("cell"),
    r"(1-n_{i,j}^2)\,W^{(n)}_{k,j}": lambda at: straight(at) * at.gates("input_proj"),
    r"(1-n_{i,j}^2)\,r_{i,j}\,U^{(n)}_{k,j}": lambda at: straight(at) * at.here("r") * at.gates("hidden_proj"),
    r"(1-n_{i,j}^2)\left(h_{i-1}\cdot U^{(n)}_{:,j}+c^{(n)}_{j}\right)": lambda at: (
        straight(at) * _state_part(at, hidden_before(at.run, at.scope)[0, at.y[0]])
    ),
    **{f"{gate}_{{i,j}}": (lambda at, gate=gate: at.here(gate)) for gate in "ufgiz"},
    **{
        rf"{gate}_{{i,j}}(1-{gate}_{{i,j}})\,{matrix}^{{({gate})}}_{{k,j}}": (
            lambda at, name=name: squashed(at) * at.gates(name)
        )
        for gate in "rzifo"
        for matrix, name in (("W", "input_proj"), ("U", "hidden_proj"))
    },
    **{
        rf"(1-{part}_{{i,j}}^2)\,{matrix}^{{({part})}}_{{k,j}}": (lambda at, name=name: straight(at) * at.gates(name))
        for part in "gh"
        for matrix, name in (("W", "input_proj"), ("U", "hidden_proj"))
    },
}


def _state_part(at: At, state: Tensor) -> float:
    """Return h . U + c of a GRU's candidate."""
    cell = cell_of(at.run, at.scope)
    weight, bias = (one.detach().double().chunk(3)[2] for one in (cell.hidden_proj.weight, cell.hidden_proj.bias))
    return float(weight[at.y[-1]] @ state + bias[at.y[-1]])


def compared(run: Pass, reader: str, name: str) -> tuple[str, int]:
    """Compare a declared formula with the derivative at some cells; return it and how many numbers were compared."""
    shape, formula, count = run.trace[name].shape[1:], "", 0
    for place in {0, math.prod(shape) // 2, math.prod(shape) - 1}:
        x = tuple(int(at) for at in torch.unravel_index(torch.tensor(place), shape))
        slopes, _, formula = _derivative(run, name, (0, *x), reader)
        if not formula or formula not in READ:
            break
        for y in slopes[0].nonzero()[:: max(1, len(slopes[0].nonzero()) // MOST)].tolist():
            read = READ[formula](At(run, reader, name, tuple(y), x))
            found = float(slopes[(0, *y)])
            assert read == pytest.approx(found, rel=1e-4, abs=1e-6), f"{reader} {y} of {name} {x}: {formula}"
            count += 1
    return formula, count


@cache
def readings(kind: type, variant: str) -> dict[str, int]:
    """Compare every declared formula of a tiny model; return how many numbers of each were compared."""
    run, met = differentiated(kind, variant), dict[str, int]()
    gradients = run.trace.gradients
    assert gradients is not None
    for reader in gradients:
        step = step_of(run, reader)
        for letter, name in step.sources.items():
            if step.slopes.get(letter) and name in gradients:
                formula, count = compared(run, reader, name)
                met[formula] = met.get(formula, 0) + count
    return met


@pytest.mark.parametrize(
    ("kind", "variant"), nightly_but(RUNS, [(Classifier, "post"), (Gpt, "gemma2"), (RecurrentLm, "lm_gru")])
)
def test_a_formula_is_the_derivative_at_every_cell_that_depends(kind: type, variant: str) -> None:
    assert {formula for formula in readings(kind, variant) if formula not in READ} <= NOT_READ


@pytest.mark.nightly
def test_each_reading_was_compared() -> None:
    met = [readings(kind, variant) for kind, variant in RUNS]
    assert {formula for formula in READ if not any(one.get(formula) for one in met)} == set()
