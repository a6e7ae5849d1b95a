"""SITES: the one table of every observable tensor: axes, formula with its source, meaning, colour scale.

Captions, axis labels and colour scales come from here, so that a page and the model cannot disagree.
Read next: transformer_core/trace.py
"""

from dataclasses import dataclass
from typing import Literal

ScaleType = Literal["probability", "signed", "count", "id"]


@dataclass(frozen=True)
class Site:
    """One kind of observable tensor.

    Args:
        axes: the name of each axis, in order.
        formula: LaTeX.
        source: paper and equation or section of the formula.
        meaning: one line.
        scale: how a page may colour it.
        lens_name: the name TransformerLens gives the same tensor, or "" where it has none.
    """

    axes: tuple[str, ...]
    formula: str
    source: str
    meaning: str
    scale: ScaleType = "signed"
    lens_name: str = ""


HIDDEN = ("batch", "pos", "d_hidden")
MEMORY = ("batch", "pos", "d_memory")

CHO = "Cho et al. 2014"
HOCHREITER = "Hochreiter and Schmidhuber 1997"
BAHDANAU = "Bahdanau et al. 2015"

RECURRENT_SITES: dict[str, Site] = {
    "reset_gate": Site(
        HIDDEN,
        r"r_t=\sigma(W_rx_t+b_r+U_rh_{t-1}+c_r)",
        f"{CHO}, eq. 5",
        "how much of the old state the candidate may see",
        "probability",
    ),
    "update_gate": Site(
        HIDDEN,
        r"z_t=\sigma(W_zx_t+b_z+U_zh_{t-1}+c_z)",
        f"{CHO}, eq. 6",
        "the share of the old state that is kept",
        "probability",
    ),
    "candidate": Site(
        HIDDEN,
        r"\text{GRU: }n_t=\tanh(W_nx_t+b_n+r_t\odot(U_nh_{t-1}+c_n));\quad "
        r"\text{LSTM: }g_t=\tanh(W_gx_t+b_g+U_gh_{t-1}+c_g)",
        f"{CHO}, eq. 8 (with r after the product); {HOCHREITER}, section 4",
        "what this position would write into the state",
    ),
    "input_gate": Site(
        HIDDEN,
        r"i_t=\sigma(W_ix_t+b_i+U_ih_{t-1}+c_i)",
        f"{HOCHREITER}, section 4",
        "the share of the candidate that is written into the cell",
        "probability",
    ),
    "forget_gate": Site(
        HIDDEN,
        r"f_t=\sigma(W_fx_t+b_f+U_fh_{t-1}+c_f)",
        "Gers et al. 2000, section 3",
        "the share of the old cell that is kept",
        "probability",
    ),
    "output_gate": Site(
        HIDDEN,
        r"o_t=\sigma(W_ox_t+b_o+U_oh_{t-1}+c_o)",
        f"{HOCHREITER}, section 4",
        "the share of the cell that is shown",
        "probability",
    ),
    "cell": Site(
        HIDDEN,
        r"c_t=f_t\odot c_{t-1}+i_t\odot g_t",
        f"{HOCHREITER}, section 4, with the forget gate of Gers et al. 2000",
        "the LSTM's memory, added to and taken from at each position",
    ),
    "hidden": Site(
        HIDDEN,
        r"\text{GRU: }h_t=(1-z_t)\odot n_t+z_t\odot h_{t-1};\quad \text{LSTM: }h_t=o_t\odot\tanh c_t;\quad "
        r"\text{plain: }h_t=\tanh(Wx_t+b+Uh_{t-1}+c)",
        f"{CHO}, eq. 7; {HOCHREITER}, section 4; Elman 1990",
        "the state that is handed to the next position",
    ),
    "annotations": Site(
        MEMORY,
        r"h_j=[\overrightarrow{h}_j;\overleftarrow{h}_j]",
        f"{BAHDANAU}, section 3.2",
        "what the encoder says of each source position, both directions side by side",
    ),
    "summary": Site(
        ("batch", "d_memory"),
        r"[\overrightarrow{h}_T;\overleftarrow{h}_1]",
        f"{CHO}, section 2.2",
        "the ends of both directions, one vector for the whole sentence",
    ),
    "start": Site(
        ("batch", "d_hidden"),
        r"s_0=\tanh(W\,[\overrightarrow{h}_T;\overleftarrow{h}_1]+b)",
        f"{BAHDANAU}, appendix A.2.2, which takes the backward end alone",
        "the decoder's state before the first word",
    ),
    "context": Site(
        MEMORY,
        r"c_i=\sum_j\alpha_{ij}h_j;\quad \text{without attention, the summary}",
        f"{BAHDANAU}, eq. 5",
        "what the decoder gets of the source before each word",
    ),
    "readout": Site(
        ("batch", "pos", "d_model"),
        r"t_i=\tanh(W\,[s_i;c_i;Ey_{i-1}]+b)",
        f"{BAHDANAU}, appendix A.2.2, with a tanh for its maxout",
        "state, context and word before, made ready for the matrix of words",
    ),
}


STREAM = ("batch", "pos", "d_model")
QUERY_HEADS = ("batch", "head", "query_pos", "d_head")
KEY_HEADS = ("batch", "kv_head", "key_pos", "d_head")
PAIRS = ("batch", "head", "query_pos", "key_pos")

VASWANI = "Vaswani et al. 2017"
BERT = "Devlin et al. 2019"
BA = "Ba et al. 2016, eq. 4"
BA_IN_TORCH = f"{BA}, without the epsilon that torch adds"
ZHANG = "Zhang and Sennrich 2019"
SHAZEER = "Shazeer 2020"
EXPERTS = ("batch", "pos", "expert")
SPARSE = "Shazeer et al. 2017"

SITES: dict[str, Site] = {
    "token_ids": Site(("batch", "pos"), r"t_i", f"{VASWANI}, section 3.4", "the vocabulary ids read", "id"),
    "segment_ids": Site(("batch", "pos"), r"s_i", f"{BERT}, figure 2", "which sentence a token belongs to", "id"),
    "token_embedding": Site(
        STREAM, r"E_{t_i}", f"{VASWANI}, section 3.4", "the row of the embedding matrix of each token"
    ),
    "scaled_embedding": Site(
        STREAM,
        r"\sqrt{d_{model}}\,E_{t_i}",
        f"{VASWANI}, section 3.4",
        "the row, scaled so that positions do not drown it",
    ),
    "one_hot": Site(
        ("batch", "pos", "vocab"),
        r"x_{i,j}=[t_i=j]",
        "Mikolov et al. 2010, section 2",
        "1 at the place of the id, 0 elsewhere",
        "probability",
    ),
    "segment_embedding": Site(STREAM, r"S_{s_i}", f"{BERT}, figure 2", "the row of the segment matrix of each token"),
    "position_embedding": Site(
        ("pos", "d_model"),
        r"P_{pos};\quad \text{sinusoidal: } "
        r"PE_{(pos,2i)}=\sin\frac{pos}{10000^{2i/d_{model}}},\; PE_{(pos,2i+1)}=\cos\frac{pos}{10000^{2i/d_{model}}}",
        f"{VASWANI}, section 3.5",
        "the vector of each position, computed or learned",
        lens_name="hook_pos_embed",
    ),
    "projected_embedding": Site(
        STREAM,
        r"eW+b",
        "Lan et al. 2020, section 3.1",
        "the summed embedding, mapped from its own width to the stream's",
    ),
    "residual": Site(
        STREAM,
        r"x+\mathrm{Sublayer}(x);\quad \text{pre-norm: } x+\mathrm{Sublayer}(\mathrm{LN}(x))",
        f"{VASWANI}, section 3.1",
        "the residual stream after the part that names it",
        lens_name="blocks.{layer}.hook_resid_post",
    ),
    "mean": Site(("batch", "pos", "one"), r"\mu=\tfrac1d\sum_k x_k", BA, "the mean that a normalisation takes away"),
    "inverse_deviation": Site(
        ("batch", "pos", "one"),
        r"1/\sqrt{\sigma^2+\epsilon}",
        BA_IN_TORCH,
        "what a normalisation multiplies by",
    ),
    "inverse_root_mean_square": Site(
        ("batch", "pos", "one"),
        r"1/\sqrt{\tfrac1d\sum_k x_k^2+\epsilon}",
        f"{ZHANG}, eq. 4, without the epsilon",
        "what a root mean square normalisation multiplies by",
    ),
    "normalized": Site(
        STREAM,
        r"g\odot\frac{x-\mu}{\sqrt{\sigma^2+\epsilon}}+b;\quad "
        r"\text{root mean square: } g\odot\frac{x}{\sqrt{\tfrac1d\sum_k x_k^2+\epsilon}}",
        f"{BA_IN_TORCH}; {ZHANG}, eq. 4",
        "the stream after normalisation",
        lens_name="blocks.{layer}.ln1.hook_normalized",
    ),
    "query": Site(
        QUERY_HEADS,
        r"Q=XW^Q+b^Q",
        f"{VASWANI}, section 3.2.2",
        "what each position looks for",
        lens_name="blocks.{layer}.attn.hook_q",
    ),
    "key": Site(
        KEY_HEADS,
        r"K=XW^K+b^K",
        f"{VASWANI}, section 3.2.2",
        "what each position offers to be found by",
        lens_name="blocks.{layer}.attn.hook_k",
    ),
    "value": Site(
        KEY_HEADS,
        r"V=XW^V+b^V",
        f"{VASWANI}, section 3.2.2",
        "what each position hands over when attended to",
        lens_name="blocks.{layer}.attn.hook_v",
    ),
    "normalized_query": Site(
        QUERY_HEADS,
        r"\mathrm{RMSNorm}(q)",
        "Henry et al. 2020, section 3, with the root mean square",
        "the query, brought to one length before it turns",
    ),
    "normalized_key": Site(
        KEY_HEADS,
        r"\mathrm{RMSNorm}(k)",
        "Henry et al. 2020, section 3, with the root mean square",
        "the key, brought to one length before it turns",
    ),
    "rotated_query": Site(
        QUERY_HEADS,
        r"R_{pos}\,q",
        "Su et al. 2021, eq. 14",
        "the query turned by its position's angles",
        lens_name="blocks.{layer}.attn.hook_rot_q",
    ),
    "rotated_key": Site(
        KEY_HEADS,
        r"R_{pos}\,k",
        "Su et al. 2021, eq. 14",
        "the key turned by its position's angles",
        lens_name="blocks.{layer}.attn.hook_rot_k",
    ),
    "position_bias": Site(
        ("head", "query_pos", "key_pos"),
        r"-m_h\,|i-j|;\quad \text{relative: } B_{\beta(j-i),\,h}",
        "Press et al. 2022, section 3; relative: Raffel et al. 2020, section 2.1",
        "what distance adds to the scores",
    ),
    "uncapped_scores": Site(
        PAIRS,
        r"\frac{QK^\top}{\sqrt{d_k}}",
        f"{VASWANI}, eq. 1",
        "how well each query fits each key, before the scores are capped",
    ),
    "scores": Site(
        PAIRS,
        r"\frac{QK^\top}{\sqrt{d_k}};\quad \text{capped: } c\tanh(s/c)",
        f"{VASWANI}, eq. 1; capped: Gemma Team 2024, section 2",
        "how well each query fits each key, before the mask",
    ),
    "masked_scores": Site(
        PAIRS,
        r"S_{ij}\ \mathrm{where}\ M_{ij},\ \mathrm{else}\ -\infty",
        f"{VASWANI}, section 3.2.3",
        "the scores with hidden pairs at minus infinity",
        lens_name="blocks.{layer}.attn.hook_attn_scores",
    ),
    "weights": Site(
        PAIRS,
        r"\mathrm{softmax}_j(S_{ij})",
        f"{VASWANI}, eq. 1",
        "the share of each key in a query's mixture; a wholly masked row is 0",
        "probability",
        "blocks.{layer}.attn.hook_pattern",
    ),
    "heads": Site(
        QUERY_HEADS,
        r"AV",
        f"{VASWANI}, eq. 1",
        "each head's mixture of values",
        lens_name="blocks.{layer}.attn.hook_z",
    ),
    "output": Site(
        STREAM,
        r"\mathrm{Sublayer}(x)",
        f"{VASWANI}, sections 3.2.2 and 3.3",
        "what a sublayer adds to the residual stream",
        lens_name="blocks.{layer}.hook_attn_out, blocks.{layer}.hook_mlp_out",
    ),
    "pre_activation": Site(
        ("batch", "pos", "d_ff"),
        r"xW_1+b_1;\quad \text{gated: } xW_g",
        f"{VASWANI}, eq. 2; gated: {SHAZEER}, eq. 6",
        "the feed-forward layer's inside before its activation",
        lens_name="blocks.{layer}.mlp.hook_pre",
    ),
    "gate": Site(
        ("batch", "pos", "d_ff"),
        r"\phi(xW_g)",
        f"{SHAZEER}, eq. 6",
        "how far each number of a gated inside is let through",
    ),
    "up": Site(
        ("batch", "pos", "d_ff"),
        r"xW_1",
        f"{SHAZEER}, eq. 6",
        "what a gate lets through",
        lens_name="blocks.{layer}.mlp.hook_pre_linear",
    ),
    "activation": Site(
        ("batch", "pos", "d_ff"),
        r"\phi(xW_1+b_1);\quad \text{gated: } \phi(xW_g)\odot xW_1",
        f"{VASWANI}, eq. 2; gated: {SHAZEER}, eq. 6",
        "the feed-forward layer's inside after its activation",
        lens_name="blocks.{layer}.mlp.hook_post",
    ),
    "router_scores": Site(
        EXPERTS, r"xW_r", f"{SPARSE}, eq. 4, without its noise", "how well each expert of a mixture fits each token"
    ),
    "router_probabilities": Site(
        EXPERTS,
        r"p_e=\mathrm{softmax}_e(xW_r)",
        "Fedus et al. 2022, eq. 1",
        "the share of each expert, before the largest are chosen",
        "probability",
    ),
    "expert_weights": Site(
        EXPERTS,
        r"g_e=p_e\ \text{of the largest } k,\ \text{else } 0;\quad \text{summing to 1: } g_e/\sum_f g_f",
        "Fedus et al. 2022, eq. 2; summing to 1: Jiang et al. 2024, section 2.1",
        "what each chosen expert's output is multiplied by; 0: it does not read the token",
        "probability",
    ),
    "expert_outputs": Site(
        ("batch", "each_expert", "pos", "d_model"),
        r"E_e(x)\ \text{where } g_e\neq0,\ \text{else } 0",
        f"{SPARSE}, eq. 1",
        "what each expert makes of the tokens that it was chosen for; 0 for all others",
    ),
    "shared_gate": Site(
        ("batch", "pos", "one"),
        r"\sigma(xw)",
        "Qwen Team 2024, released code",
        "how far the shared expert's output is let through",
        "probability",
    ),
    "shared_output": Site(
        STREAM,
        r"E_s(x);\quad \text{gated: } \sigma(xw)\,E_s(x)",
        "Dai et al. 2024, section 3.2; gated: Qwen Team 2024, released code",
        "what the expert that reads every token adds to the mixture",
    ),
    "memory": Site(STREAM, r"\mathrm{Encoder}(x)", f"{VASWANI}, section 3.1", "what the encoder hands to the decoder"),
    "cls_embedding": Site(
        ("batch", "d_model"), r"x_0", f"{BERT}, section 3", "the vector of [CLS] that stands for the sentence"
    ),
    "mean_embedding": Site(
        ("batch", "d_model"),
        r"\frac{\sum_i m_i x_i}{\sum_i m_i}",
        "Reimers and Gurevych 2019, section 3",
        "the mean over real tokens that stands for the sentence",
    ),
    "pooled": Site(
        ("batch", "d_model"),
        r"\phi(sW+b);\quad \text{BERT: } \phi=\tanh",
        f"{BERT}, released code",
        "the sentence's vector, mapped once more: what the verdict rests on",
    ),
    "transformed": Site(
        STREAM,
        r"\mathrm{Norm}(\phi(xW+b));\quad \text{BERT: } \phi=\mathrm{GELU}",
        f"{BERT}, released code",
        "the stream made ready for the masked-word matrix",
    ),
    "logits": Site(
        ("batch", "pos", "vocab"),
        r"xE^\top+b;\quad \text{T5: } \frac{x}{\sqrt{d_{model}}}E^\top",
        f"{VASWANI}, section 3.4; T5: Raffel et al. 2020, released code",
        "a score for every word of the vocabulary",
        lens_name="unembed.hook_out",
    ),
    "class_logits": Site(
        ("batch", "class"), r"sW^\top+b", f"{BERT}, section 4.1, which has no b", "a score for every class"
    ),
    "token_logits": Site(
        ("batch", "pos", "class"), r"x_iW^\top+b", f"{BERT}, section 5.3", "a score for every label at every token"
    ),
    "span_logits": Site(
        ("batch", "pos", "bound"),
        r"(S\cdot x_i+b_S,\;E\cdot x_i+b_E)",
        f"{BERT}, section 4.2, which has no b",
        "scores of each token as the start and as the end of an answer",
    ),
    **RECURRENT_SITES,
}


def site_of(name: str) -> Site:
    """Return the row of SITES for a full name such as ``encoder.layer0.self_attention.weights``.

    Raises:
        KeyError: no such leaf.
    """
    leaf = name.rpartition(".")[2]
    if leaf not in SITES:
        raise KeyError(f"{name!r} ends in {leaf!r}, which is not in SITES: {', '.join(SITES)}")
    return SITES[leaf]
