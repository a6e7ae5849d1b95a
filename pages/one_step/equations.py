"""One weight's step as an equation with its own numbers, for each rule."""

from pages.kit.number_format import significant_in_tex
from transformer_core.analysis.learning.followed import Followed

DIGITS, OF_WEIGHTS = 4, 7  # that count


def _n(value: float | None, digits: int = DIGITS) -> str:
    """Write a number, one below zero in brackets, so that it can follow a sign."""
    written = significant_in_tex(value or 0.0, digits)
    return f"({written})" if (value or 0.0) < 0 else written


def _plain(value: float | None, digits: int = DIGITS) -> str:
    return significant_in_tex(value or 0.0, digits)


def _aligned(*lines: str) -> str:
    return r"\begin{aligned}" + r"\\[4pt]".join(lines) + r"\end{aligned}"


def equation_of(one: Followed) -> str:
    """Return the way of a weight through its rule, in LaTeX."""
    lines = {"adamw": _adamw, "sgd": _sgd, "momentum": _momentum, "muon": _muon}[one.rule](one)
    return _aligned(*lines)


def _gradient(one: Followed) -> str:
    return rf"g_{{{one.step}}} &= \frac{{\partial L}}{{\partial w}} = {_plain(one.gradient)}"


def _adamw(one: Followed) -> list[str]:
    """Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2."""
    t, first, second, rate = one.step, one.mean_decay, one.square_decay, _n(one.rate)
    return [
        _gradient(one),
        rf"m_{{{t}}} &= \beta_1 m_{{{t - 1}}} + (1-\beta_1)\,g_{{{t}}} = {first:g}\cdot{_n(one.mean_before)}"
        rf" + {1 - first:.2g}\cdot{_n(one.gradient)} = {_plain(one.mean)}",
        rf"v_{{{t}}} &= \beta_2 v_{{{t - 1}}} + (1-\beta_2)\,g_{{{t}}}^2 = {second:g}\cdot{_n(one.square_before)}"
        rf" + {1 - second:.2g}\cdot{_n(one.gradient)}^2 = {_plain(one.square)}",
        rf"\hat m &= \frac{{m_{{{t}}}}}{{1-\beta_1^{{{t}}}}} = {_plain(one.unbiased_mean)}, \quad "
        rf"\hat v = \frac{{v_{{{t}}}}}{{1-\beta_2^{{{t}}}}} = {_plain(one.unbiased_square)}",
        r"w' &= w - \eta\lambda w - \eta\,\frac{\hat m}{\sqrt{\hat v}+\epsilon}",
        rf"&= {_plain(one.weight, OF_WEIGHTS)} - {rate}\cdot{_n(one.decay)}\cdot{_n(one.weight)} - {rate}\cdot"
        rf"\frac{{{_plain(one.unbiased_mean)}}}{{\sqrt{{{_plain(one.unbiased_square)}}}+{_n(one.small, 1)}}}",
        rf"&= {_plain(one.after, OF_WEIGHTS)}",
    ]


def _sgd(one: Followed) -> list[str]:
    rate = _n(one.rate)
    return [
        _gradient(one),
        rf"w' &= w - \eta\,(g_{{{one.step}}} + \lambda w)",
        rf"&= {_plain(one.weight, OF_WEIGHTS)} - {rate}\cdot({_plain(one.gradient)} + "
        rf"{_n(one.decay)}\cdot{_n(one.weight)})",
        rf"&= {_plain(one.after, OF_WEIGHTS)}",
    ]


def _momentum(one: Followed) -> list[str]:
    """Sutskever et al. 2013, eq. 1, as torch has it: the rate multiplies the sum."""
    t, rate = one.step, _n(one.rate)
    return [
        _gradient(one),
        rf"b_{{{t}}} &= \mu\,b_{{{t - 1}}} + g_{{{t}}} + \lambda w = {one.mean_decay:g}\cdot{_n(one.mean_before)} + "
        rf"{_n(one.gradient)} + {_n(one.decay)}\cdot{_n(one.weight)} = {_plain(one.mean)}",
        rf"w' &= w - \eta\,b_{{{t}}} = {_plain(one.weight, OF_WEIGHTS)} - {rate}\cdot{_n(one.mean)}",
        rf"&= {_plain(one.after, OF_WEIGHTS)}",
    ]


def _muon(one: Followed) -> list[str]:
    """Jordan et al. 2024; Liu et al. 2025, section 2.2."""
    t, decay, rate = one.step, one.mean_decay, _n(one.rate)
    return [
        _gradient(one),
        rf"B_{{{t}}} &= \mu\,B_{{{t - 1}}} + (1-\mu)\,g_{{{t}}} = {decay:g}\cdot{_n(one.mean_before)} + "
        rf"{1 - decay:.2g}\cdot{_n(one.gradient)} = {_plain(one.mean)}",
        rf"M &= (1-\mu)\,g_{{{t}}} + \mu\,B_{{{t}}} = {_plain(one.mixed)}",
        rf"O &= \mathrm{{orthogonal}}(M)_{{ij}} = {_plain(one.orthogonal)}",
        rf"w' &= w - \eta\lambda w - \eta\,s\,O, \qquad s = 0.2\sqrt{{\max(n, m)}} = {_plain(one.scale)}",
        rf"&= {_plain(one.weight, OF_WEIGHTS)} - {rate}\cdot{_n(one.decay)}\cdot{_n(one.weight)} - {rate}\cdot"
        rf"{_n(one.scale)}\cdot{_n(one.orthogonal)}",
        rf"&= {_plain(one.after, OF_WEIGHTS)}",
    ]
