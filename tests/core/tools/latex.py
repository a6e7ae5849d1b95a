"""What a formula with its numbers put in comes to, read from its LaTeX as a person would."""

import math
import re

FUNCTIONS = {
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "sin": math.sin,
    "cos": math.cos,
    "exp": math.exp,
    "sigma": lambda x: 1 / (1 + math.exp(-x)),
}
NAMES = FUNCTIONS | {"max": max, "abs": abs, "inf": math.inf, "pi": math.pi}
INNER = r"\{([^{}]*)\}"  # braces without braces in them


def value_of(latex: str) -> float:
    """Return the number that a right side such as ``\\frac{1\\cdot(-2)}{\\sqrt{4}}+0.5`` comes to."""
    text = latex.rpartition("=")[2]
    text = re.sub(r"\\left|\\right|\\,", "", text)
    text = re.sub(r"\\times10\^\{(-?\d+)\}", r"e\1", text)
    text = re.sub(r"(?<![\d.])10\^\{(-?\d+)\}", r"1e\1", text)
    text = re.sub(r"_\{\\Sigma\d+\}", "", text).replace(r"\tfrac12", "0.5").replace(r"\infty", "inf")
    text = re.sub(r"\\(sin|cos)\s*(\d+(?:\.\d+)?(?:e-?\d+)?)", r"\1(\2)", text)
    before = ""
    while before != text:
        before = text
        text = re.sub(rf"\\underbrace{INNER}", r"(\1)", text)
        text = re.sub(rf"\\sqrt{INNER}", r"sqrt(\1)", text)
        text = re.sub(rf"\\frac{INNER}{INNER}", r"((\1)/(\2))", text)
        text = re.sub(rf"(?<!\d)e\^{INNER}", r"exp(\1)", text)
        text = re.sub(rf"\^{INNER}", r"**(\1)", text)
    text = re.sub(r"\|([^|]*)\|", r"abs(\1)", text).replace("^", "**").replace(r"\cdot", "*")
    text = re.sub(r"(?<=[\d)])(?=\(|sin|cos)", "*", text.replace("\\", ""))
    return float(eval(text, {"__builtins__": {}}, NAMES))
