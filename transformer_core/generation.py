"""Generation: a model writes, one token a step, and its caller may look at each step or stop.

Greedy decoding: Sutskever et al. 2014, section 3.2; temperature: Ackley et al. 1985. Read next: checkpoints.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.models import Gpt, Translation


@dataclass(frozen=True, eq=False)
class Written:
    """One step of generation.

    Shapes:
        logits: (vocab,), from which the token was chosen

    Args:
        token_id: the token that was written.
    """

    token_id: int
    logits: Tensor


def greedy(model: Translation, source_ids: Tensor, *, bos_id: int, eos_id: int, most: int) -> Iterator[Written]:
    """Write a target word by word, each time the likeliest, until the end token or `most` tokens.

    Shapes:
        source_ids: (1, source_pos)

    Args:
        bos_id: what the target begins with; it is not yielded.
        eos_id: the end token; it is the last that is yielded.
        most: tokens at most; model.config.max_len bounds it too.
    """
    target = torch.tensor([[bos_id]], device=source_ids.device)  # (1, target_pos)
    with torch.inference_mode():
        memory, memory_mask = model.encode(source_ids)
    for _ in range(min(most, model.config.max_len - 1)):
        with torch.inference_mode():
            logits = model.decode(target, memory, memory_mask=memory_mask)[0, -1]  # (vocab,)
        written = Written(int(logits.argmax()), logits)
        yield written
        if written.token_id == eos_id:
            return
        target = torch.cat((target, torch.tensor([[written.token_id]], device=target.device)), 1)


def sample(
    model: Gpt, token_ids: Tensor, *, most: int, temperature: float = 1.0, generator: torch.Generator | None = None
) -> Iterator[Written]:
    """Write on from a beginning, each token drawn from softmax(logits / temperature).

    Shapes:
        token_ids: (1, pos); of a longer beginning, the model reads its last max_len tokens

    Args:
        most: tokens to write.
        temperature: above 0; towards 0 the likeliest token wins, above 1 rare ones gain.
        generator: where the randomness comes from.

    Raises:
        ValueError: the beginning is empty, or temperature is not above 0.
    """
    if not token_ids.numel():
        raise ValueError("token_ids=[] must hold at least one token to write on from")
    if not temperature > 0:
        raise ValueError(f"temperature={temperature} must be more than 0")
    for _ in range(most):
        with torch.inference_mode():
            logits = model(token_ids[:, -model.config.max_len :])[0, -1]  # (vocab,)
        chances = (logits.float() / temperature).softmax(-1)
        token = torch.multinomial(chances, 1, generator=generator)  # (1,)
        yield Written(int(token), logits)
        token_ids = torch.cat((token_ids, token[None]), 1)
