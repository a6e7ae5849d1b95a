"""RECURRENT_SITES: the observable tensors that only recurrent models have.

Cho et al. 2014; Hochreiter and Schmidhuber 1997; Bahdanau et al. 2015. Read next: sites.py.
"""

from transformer_core.site import Site

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
        "what the decoder is told of the source before each word",
    ),
    "readout": Site(
        ("batch", "pos", "d_model"),
        r"t_i=\tanh(W\,[s_i;c_i;Ey_{i-1}]+b)",
        f"{BAHDANAU}, appendix A.2.2, with a tanh for its maxout",
        "state, context and word before, made ready for the matrix of words",
    ),
}
