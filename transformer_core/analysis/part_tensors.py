"""The tensor at each part of a model for one text: what a small picture of the part shows."""

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.outcome import one_text
from transformer_core.analysis.parts import reading_part
from transformer_core.probe import Probe
from transformer_core.prompt import Prompt

LAYER = 0
SITES = {  # of the stack that reads the text
    "tokens": "embedding.token_ids",
    "embedding": "embedding.token_embedding",
    "positions": "embedding.position_embedding",
    "attention": f"layer{LAYER}.self_attention.weights",
    "feed_forward": f"layer{LAYER}.feed_forward.activation",
}
POOLED = "cls_embedding"


def part_tensors(*, prompt: Prompt) -> dict[str, np.ndarray]:
    """Read a text and return the tensor at each part that the model has.

    Shapes:
        tokens: (pos,), ids; embedding, positions: (pos, d_model); attention: (head, query_pos, key_pos) and
        feed_forward: (pos, d_ff), both of layer 0; pooled: (d_model,), what stands for the sentence; word_scores:
        (pos, vocab), probabilities; outcome: (outcome,), the probability of each class or token (see outcome.py)

    Args:
        prompt: to a model of a kind that reads one text, or a translation, of which the encoder is read.

    Raises:
        ValueError: the bundle is of another kind.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    ids, stack, part_alone = one_text(bundle, encoding), reading_part(bundle.model), bundle.kind == "translation"
    model = stack if part_alone else bundle.model
    sites = {part: site if part_alone else bundle.reader.site(site) for part, site in SITES.items()}
    probe = Probe((*sites.values(), POOLED))  # it takes what there is
    with torch.inference_mode():
        output = model(ids, probe=probe)
    trace = probe.trace
    there = {part: trace[site] for part, site in sites.items() if site in trace}
    found = {part: _array(tensor if part == "positions" else tensor[0]) for part, tensor in there.items()}
    if POOLED in trace:
        found["pooled"] = _array(trace[POOLED][0])
    if bundle.reader.asks in ("next", "masked"):
        found["word_scores"] = _array(bundle.reader.scores(output)[0].float().softmax(-1))
    outcome = bundle.reader.outcome(encoding)
    if outcome is not None:
        found["outcome"] = _array(outcome.logits(output)[0].float().softmax(-1))
    return found


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy()
