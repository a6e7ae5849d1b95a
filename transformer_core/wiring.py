"""Wiring: which recorded tensor flows into which part of a stack of blocks, for any order of the normalisations.

Vaswani et al. 2017, figure 1; Xiong et al. 2020, figure 1.
"""

from dataclasses import dataclass

from transformer_core.config import ModelConfig

SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")


@dataclass(frozen=True)
class Wiring:
    """Names of the tensors between the parts of a model's blocks.

    A scope is a sublayer's, such as ``encoder.layer0.self_attention``.

    Args:
        crossing: the blocks have cross-attention.
    """

    config: ModelConfig
    crossing: bool = False

    def entering(self, stack: str) -> str:
        """Return the name of what the embedding hands to the first block."""
        if self.config.embedding_width is not None:
            return f"{stack}.embedding.projected_embedding"
        return f"{stack}.embedding.{'norm.normalized' if self.config.embedding_norm else 'residual'}"

    def leaving(self, stack: str) -> str:
        """Return the name of a stack's output."""
        post = self.config.norm_order == "post"
        return f"{stack}.layer{self.config.n_layers - 1}.residual" if post else f"{stack}.final_norm.normalized"

    def onto(self, scope: str) -> str:
        """Return the name of what a sublayer's output is added to."""
        block, _, sublayer = scope.rpartition(".")
        stack, _, layer = block.rpartition(".layer")
        before = [name for name in SUBLAYERS[: SUBLAYERS.index(sublayer)] if self.crossing or name != "cross_attention"]
        if before:
            return self.after(f"{block}.{before[-1]}")
        return f"{stack}.layer{int(layer) - 1}.residual" if int(layer) else self.entering(stack)

    def reads(self, scope: str) -> str:
        """Return the name of the stream that a sublayer, or the normalisation before it, reads."""
        block = scope.rpartition(".")[0]
        return self.onto(f"{block}.self_attention" if self.config.parallel else scope)

    def into(self, scope: str) -> str:
        """Return the name of a sublayer's input: the stream, normalised first where the config says so."""
        bare = scope.endswith("layer0.self_attention") and not self.config.first_attention_norm
        return f"{scope}.norm.normalized" if self.config.norms_input and not bare else self.reads(scope)

    def adds(self, scope: str) -> str:
        """Return the name of what a sublayer adds: its output, normalised first where the config says so."""
        return f"{scope}.{'output_norm.normalized' if self.config.norms_output else 'output'}"

    def after(self, scope: str) -> str:
        """Return the name of the stream after a sublayer."""
        return f"{scope}.{'norm.normalized' if self.config.norm_order == 'post' else 'residual'}"

    def before_turning(self, scope: str, role: str) -> str:
        """Return the name of the query or key (`role`) of an attention that a rotary position turns, if one does."""
        return f"{scope}.{'' if self.config.query_key_norm == 'none' else 'normalized_'}{role}"

    def scored(self, scope: str, role: str) -> str:
        """Return the name of the query or key that an attention scores."""
        turned = self.config.positions == "rotary" and not scope.endswith("cross_attention")
        return f"{scope}.rotated_{role}" if turned else self.before_turning(scope, role)

    def norm(self, scope: str) -> str:
        """Return the scope of the normalisation of a sublayer: before it, else after the sum, else of its output."""
        return f"{scope}.{'output_norm' if self.config.norm_order == 'output' else 'norm'}"

    def normalises(self, scope: str) -> str:
        """Return the name of what a normalisation of a block or a stack reads, by its own scope."""
        owner, _, kind = scope.rpartition(".")
        if kind == "final_norm":
            return f"{owner}.layer{self.config.n_layers - 1}.residual"
        if kind == "output_norm":
            return f"{owner}.output"
        if owner.endswith("embedding") or self.config.norm_order == "post":
            return f"{owner}.residual"
        return self.reads(owner)
