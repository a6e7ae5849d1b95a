"""The arithmetic of recurrent models: gates, candidates and states, the alignment, the context and the readout.

Cho et al. 2014, eqs. 5 to 8; Hochreiter and Schmidhuber 1997, section 4; Elman 1990; Bahdanau et al. 2015, section 3.1
and appendix A; Luong et al. 2015, section 3.1.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from transformer_core.analysis.arithmetic.attention import linear, plus
from transformer_core.analysis.arithmetic.computation import Computation, Sum, matrix_product
from transformer_core.analysis.arithmetic.embeddings import passed_on, same
from transformer_core.analysis.arithmetic.forward_pass import Pass
from transformer_core.models.recurrent.cells import Cell, GruCell, LstmCell, TanhCell

PARTS = {
    "gru": {"reset_gate": "r", "update_gate": "z", "candidate": "n"},
    "lstm": {"input_gate": "i", "forget_gate": "f", "candidate": "g", "output_gate": "o"},
    "tanh": {"hidden": "h"},
}  # in the order of the rows of a cell's matrices, with the letters of the papers


def cell_of(run: Pass, scope: str) -> Cell:
    """Return the cell that a scope of the trace names: the only one of its stack, or that of one direction."""
    stack, _, direction = scope.partition(".")
    return run.model.get_submodule(f"{stack}.{direction}_layer.cell" if direction else f"{stack}.cell")  # type: ignore


def real_positions(run: Pass, scope: str) -> Tensor:
    """Return True where a cell takes a step, False at padding, where its state stays: (batch, pos, 1)."""
    ids = run.ids[scope.partition(".")[0]]
    stays = not scope.startswith("decoder")
    return (ids != run.config.padding if stays else torch.ones_like(ids, dtype=torch.bool))[..., None]


def _step_before(states: Tensor, scope: str, first: Tensor) -> Tensor:
    """Shift the states (batch, pos, d_hidden) by a step, so that each position has the one it was given."""
    if scope.endswith("backward"):
        return torch.cat((states[:, 1:], first), 1)
    return torch.cat((first, states[:, :-1]), 1)


def hidden_before(run: Pass, scope: str) -> Tensor:
    """Return the hidden state that each position was given: (batch, pos, d_hidden)."""
    hidden = run[f"{scope}.hidden"]
    first = run["decoder.start"][:, None] if scope == "decoder" else torch.zeros_like(hidden[:, :1])
    return _step_before(hidden, scope, first)


def _cells_before(run: Pass, scope: str) -> Tensor:
    """Return the cell state that each position was given; at padding it stays, though another one is recorded."""
    cells, real = run[f"{scope}.cell"], real_positions(run, scope)
    state, states = torch.zeros_like(cells[:, 0]), []
    order = range(cells.shape[1])
    for position in reversed(order) if scope.endswith("backward") else order:
        states.append(state)
        state = torch.where(real[:, position], cells[:, position], state)
    return torch.stack(states[::-1] if scope.endswith("backward") else states, 1)


def _earlier(scope: str) -> str:
    return "<i>+1" if scope.endswith("backward") else "<i>-1"


def _step_back(scope: str) -> str:
    return _earlier(scope).replace("<i>", "i")


def _both_maps(run: Pass, scope: str, leaf: str) -> tuple[dict[str, Tensor], dict[str, Sum], dict[str, str], str]:
    """Return values, sums and sources of W x + b + U h + c for one part of a cell, and the letter of the part."""
    cell = cell_of(run, scope)
    letters = PARTS[run.config.unit]  # type: ignore[attr-defined]
    part = list(letters).index(leaf)

    def rows(parameter: Tensor) -> Tensor:
        return parameter.cpu().double().chunk(cell.parts)[part]

    stack = scope.partition(".")[0]
    x = f"{stack}.one_hot" if f"{stack}.one_hot" in run.trace else f"{stack}.scaled_embedding"
    biases = {"b": cell.input_proj.bias, "c": cell.hidden_proj.bias}
    values = {letter: rows(bias) for letter, bias in biases.items() if bias is not None}
    sums = {
        "x": matrix_product(run[x], rows(cell.input_proj.weight).mT),
        "u": matrix_product(hidden_before(run, scope), rows(cell.hidden_proj.weight).mT),
    }
    sources = {"x": x, "h": f"{scope}.hidden"}
    if scope == "decoder":
        sums["a"] = matrix_product(run["decoder.context"], rows(run.model.decoder.context_proj.weight).mT)  # type: ignore
        sources |= {"a": "decoder.context", "s": "decoder.start"}
    return values, sums, sources, letters[leaf]


def _mapped(scope: str, letter: str, *, one_bias: bool) -> tuple[str, str, str, str]:
    """Return the input's part and the state's part of the formula, each in symbols and in places for numbers.

    Args:
        one_bias: as of Cell.
    """
    symbols = rf"x_{{<i>}}\cdot W^{{({letter})}}_{{:,<j>}}+b^{{({letter})}}_{{<j>}}"
    numbers = "<x>+<b>"
    if scope == "decoder":
        symbols, numbers = rf"{symbols}+a_{{<i>}}\cdot C^{{({letter})}}_{{:,<j>}}", f"{numbers}+<a>"
    state = rf"h_{{{_earlier(scope)}}}\cdot U^{{({letter})}}_{{:,<j>}}"
    if one_bias:
        return symbols, numbers, state, "<u>"
    return symbols, numbers, rf"{state}+c^{{({letter})}}_{{<j>}}", "<u>+<c>"


SQUASHED = {r"\sigma": "{0}_{{i,j}}(1-{0}_{{i,j}})", r"\tanh": "(1-{0}_{{i,j}}^2)"}  # derivatives, by the result


def _slopes(letter: str, outer: str) -> dict[str, str]:
    """Return the derivatives of one part of a cell with respect to what its maps read: input, context and state."""
    matrices = {"x": "W", "a": "C", "h": "U", "s": "U"}
    return {source: rf"{outer}\,{matrix}^{{({letter})}}_{{k,j}}" for source, matrix in matrices.items()}


def _bent(run: Pass, scope: str, leaf: str, name: str, function: Callable[[Tensor], Tensor]) -> Computation:
    values, sums, sources, letter = _both_maps(run, scope, leaf)
    symbols, numbers, state, filled = _mapped(scope, letter, one_bias="c" not in values)
    return Computation(
        rf"{name}\left({symbols}+{state}\right)",
        rf"{name}\left({numbers}+{filled}\right)",
        lambda **parts: function(sum(parts.values())),  # type: ignore[arg-type]
        values,
        sums,
        sources,
        _slopes(letter, SQUASHED[name].format(letter)),
    )


def gate(leaf: str) -> Callable[[Pass, str], Computation]:
    """sigmoid(W x + b + U h + c), of the gate of this name."""
    return lambda run, scope: _bent(run, scope, leaf, r"\sigma", torch.sigmoid)


def candidate(run: Pass, scope: str) -> Computation:
    """tanh(W x + b + U h + c), where a GRU's reset gate multiplies the state's part."""
    if isinstance(cell_of(run, scope), LstmCell):
        return _bent(run, scope, "candidate", r"\tanh", torch.tanh)
    values, sums, sources, letter = _both_maps(run, scope, "candidate")
    symbols, numbers, state, filled = _mapped(scope, letter, one_bias="c" not in values)

    def bent(r: Tensor, u: Tensor, c: Tensor | float = 0.0, **of_input: Tensor) -> Tensor:
        return torch.tanh(sum(of_input.values()) + r * (u + c))

    return Computation(
        rf"\tanh\left({symbols}+r_{{<i>,<j>}}\cdot\left({state}\right)\right)",
        rf"\tanh\left({numbers}+<r>\cdot\left({filled}\right)\right)",
        bent,
        values | {"r": run[f"{scope}.reset_gate"]},
        sums,
        sources | {"r": f"{scope}.reset_gate"},
        _slopes(letter, "(1-n_{i,j}^2)")
        | {"r": rf"(1-n_{{i,j}}^2)\left({state}\right)".replace("<i>", "i").replace("<j>", "j")}
        | dict.fromkeys("hs", rf"(1-n_{{i,j}}^2)\,r_{{i,j}}\,U^{{({letter})}}_{{k,j}}"),
    )


def cell(run: Pass, scope: str) -> Computation:
    """f c + i g: of the old cell what is kept, of the candidate what is let in."""
    leaves = {"f": "forget_gate", "c": "cell", "i": "input_gate", "g": "candidate"}
    sources = {letter: f"{scope}.{leaf}" for letter, leaf in leaves.items()}
    return Computation(
        rf"f_{{<i>,<j>}}\cdot c_{{{_earlier(scope)},<j>}}+i_{{<i>,<j>}}\cdot g_{{<i>,<j>}}",
        r"<f>\cdot<c>+<into>\cdot<g>",
        lambda f, c, into, g: f * c + into * g,
        {"f": run[sources["f"]], "c": _cells_before(run, scope), "into": run[sources["i"]], "g": run[sources["g"]]},
        sources=sources,
        slopes={"f": rf"c_{{{_step_back(scope)},j}}", "c": "f_{i,j}", "i": "g_{i,j}", "g": "i_{i,j}"},
    )


def _plain(run: Pass, scope: str) -> Computation:
    return _bent(run, scope, "hidden", r"\tanh", torch.tanh)


def _gru(run: Pass, scope: str) -> Computation:
    sources = {"z": f"{scope}.update_gate", "n": f"{scope}.candidate", "h": f"{scope}.hidden"}
    return Computation(
        rf"(1-z_{{<i>,<j>}})\cdot n_{{<i>,<j>}}+z_{{<i>,<j>}}\cdot h_{{{_earlier(scope)},<j>}}",
        r"(1-<z>)\cdot<n>+<z>\cdot<u>",
        lambda z, n, u: (1 - z) * n + z * u,
        {"z": run[sources["z"]], "n": run[sources["n"]], "u": hidden_before(run, scope)},
        sources=sources,
        slopes={"z": rf"h_{{{_step_back(scope)},j}}-n_{{i,j}}", "n": "1-z_{i,j}"} | dict.fromkeys("hs", "z_{i,j}"),
    )


def _lstm(run: Pass, scope: str) -> Computation:
    sources = {"o": f"{scope}.output_gate", "c": f"{scope}.cell"}
    return Computation(
        r"o_{<i>,<j>}\cdot\tanh\left(c_{<i>,<j>}\right)",
        r"<o>\cdot\tanh\left(<c>\right)",
        lambda o, c: o * torch.tanh(c),
        {letter: run[name] for letter, name in sources.items()},
        sources=sources,
        slopes={"o": r"\tanh(c_{i,j})", "c": r"o_{i,j}\left(1-\tanh^2(c_{i,j})\right)"},
    )


def hidden(run: Pass, scope: str) -> Computation:
    """(1 - z) n + z h of a GRU, o tanh(c) of an LSTM, tanh(W x + b + U h + c); at padding the state before."""
    kinds: dict[type[Cell], Callable[[Pass, str], Computation]] = {TanhCell: _plain, GruCell: _gru, LstmCell: _lstm}
    taken = kinds[type(cell_of(run, scope))](run, scope)
    real, before = real_positions(run, scope), hidden_before(run, scope)
    return replace(
        taken,
        function=lambda real, before, **parts: torch.where(real, taken.function(**parts), before),
        values={**taken.values, "real": real, "before": before},
        where=real,
        otherwise=(rf"h_{{{_earlier(scope)},<j>}}", "<before>"),
    )


def _directions(run: Pass) -> tuple[str, ...]:
    names = ("encoder.forward.hidden", "encoder.backward.hidden")
    return names if names[0] in run.trace else ("encoder.hidden",)


def _side_by_side(run: Pass, states: list[Tensor], rows: tuple[str, str]) -> Computation:
    """Return the states of both directions, of these rows, as one vector, or of the one direction there is."""
    names = _directions(run)
    whole = torch.cat(states, -1)
    width = states[0].shape[-1]
    letters = (r"\overrightarrow{h}", r"\overleftarrow{h}") if len(names) > 1 else ("h",)
    return Computation(
        rf"{letters[0]}_{{{rows[0]},<j>}}",
        "<x>",
        same,
        {"x": whole},
        sources=dict(zip(letters, names, strict=True)),
        slopes=dict.fromkeys(letters, "1"),
        where=torch.arange(whole.shape[-1], device=whole.device) < width,
        otherwise=(rf"{letters[-1]}_{{{rows[-1]},<j>-{width}}}", "<x>"),
    )


def annotations(run: Pass, scope: str) -> Computation:
    """Both directions side by side; 0 at padding."""
    real = real_positions(run, scope)
    return _side_by_side(run, [run[name] * real for name in _directions(run)], ("<i>", "<i>"))


def summary(run: Pass, scope: str) -> Computation:
    """The last state of each direction: the backward one ends at position 0."""
    names = _directions(run)
    ends = [run[name][:, 0 if "backward" in name else -1] for name in names]
    return _side_by_side(run, ends, (f"{run[names[0]].shape[1] - 1}", "0"))


def _tanh_of(x: Tensor, row: str, name: str, run: Pass, sources: dict[str, str]) -> Computation:
    mapped = linear(x, run.module(name), (row, "W", "b"), sources)
    return replace(
        mapped,
        symbols=rf"\tanh\left({mapped.symbols}\right)",
        numbers=rf"\tanh\left({mapped.numbers}\right)",
        function=lambda **parts: torch.tanh(mapped.function(**parts)),
        slopes={letter: rf"(1-\tanh^2)\,{slope}" for letter, slope in mapped.slopes.items()},
    )


def start(run: Pass, scope: str) -> Computation:
    """tanh(W summary + b)."""
    return _tanh_of(run["encoder.summary"], "u", "decoder.start_proj", run, {"u": "encoder.summary"})


def readout(run: Pass, scope: str) -> Computation:
    """tanh(W [s; c; e] + b)."""
    sources = {"h": "decoder.hidden", "a": "decoder.context", "e": "decoder.scaled_embedding"}
    joined = torch.cat([run[name] for name in sources.values()], -1)
    return _tanh_of(joined, r"[h_{<i>};a_{<i>};e_{<i>}]", "decoder.readout_proj", run, sources)


def alignment_scores(run: Pass, scope: str) -> Computation:
    """v . tanh(q + k), or q . k / sqrt(d_hidden), where q = W s + b of the state before and k = U h."""
    alignment = run.module(scope)
    proj = alignment.query_proj
    sources = {"s": "decoder.start", "h": "decoder.hidden", "m": "encoder.annotations"}
    weight, bias = proj.weight.cpu().double(), proj.bias.cpu().double()
    q = hidden_before(run, "decoder") @ weight.mT + bias  # (batch, target_pos, d_hidden)
    k = run["encoder.annotations"] @ alignment.key_proj.weight.cpu().double().mT  # (batch, source_pos, d_hidden)
    q, k = q[:, None], k[:, None]  # (batch, 1, pos, d_hidden)
    where = r",\quad q_{<i>}=h_{<i>-1}W^Q+b^Q,\quad k_{<j>}=m_{<j>}W^K"
    if alignment.additive_scores is None:
        d = torch.tensor(float(q.shape[-1]))
        return Computation(
            rf"\frac{{q_{{<i>}}\cdot k_{{<j>}}}}{{\sqrt{{d}}}}{where}",
            r"\frac{<dot>}{\sqrt{<d>}}",
            lambda dot, d: dot / d.double().sqrt(),
            {"d": d},
            {"dot": matrix_product(q, k.mT)},
            sources,
        )
    features = torch.tanh(q[:, :, :, None] + k[:, :, None])  # (batch, 1, target_pos, source_pos, d_hidden)
    v = alignment.additive_scores.weight.cpu().double()[0]  # (d_hidden,)
    total = Sum(v, features, (v * features).sum(-1))
    return Computation(rf"v\cdot\tanh(q_{{<i>}}+k_{{<j>}}){where}", "<dot>", plus, {}, {"dot": total}, sources)


def context(run: Pass, scope: str) -> Computation:
    """The annotations, mixed by the weights; without attention the summary."""
    if "decoder.alignment.weights" not in run.trace:
        source = "encoder.summary"
        return passed_on(run[source][:, None], "u", source, "<j>")
    sources = {"A": "decoder.alignment.weights", "m": "encoder.annotations"}
    mixed = matrix_product(run[sources["A"]][:, 0], run[sources["m"]])
    slopes = {"A": "m_{k,j}", "m": "A_{i,k}"}
    return Computation(r"\sum_k A_{<i>,k}\,m_{k,<j>}", "<dot>", plus, {}, {"dot": mixed}, sources, slopes)
