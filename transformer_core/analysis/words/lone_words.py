"""Lone words: how far each token, read as a text of one word, moves a classifier's verdict.

Read next: cooccurrence.py.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_core.analysis.words.vocabulary import template_of
from transformer_core.bundle import Bundle

AT_ONCE = 2048


@torch.inference_mode()
def lone_verdicts(bundle: Bundle, token_ids: Sequence[int], *, label: int = -1) -> Tensor:
    """Return the logit of one class above the mean of the others, for each token as a whole text, in nats.

    With two classes this is the log of the odds: 0 is undecided.

    Shapes:
        returns: (token,)

    Args:
        bundle: of a classifier.
        token_ids: the tokens.
        label: the class.

    Raises:
        ValueError: the bundle is of another kind.
    """
    if bundle.kind != "classifier":
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be a classifier")
    before, after = template_of(bundle.tokenizer)
    device = next(bundle.model.parameters()).device
    rows = torch.tensor([[*before, id_, *after] for id_ in token_ids], device=device)  # (token, pos)
    logits = torch.cat([bundle.model(part) for part in rows.split(AT_ONCE)]).float().cpu()  # (token, class)
    own = logits[:, label]
    return own - (logits.sum(1) - own) / max(logits.shape[1] - 1, 1)
