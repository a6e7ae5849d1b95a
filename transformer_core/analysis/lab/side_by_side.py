"""Two readings side by side: two texts, two models, or two moments of a run; any site of both, and their difference.

Linear CKA: Kornblith et al. 2019, eqs. 3 and 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.encoder.two_sentences import aligned, apart, pair_labels
from transformer_core.analysis.lab.cases import Cases, answer_id, one_case, run, with_answers
from transformer_core.analysis.lab.changes import streams
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.trace import Trace

MOST_VALUES = 1 << 22
FEWEST = 3  # positions, for CKA
SHUFFLES = 16
OVER_KEYS = ("weights", "scores", "masked_scores")


@dataclass(frozen=True, eq=False)
class SideBySide:
    """One site of two readings, and all layers of their streams compared.

    Shapes:
        first, second: (row, col), the site; of several heads the chosen one
        difference: (pair, col) or, of weights, (pair, pair): second minus first at aligned positions; (0, 0) where the
            two have not one width
        pairs: (pair, 2), aligned positions
        cosine, distance: (layer,), over aligned positions of the stream: the mean cosine, and the mean distance over
            the mean of both lengths; not a number where shapes forbid it
        cka, cka_shuffled: (layer, layer of the second), linear CKA over aligned positions of the stream, and its mean
            over SHUFFLES with the second's positions in random order; (0, 0) where positions are too few

    Args:
        rows, columns: labels of the first and of the second reading; those of columns are empty where they are numbers.
        pair_labels: one a pair, "word" or "word → other".
        answers: ln p of the first reading's answer in both, nan in the second where it has another kind of answer, and
            where there is none.
    """

    first: np.ndarray
    second: np.ndarray
    difference: np.ndarray
    pairs: np.ndarray
    cosine: np.ndarray
    distance: np.ndarray
    cka: np.ndarray
    cka_shuffled: np.ndarray
    rows: tuple[tuple[str, ...], tuple[str, ...]]
    columns: tuple[tuple[str, ...], tuple[str, ...]]
    pair_labels: tuple[str, ...]
    answers: tuple[float, float]


@dataclass(frozen=True)
class Names:
    """Names of sites."""

    names: tuple[str, ...]


def sites_in(*, prompt: Prompt) -> Names:
    """Return the names of all sites of a reading that have positions, in the order they are computed."""
    cases, trace, _ = _read(prompt)
    widths = {len(labels) for labels in cases.labels.values()}
    return Names(tuple(name for name, tensor in trace.items() if tensor.dim() >= 3 and tensor.shape[-2] in widths))


def _read(prompt: Prompt) -> tuple[Cases, Trace, float]:
    """Read a text, and return ln p of what the model answers, nan where it answers nothing, as a sentence encoder."""
    bundle, encoding = prompt.bundle, prompt.encoding
    if bundle.reader.asks == "words" or bundle.reader.outcome(encoding) is not None:
        cases = one_case(prompt=prompt)
        answers, trace = run(cases, sites=("*",))
        return cases, trace, float(answers.log_prob[0])
    cases = with_answers(bundle, [encoding], [{}])
    return cases, capture(bundle.model, *cases.inputs, sites=("*",))[1], float("nan")


def side_by_side(*, prompt: Prompt, second: Prompt, site: str, head: int = 0) -> SideBySide:
    """Read two texts, each by its model, and compare one site and all layers.

    Args:
        site: a name of both readings.
        head: of a site with heads.

    Raises:
        ValueError: one of the two has no such site or head, or it is too large to be shown.
    """
    first, other = map(_read, (prompt, second))
    pair, traces = [first[0], other[0]], [first[1], other[1]]
    tables = [_table(cases, trace, site, head) for cases, trace in zip(pair, traces, strict=True)]
    pairs = _pairs(pair[0], pair[1], site)
    one, two = tables
    over_keys = site.rsplit(".", 1)[-1] in OVER_KEYS
    across = _pairs(pair[0], pair[1], "encoder") if ".cross_attention." in site else pairs
    difference = _difference(one, two, pairs, across if over_keys else None)
    stack = site.partition(".")[0]
    labels = tuple(cases.labels.get(stack, next(iter(cases.labels.values()))) for cases in pair)
    of_keys = "encoder" if ".cross_attention." in site else stack
    keys = [cases.labels[of_keys] if over_keys else () for cases in pair]
    compared = _compared(pair, traces, stack)
    return SideBySide(
        one,
        two,
        np.where(np.isfinite(difference), difference, 0.0),
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        *compared,
        rows=(labels[0], labels[1]),
        columns=(keys[0], keys[1]),
        pair_labels=pair_labels(labels[0], labels[1], pairs),
        answers=(first[2], _second_answer(pair[0], second)),
    )


def _second_answer(first: Cases, prompt: Prompt) -> float:
    """Return ln p of the first reading's answer in the second, nan where that has another kind of answer."""
    same = (
        first.bundle.kind == prompt.bundle.kind
        and first.bundle.of_target.to_json() == prompt.bundle.of_target.to_json()
    )
    if not same or prompt.bundle.reader.asks == "words" or prompt.bundle.reader.outcome(prompt.encoding) is None:
        return float("nan")
    other = one_case(prompt=prompt, answer=answer_id(first))
    return float(run(other)[0].log_prob[0])


def _table(cases: Cases, trace: Trace, site: str, head: int) -> np.ndarray:
    """Return a site of one reading as a table; of a site with heads the chosen one. # (row, col)"""
    if site not in trace:
        raise ValueError(f"site={site!r} is not in {cases.bundle.name!r}; it has {', '.join(list(trace)[:8])} …")
    tensor = trace[site]
    tensor = tensor if tensor.shape[0] != 1 or tensor.dim() == 2 else tensor[0]
    if tensor.dim() == 3:
        if not 0 <= head < tensor.shape[0]:
            raise ValueError(f"head={head} must be from 0 to {tensor.shape[0] - 1} at {site}")
        tensor = tensor[head]
    if tensor.dim() != 2 or tensor.numel() > MOST_VALUES:
        raise ValueError(f"site={site!r} has shape {tuple(tensor.shape)}, which is no table of positions")
    return tensor.float().cpu().numpy()


def _difference(
    first: np.ndarray, second: np.ndarray, pairs: list[tuple[int, int]], across: list[tuple[int, int]] | None
) -> np.ndarray:
    """Return second minus first at paired rows, and at paired columns where `across` pairs those; (0, 0) where none."""
    rows, columns = [one for one, _ in pairs], [two for _, two in pairs]
    if across is not None:
        left, right = [one for one, _ in across], [two for _, two in across]
        return second[columns][:, right] - first[rows][:, left]
    return second[columns] - first[rows] if first.shape[-1] == second.shape[-1] else np.zeros((0, 0))


def _pairs(first: Cases, second: Cases, site: str) -> list[tuple[int, int]]:
    """Return aligned positions by the tokens' labels, since two vocabularies may number them differently; of two that
    cut texts differently only equal tokens, since one in another's place need not stand for the same piece of text.
    """
    stack = site.partition(".")[0]
    stack = stack if stack in first.labels and stack in second.labels else next(iter(first.labels))
    names: dict[str, int] = {}
    ids = [tuple(names.setdefault(label, len(names)) for label in one.labels.get(stack, ())) for one in (first, second)]
    found = aligned(*ids)
    one, two = (case.bundle.of_target if stack == "decoder" else case.bundle.tokenizer for case in (first, second))
    if one is two or (one.vocab_size == two.vocab_size and one.to_json() == two.to_json()):
        return found
    return [(row, column) for row, column in found if ids[0][row] == ids[1][column]]


def _compared(cases: list[Cases], traces: list[Trace], stack: str) -> tuple[np.ndarray, ...]:
    """Return cosine, distance, CKA and CKA shuffled."""
    pairs = _pairs(cases[0], cases[1], stack)
    chosen = [one for one, _ in pairs], [two for _, two in pairs]
    ones, others = (
        [trace[site][0].cpu().double()[rows] for site in streams(case.bundle).get(stack, ())]
        for case, trace, rows in zip(cases, traces, chosen, strict=True)
    )  # each (layer of (pair, d_model))
    found = np.full((2, min(len(ones), len(others))), np.nan)
    for layer, (one, other) in enumerate(zip(ones, others, strict=False)):
        if one.shape == other.shape and len(pairs):
            found[0, layer] = torch.cosine_similarity(one, other, dim=-1).mean()
            found[1, layer] = apart(one, other).mean()
    if len(pairs) < FEWEST or not found.size:
        return (*found, np.zeros((0, 0)), np.zeros((0, 0)))
    generator = np.random.default_rng(0)
    orders = [generator.permutation(len(pairs)) for _ in range(SHUFFLES)]
    first, second = ([table.numpy() for table in tables] for tables in (ones, others))
    shuffled = [linear_cka(first, [other[order] for other in second]) for order in orders]
    return (*found, linear_cka(first, second), np.mean(shuffled, axis=0))


def linear_cka(ones: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> np.ndarray:
    """Return |Y^T X|^2 / (|X^T X| |Y^T Y|) of centred tables of the same positions, in Frobenius norms, each with each.

    It is computed as the cosine of X X^T and Y Y^T, which are small where positions are few.

    Shapes:
        ones: (pos, d_one) each; others: (pos, d_other) each
        returns: (one, other), not a number where all rows of a table are the same
    """
    flat = []
    for tables in (ones, others):
        centred = [table - table.mean(0) for table in tables]
        inner = np.stack([(table @ table.T).ravel() for table in centred])  # (table, pos * pos)
        sizes = np.linalg.norm(inner, axis=-1, keepdims=True)
        flat.append(np.divide(inner, sizes, out=np.full_like(inner, np.nan), where=sizes > 0))
    return flat[0] @ flat[1].T
