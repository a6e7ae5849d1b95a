"""The same shapes written by others: torch.nn, transformers, TransformerLens; random weights, evaluation mode."""

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

from transformer_core.config import ModelConfig


class TorchStack(nn.Module):
    """Embeddings and torch.nn.TransformerEncoder, with an output matrix where the config's system has one."""

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            config.d_model,
            config.n_heads,
            config.d_ff,
            config.dropout,
            activation=nn.functional.gelu,
            batch_first=True,
            norm_first=config.norm_order == "pre",
        )
        final = nn.LayerNorm(config.d_model) if config.norm_order == "pre" else None
        self.token = nn.Embedding(config.vocab_size, config.d_model)
        self.position = nn.Embedding(config.max_len, config.d_model)
        self.stack = nn.TransformerEncoder(layer, config.n_layers, norm=final, enable_nested_tensor=False)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.causal = causal

    def forward(self, token_ids: Tensor) -> Tensor:
        """Score (batch, pos): (batch, pos, vocab)."""
        length = token_ids.shape[1]
        x = self.token(token_ids) + self.position.weight[:length]
        mask = nn.Transformer.generate_square_subsequent_mask(length) if self.causal else None
        return self.output(self.stack(x, mask=mask, is_causal=self.causal))


def hugging_face(config: ModelConfig, *, causal: bool, attention: str) -> nn.Module:
    """Return GPT-2 or BERT of the same shape, with attention "sdpa" or "eager"."""
    if causal:
        peer = GPT2Config(
            vocab_size=config.vocab_size,
            n_positions=config.max_len,
            n_embd=config.d_model,
            n_layer=config.n_layers,
            n_head=config.n_heads,
            n_inner=config.d_ff,
            use_cache=False,
            bos_token_id=0,
            eos_token_id=0,
        )
        return GPT2LMHeadModel._from_config(peer, attn_implementation=attention).eval()
    peer = BertConfig(
        vocab_size=config.vocab_size,
        max_position_embeddings=config.max_len,
        hidden_size=config.d_model,
        num_hidden_layers=config.n_layers,
        num_attention_heads=config.n_heads,
        intermediate_size=config.d_ff,
    )
    return BertForMaskedLM._from_config(peer, attn_implementation=attention).eval()


def transformer_lens(config: ModelConfig, *, causal: bool) -> nn.Module:
    """Return a HookedTransformer of the same shape, with the activations that GPT-2 has."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    peer = HookedTransformerConfig(
        n_layers=config.n_layers,
        d_model=config.d_model,
        n_ctx=config.max_len,
        d_head=config.d_model // config.n_heads,
        n_heads=config.n_heads,
        d_mlp=config.d_ff,
        d_vocab=config.vocab_size,
        act_fn="gelu_new",
        normalization_type="LN",
        attention_dir="causal" if causal else "bidirectional",
        device="cpu",
    )
    return HookedTransformer(peer).eval().requires_grad_(False)


def random_ids(config: ModelConfig, length: int) -> Tensor:
    """Return one sentence (1, length) of random ids."""
    return torch.randint(1, config.vocab_size, (1, length), generator=torch.Generator().manual_seed(0))
