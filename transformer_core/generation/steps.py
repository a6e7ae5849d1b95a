"""One token a step: the likeliest, or one drawn by chance.

Greedy decoding: Sutskever et al. 2014, section 3.2. Read next: drafts.py.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from transformer_core.generation.drawing import Written, chances, without
from transformer_core.generation.writer import Writer
from transformer_core.models import Gpt


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
        exclude: tokens that shall never be written, such as padding; none is left out unasked.
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
    model: Gpt,
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
    """Write on from a beginning, each token drawn by its chances.

    Shapes:
        token_ids: (1, pos); of a longer beginning, the model reads its last max_len tokens

    Args:
        most: tokens to write.
        temperature, top_k, top_p: as in chances.
        exclude: tokens that shall never be written; none is left out unasked.
        generator: where the randomness comes from.
        cached: keep keys and values from step to step, as long as the text fits into max_len. Once it does not, every
            token moves one position down and the oldest is forgotten, so that nothing kept is right any more: from
            there on each step reads the whole window anew, as without.

    Raises:
        ValueError: the beginning is empty, or as chances.
    """

    def draw(logits: Tensor) -> Tensor:
        drawn = chances(without(logits, exclude), temperature=temperature, top_k=top_k, top_p=top_p)
        return torch.multinomial(drawn, 1, generator=generator)

    return _write(model, token_ids, draw, most, cached)


def greedy_words(
    model: Gpt, token_ids: Tensor, *, most: int, exclude: tuple[int, ...] = (), cached: bool = True
) -> Iterator[Written]:
    """Write on from a beginning, each time the likeliest token; arguments as in sample."""
    return _write(model, token_ids, lambda logits: without(logits, exclude).argmax(-1, keepdim=True), most, cached)


def _write(
    model: Gpt, token_ids: Tensor, choose: Callable[[Tensor], Tensor], most: int, cached: bool
) -> Iterator[Written]:
    if not token_ids.numel():
        raise ValueError("token_ids=[] must hold at least one token to write on from")
    longest = model.config.max_len
    state = unread = None
    for _ in range(most):
        with torch.inference_mode():
            if not cached:
                logits = model(token_ids[:, -longest:])[:, -1]  # (1, vocab)
            else:
                if state is None or unread is None or state.length + unread.shape[1] > longest:
                    state, unread = model.start(token_ids[:, :0]), token_ids[:, -longest:]
                logits, state = model.advance(unread, state)  # (1, vocab)
            unread = choose(logits)  # (1, 1)
        yield Written(int(unread), logits[0])
        token_ids = torch.cat((token_ids, unread), 1)
