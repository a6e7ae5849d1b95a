"""One forward pass with everything it recorded, and which recorded tensor flows into which part.

Vaswani et al. 2017, figure 1.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from transformer_core.analysis.gradients.loss import TextLoss
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.kept_passes import kept_pass
from transformer_core.layers.masks import HIDDEN, encoder_mask, window_mask
from transformer_core.models import Gpt, Translation
from transformer_core.models.recurrent import RecurrentLm, Seq2Seq
from transformer_core.probe import Edit, capture
from transformer_core.text import Encoding
from transformer_core.trace import Trace, matches
from transformer_core.wiring import Wiring

STACKS = ("encoder", "decoder", "recurrent")


@dataclass(frozen=True, eq=False)
class Pass:
    """A model, its input, and everything it recorded.

    Args:
        ids: what each stack read, (batch, pos) by its name.
        segment_ids: (batch, pos), where any were given.
        edited: the patterns of the names at which the pass was edited.
        loss: whose gradients the trace has; None where none were asked for.
    """

    model: nn.Module
    ids: Mapping[str, Tensor]
    trace: Trace
    segment_ids: Tensor | None = None
    edited: tuple[str, ...] = field(default=())
    loss: TextLoss | None = None

    @property
    def config(self) -> ModelConfig:
        """The model's configuration."""
        return self.model.config  # type: ignore[return-value]

    def __getitem__(self, name: str) -> Tensor:
        """Return a recorded tensor in float64, ids as they are; on the processor."""
        tensor = self.trace[name].cpu()
        return tensor.double() if tensor.is_floating_point() else tensor

    def is_edited(self, name: str) -> bool:
        """Return whether an edit replaced this tensor."""
        return bool(self.edited) and matches(name, self.edited)

    def module(self, scope: str) -> Any:
        """Return the part of the model that a scope of the trace names."""
        path = re.sub(r"(attention|feed_forward)\.(output_)?norm$", r"\1_norm.\2norm", scope)
        path = re.sub(r"\blayer(\d+)", r"stack.layers.\1", path).replace("final_norm", "stack.final_norm")
        return self.model.get_submodule(path)

    def token_matrix(self, scope: str) -> Tensor:
        """Return the matrix that the embedding of this scope looks its ids up in: (vocab, d_model)."""
        shared = isinstance(self.model, Seq2Seq | RecurrentLm)
        return self.module("embedding" if shared else f"{scope}.token").weight

    def wiring(self, scope: str) -> Wiring:
        """Return which recorded tensor flows into which part of the stack that a scope lies in."""
        return Wiring(self.config, isinstance(self.model, Translation) and scope.startswith("decoder"))

    def may_attend(self, scope: str) -> tuple[Tensor | None, float]:
        """Return which query may attend to which key, and the score of what it may not.

        Padding is hidden, in an encoder as its config has it, and in a decoder later positions.

        Shapes:
            returns: broadcastable to (batch, head, query_pos, key_pos); None where nothing is hidden
        """
        stack = scope.partition(".")[0]
        cross = scope.endswith(("cross_attention", "alignment"))
        ids = self.ids["encoder" if cross else stack]
        allowed, score = (ids != self.config.padding)[:, None, None, :], HIDDEN
        if stack == "encoder" and not cross:
            own, score = encoder_mask(ids, self.config)
            allowed = allowed if own is None else own
        if stack == "decoder" and not cross and self.config.causal:
            place = torch.arange(ids.shape[1], device=ids.device)
            allowed = allowed & (place[:, None] >= place)
        if not cross and (window := self.module(scope).window) is not None:
            allowed = allowed & window_mask(ids.shape[1], None, window, device=ids.device)
        return (None if bool(allowed.all()) else allowed), score


def pass_through(
    model: nn.Module,
    *inputs: Tensor,
    segment_ids: Tensor | None = None,
    edits: Mapping[str, Edit] | None = None,
    loss: TextLoss | None = None,
) -> Pass:
    """Run any model that reads ids and record everything, or return what the same pass recorded the last time.

    Args:
        inputs: ids (batch, pos); for a translation, those of the source and of the target.
        segment_ids: (batch, pos), for a model that has segments.
        edits: as in capture.
        loss: record the gradient of every tensor, too.

    Raises:
        ValueError: as capture.
    """
    options: dict[str, Any] = {} if segment_ids is None else {"segment_ids": segment_ids}

    def made() -> Trace:
        return capture(model, *inputs, edits=edits, backward=loss, **options)[1]

    read = tuple(str(ids.tolist()) for ids in (*inputs, *options.values()))
    trace = made() if edits else kept_pass(model, ("pass", read, loss and loss.key), made)
    ids = dict(zip([name for name in STACKS if hasattr(model, name)], (each.cpu() for each in inputs), strict=True))
    return Pass(model, ids, trace, segment_ids, tuple(edits or ()), loss)


def read_through(
    bundle: Bundle,
    encoding: Encoding,
    *,
    target_ids: Sequence[int] | None = None,
    edits: Mapping[str, Edit] | None = None,
    loss: TextLoss | None = None,
) -> Pass:
    """Run a bundle's model over one text and record everything.

    Args:
        target_ids: what the decoder of a model that translates reads, the start first.
        edits, loss: as in pass_through.

    Raises:
        ValueError: the bundle translates and there is no target, or the other way round; or as capture.
    """
    model = bundle.model
    translates = isinstance(model, Translation | Seq2Seq)
    if translates and not target_ids:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}, which reads two texts; it must read one")
    if target_ids and not translates:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}, which reads no target_ids")
    device = next(model.parameters()).device
    ids = torch.tensor([encoding.ids], device=device)  # (batch, pos)
    if target_ids:
        return pass_through(model, ids, torch.tensor([list(target_ids)], device=device), edits=edits, loss=loss)
    segmented = not isinstance(model, Gpt | RecurrentLm) and bundle.config.n_segments > 0
    segment_ids = torch.tensor([encoding.segment_ids], device=device) if segmented else None
    return pass_through(model, ids, segment_ids=segment_ids, edits=edits, loss=loss)
