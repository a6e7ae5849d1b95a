"""One token at a time: the likeliest (greedy decoding), or one sampled with temperature, top-k and top-p.

Greedy decoding: Sutskever et al. 2014, section 3.2; temperature: Ackley et al. 1985; top-k: Fan et al. 2018; top-p:
Holtzman et al. 2020.
Read next: transformer_core/bundle.py
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer_core.generation.writer import Writer
from transformer_core.models import Gpt
from transformer_core.models.recurrent import RecurrentLm


@dataclass(frozen=True, eq=False)
class Written:
    """One step of generation.

    Shapes:
        logits: (vocab,), from which the token was chosen, as the model gave them

    Args:
        token_id: the token that was written.
    """

    token_id: int
    logits: Tensor


def without(logits: Tensor, exclude: tuple[int, ...]) -> Tensor:
    """Return logits (..., vocab) with minus infinity at the tokens that are never written."""
    if not exclude:
        return logits
    places = torch.tensor(exclude, device=logits.device)
    if int(places.min()) < 0 or int(places.max()) >= logits.shape[-1]:
        raise ValueError(f"exclude={exclude} must hold ids of the vocabulary, 0 to {logits.shape[-1] - 1}")
    return logits.index_fill(-1, places, float("-inf"))


def probabilities(
    logits: Tensor, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Return the probability of each token: softmax(logits / temperature), cut to the top k, then to the top p.

    What is cut gets 0, and the rest is divided by its sum, so that top-p counts what top-k left.

    Shapes:
        logits: (..., vocab); returns: the same

    Args:
        temperature: above 0; towards 0 the likeliest token wins, above 1 rare ones gain.
        top_k: how many tokens are kept, the likeliest; None, or more than there are, keeps all.
        top_p: the fewest tokens, likeliest first, of which the probabilities reach this sum are kept; None keeps all.

    Raises:
        ValueError: an argument is out of its range.
    """
    if not (temperature > 0 and temperature != float("inf")):
        raise ValueError(f"temperature={temperature} must be more than 0 and finite")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k={top_k} must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p} must be more than 0 and at most 1")
    logits = logits.float()
    probabilities = ((logits - logits.amax(-1, keepdim=True)) / temperature).softmax(-1)
    if top_k is not None and top_k < logits.shape[-1]:
        probabilities = _kept(probabilities, logits.topk(top_k).indices)
    if top_p is not None and top_p < 1:
        ranked, places = torch.sort(probabilities, dim=-1, descending=True, stable=True)
        before = ranked.cumsum(-1) - ranked  # (..., vocab): what likelier tokens add up to
        ranked = ranked.masked_fill(before >= top_p, 0.0)
        cut = torch.zeros_like(probabilities).scatter(-1, places, ranked)
        probabilities = cut / cut.sum(-1, keepdim=True)
    return probabilities


def _kept(probabilities: Tensor, places: Tensor) -> Tensor:
    kept = torch.zeros_like(probabilities).scatter(-1, places, probabilities.gather(-1, places))
    return kept / kept.sum(-1, keepdim=True)


def greedy(
    model: Writer, source_ids: Tensor, *, bos_id: int, eos_id: int, most: int, exclude: tuple[int, ...] = ()
) -> Iterator[Written]:
    """Write a target word by word, each time the likeliest, until the end token or `most` tokens.

    Shapes:
        source_ids: (1, source_pos)

    Args:
        bos_id: what the target begins with; it is not yielded.
        eos_id: the end token; it is the last that is yielded.
        most: tokens at most; model.config.max_len bounds it too.
        exclude: tokens that are never written, such as padding; none by default.
    """
    token = torch.tensor([[bos_id]], device=source_ids.device)  # (1, 1)
    with torch.inference_mode():
        state = model.start(source_ids)
    for _ in range(min(most, model.config.max_len - 1)):
        with torch.inference_mode():
            logits, state = model.advance(token, state)  # (1, vocab)
            token = without(logits, exclude).argmax(-1, keepdim=True)  # (1, 1)
        written = Written(int(token), logits[0])
        yield written
        if written.token_id == eos_id:
            return


def sample(
    model: Gpt | RecurrentLm,
    token_ids: Tensor,
    *,
    most: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    exclude: tuple[int, ...] = (),
    generator: torch.Generator | None = None,
    cached: bool = True,
) -> Iterator[Written]:
    """Continue a text, each token sampled by its probability.

    Shapes:
        token_ids: (1, pos); of a longer text, the model reads its last max_len tokens

    Args:
        most: tokens to write.
        temperature, top_k, top_p: as in probabilities.
        exclude: tokens that are never written; none by default.
        generator: where the randomness comes from.
        cached: keep keys and values from step to step, as long as the text fits into max_len. Once it does not, every
            token moves one position down and the oldest is forgotten, so that nothing kept is right any more: from
            there on each step reads the whole window again, as without. A recurrent network keeps its state from
            step to step, however long the text.

    Raises:
        ValueError: the text is empty, or as probabilities.
    """

    def draw(logits: Tensor) -> Tensor:
        drawn = probabilities(without(logits, exclude), temperature=temperature, top_k=top_k, top_p=top_p)
        return torch.multinomial(drawn, 1, generator=generator)

    return _write(model, token_ids, draw, most, cached)


def greedy_words(
    model: Gpt | RecurrentLm,
    token_ids: Tensor,
    *,
    most: int,
    exclude: tuple[int, ...] = (),
    cached: bool = True,
) -> Iterator[Written]:
    """Continue a text, each time the likeliest token; arguments as in sample."""
    return _write(model, token_ids, lambda logits: without(logits, exclude).argmax(-1, keepdim=True), most, cached)


def _write(
    model: Gpt | RecurrentLm, token_ids: Tensor, choose: Callable[[Tensor], Tensor], most: int, cached: bool
) -> Iterator[Written]:
    if not token_ids.numel():
        raise ValueError("token_ids=[] must hold at least one token to write on from")
    longest = model.config.max_len
    state: Any = None
    unread = None
    for _ in range(most):
        with torch.inference_mode():
            if not cached:
                logits = model(token_ids[:, -longest:])[:, -1]  # (1, vocab)
            else:
                if state is None or unread is None or not model.has_room(state, unread.shape[1]):
                    state, unread = model.start(token_ids[:, :0]), token_ids[:, -longest:]
                logits, state = model.advance(unread, state)  # (1, vocab)
            unread = choose(logits)  # (1, 1)
        yield Written(int(unread), logits[0])
        token_ids = torch.cat((token_ids, unread), 1)
