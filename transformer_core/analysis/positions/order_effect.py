"""What order is worth: how much worse a trained model does once positions or tokens are shuffled, or positions removed.

After Sinha et al. 2021, who shuffle words in training; here the model is already trained. Vaswani et al. 2017, section
3.5; Su et al. 2021 (rotary); Press et al. 2022 (ALiBi).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.positions.order_cases import NOT_ASKED, Cases, cases_of_reviews, cases_of_text
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.layers.positions import Rotary, rotate
from transformer_core.probe import Edit, capture
from transformer_core.progress import counted
from transformer_core.prompt import Prompt

TREATMENTS = ("kept", "positions_shuffled", "positions_removed", "tokens_shuffled")


def shuffled_order(special: Sequence[bool], seed: int) -> Tensor:
    """Draw which place's position each token gets; special tokens keep their own.

    Shapes:
        returns: (pos,), a permutation
    """
    own = torch.tensor([place for place, is_special in enumerate(special) if not is_special], dtype=torch.long)
    order = torch.arange(len(special))
    order[own] = own[torch.randperm(len(own), generator=torch.Generator().manual_seed(seed))]
    return order


def order_edits(
    config: ModelConfig, order: Tensor | None, *, stack: str = "*", first: bool = False
) -> Mapping[str, Edit]:
    """Return the edits that give token i the position order[i], or no position where order is None.

    Vectors that are added are permuted, or zero. Rotary queries and keys are turned back and then by their new
    places' angles; what distance adds to scores (ALiBi, relative) takes their new places' distances.

    Args:
        config: the model's.
        order: (pos,), a permutation; None takes all positions away.
        stack: a pattern of what the names of the stacks whose positions these are begin with, by default all.
        first: of a pass that ends in the first layer.
    """
    back = None if order is None else order.argsort()

    def vectors(x: Tensor) -> Tensor:  # (pos, d_model), or of each text
        return torch.zeros_like(x) if order is None else x[..., order, :]

    def turns(rotary: Rotary, x: Tensor) -> Tensor:  # (batch, head, pos, d_head)
        plain = rotate(x, rotary=rotary, back=True)
        return plain if order is None else rotate(plain[:, :, back], rotary=rotary)[:, :, order]

    def penalties(x: Tensor) -> Tensor:  # (head, query_pos, key_pos)
        return torch.zeros_like(x) if order is None else x[:, order][:, :, order]

    if config.positions == "none":
        return {}
    if config.positions == "rotary":
        return {
            f"{stack}layer{layer}.self_attention.rotated_{role}": partial(turns, Rotary.of_layer(config, layer))
            for layer in range(1 if first else config.n_layers)
            for role in ("query", "key")
        }
    if config.positions in ("alibi", "relative"):
        return {f"{stack}position_bias": penalties}
    return {f"{stack}position_embedding": vectors}


MEASURES = {"classifier": "accuracy", "bert": "accuracy", "gpt": "nats", "translation": "nats"}
Guesses = tuple[Tensor, Tensor]  # log probabilities (guess, outcome) and the right outcomes (guess,)


@dataclass(frozen=True, eq=False)
class OrderEffect:
    """How a model does with order, and without it.

    Shapes:
        accuracy, nats, moved, plain, turned: (treatment, seed); probabilities: (treatment, seed, class)

    Args:
        treatments: TREATMENTS, in their order.
        measure: the array that tells most of this kind of model, "accuracy" or "nats".
        accuracy: share of right guesses, in [0, 1]: classes, next tokens or hidden tokens.
        nats: mean cross entropy of a guess.
        moved: mean total variation distance, in [0, 1], between the guesses with order and those without; not a
            number where shuffled tokens ask for other guesses, as in a GPT.
        guesses: how many guesses each figure is based on.
        texts: how many texts.
        language: of the texts; "" where a text was given.
        ways_differ: greatest difference of a probability between shuffling positions and shuffling tokens by one
            permutation; None for a model that cannot look ahead, to which these are two things.
        plain, turned: a classifier's accuracy on reviews that say what they mean ("What a dull film!"), and on those
            that turn their words round ("not a dull scene"), which order alone can tell; else None.
        probabilities: of one text's classes; None for other models, and for reviews.
    """

    treatments: tuple[str, ...]
    measure: str
    accuracy: np.ndarray
    nats: np.ndarray
    moved: np.ndarray
    guesses: int
    texts: int
    language: str
    ways_differ: float | None
    plain: np.ndarray | None
    turned: np.ndarray | None
    probabilities: np.ndarray | None


def order_effect_on_set(*, bundle: Bundle, texts: int = 200, seeds: int = 5) -> OrderEffect:
    """Measure a model on held-out reviews of the built-in corpus, in the language that its tokenizer knows best.

    A classifier tells their class, a GPT guesses each next token, a BERT the hidden ones of 15 %. A translator reads
    sentences of the built-in pairs, whose order alone is touched, and guesses each next token of what it writes of them
    with order; what it writes keeps its own.

    Args:
        bundle: of a classifier of negative and positive, a gpt, a bert or a translation.
        texts: how many reviews.
        seeds: how many shuffles, numbered from 0.

    Raises:
        ValueError: the bundle is of another kind or has other classes.
    """
    language, cases = cases_of_reviews(bundle, texts)
    return _measured(bundle, cases, seeds, language)


def order_effect_here(*, prompt: Prompt, seeds: int = 20) -> OrderEffect:
    """Measure a model on one text; what a classifier or a translator says of it with order counts as right.

    A BERT guesses each token in turn, at most 16 of them, evenly spread.

    Args:
        prompt: to a classifier, a gpt, a bert or a translation.
        seeds: how many shuffles, numbered from 0.

    Raises:
        ValueError: the bundle is of another kind, or the text leaves nothing to guess.
    """
    return _measured(prompt.bundle, [cases_of_text(prompt)], seeds, "")


def _measured(bundle: Bundle, cases: list[Cases], seeds: int, language: str) -> OrderEffect:
    sums = np.zeros((3, len(TREATMENTS), seeds))  # right, nats, moved
    verdicts = np.zeros((len(TREATMENTS), seeds, bundle.config.n_classes))
    right = np.zeros((2, len(TREATMENTS), seeds))  # on turned and on plain reviews
    reviews, count, differ = np.zeros(2), 0, 0.0
    for case in counted(cases):
        kept, removed = (_guesses(bundle, case, way) for way in ("kept", "positions_removed"))
        count += len(kept[1])
        reviews += 0 if case.plain is None else np.bincount(case.plain.int().numpy(), minlength=2)
        for seed in range(seeds):
            order = shuffled_order(case.special, seed)
            shuffled = _guesses(bundle, case, "positions_shuffled", order)
            moved = _guesses(bundle, case, "tokens_shuffled", order)
            ways = (kept, shuffled, removed, moved)  # as TREATMENTS
            sums[:, :, seed] += np.transpose([_sums(way, kept) for way in ways])
            if bundle.kind == "classifier":
                verdicts[:, seed] = [way[0][0].exp().tolist() for way in ways]
                right[:, :, seed] += np.transpose([_right(way, case) for way in ways])
            if bundle.kind == "gpt":
                sums[2, 3, seed] = np.nan
            else:
                differ = max(differ, float((shuffled[0].exp() - moved[0].exp()).abs().max()))
    accuracy, nats, distance = sums / max(count, 1)
    turned, plain = right / reviews.clip(1)[:, None, None] if reviews.all() else (None, None)
    return OrderEffect(
        treatments=TREATMENTS,
        measure=MEASURES[bundle.kind],
        accuracy=accuracy,
        nats=nats,
        moved=distance,
        guesses=count,
        texts=sum(len(case.token_ids) for case in cases) if language else 1,
        language=language,
        ways_differ=None if bundle.kind == "gpt" else differ,
        plain=plain,
        turned=turned,
        probabilities=verdicts if bundle.kind == "classifier" and not language else None,
    )


def _right(way: Guesses, case: Cases) -> tuple[float, float]:
    """Return how many turned and how many plain reviews are classified correctly; none for a typed text."""
    if case.plain is None:
        return 0.0, 0.0
    right = way[0].argmax(-1) == way[1]  # (text,)
    return float(right[~case.plain].sum()), float(right[case.plain].sum())


def _sums(way: Guesses, kept: Guesses) -> tuple[float, float, float]:
    """Return how many guesses are right, their nats, and their distance from those with order."""
    log_probabilities, wanted = way
    right = float((log_probabilities.argmax(-1) == wanted).sum())
    nats = -float(log_probabilities.gather(-1, wanted[:, None]).sum())
    return right, nats, float((log_probabilities.exp() - kept[0].exp()).abs().sum() / 2)


def _guesses(bundle: Bundle, case: Cases, way: str, order: Tensor | None = None) -> Guesses:
    """Let the model guess one way; order is the permutation that shuffles."""
    ids, edits = case.token_ids, {}
    if order is not None and way == "tokens_shuffled":
        ids = ids[:, order.argsort()]
    elif way != "kept":
        edits = order_edits(bundle.config, order, stack="*" if case.written is None else "encoder.*")
    device = bundle.device
    read = [part.to(device) for part in (ids, case.written) if part is not None]
    output, _ = capture(bundle.model, *read, sites=(), edits=edits)
    targets, logits = case.targets, bundle.reader.scores(output)  # (text, slot, outcome)
    if bundle.reader.asks == "next":
        logits, targets = logits[:, :-1], ids[:, 1:].masked_fill(targets == NOT_ASKED, NOT_ASKED)
    elif bundle.reader.asks == "masked" and order is not None and way == "tokens_shuffled":
        logits = logits[:, order]
    asked = targets != NOT_ASKED
    return logits.cpu()[asked].double().log_softmax(-1), targets[asked]
