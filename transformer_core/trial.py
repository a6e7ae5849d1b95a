"""The trial of a model that somebody brings: its tokenizer and its numbers, before anybody's text reaches it."""

import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.probe import Probe
from transformer_core.text import TokenizerError
from transformer_core.text.trial import try_out
from transformer_core.untrusted.bundle_files import CONFIG, TOKENIZER, BundleError

TEXT = "In 1999 it was not good at all, she said: “Not once!” 你好，世界。"
FEWEST = 8  # tokens: a word between a text's marks, and one that is written after it
MOST_TRIED = 32
GREATEST_WEIGHT = 1e6  # trained ones are below a thousand
GREATEST = 1e12  # of what a pass computes; its square is still a float32


def try_model(bundle: Bundle) -> None:
    """Try a model's tokenizer in a process with limits, then the model itself.

    Raises:
        BundleError: one of them fails on a text; the tokenizer takes too much time or memory; or as try_numbers.
    """
    try:
        for tokenizer in filter(None, (bundle.tokenizer, bundle.target_tokenizer)):
            try_out(tokenizer)
    except TokenizerError as error:
        raise BundleError(f"{bundle.name}/{TOKENIZER}: {error}") from None
    try_numbers(bundle)


@torch.inference_mode()
def try_numbers(bundle: Bundle) -> None:
    """Look at a model's weights, and at every number that it computes of one text.

    Raises:
        BundleError: it reads fewer than FEWEST tokens, fails, has weights beyond GREATEST_WEIGHT, or computes what is
            not finite or beyond GREATEST.
    """
    most = bundle.config.max_len
    if most < FEWEST:
        raise BundleError(f"{bundle.name}/{CONFIG} has max_len={most}; a page shows at least {FEWEST} tokens")
    for name, weight in bundle.model.named_parameters():
        _require(bundle, f"has {name}", weight, GREATEST_WEIGHT)
    ids = bundle.tokenizer.encode(TEXT, max_len=min(most, MOST_TRIED)).ids or (0,)
    source = torch.tensor([ids], device=bundle.device)  # (batch, pos)
    probe = Probe()
    try:
        bundle.model(*[source] * (2 if bundle.reader.asks == "words" else 1), probe=probe)
    except (ValueError, RuntimeError, IndexError) as error:
        raise BundleError(f"{bundle.name} fails on a text of {len(ids)} tokens: {error!s:.200}") from None
    for name, tensor in probe.trace.items():
        if name.endswith("masked_scores"):
            tensor = tensor.masked_fill(tensor.isneginf(), 0)
        _require(bundle, f"computes {name}", tensor, GREATEST)


def _require(bundle: Bundle, what: str, tensor: Tensor, most: float) -> None:
    low, high = tensor.aminmax()
    if not -most <= low <= high <= most:  # NaN neither
        raise BundleError(f"{bundle.name} {what} from {low:.3g} to {high:.3g}; pages show at most {most:.0e}")
