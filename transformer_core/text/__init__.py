"""Text: from strings to ids, and to the batches that a model reads; the names below are in reading order.

Source: Sennrich et al. 2016 and Devlin et al. 2019, section 3.
"""

# ruff: noqa: I001, RUF022  the order is the reading order

from transformer_core.text.special import PAD, UNK, CLS, SEP, MASK, BOS, EOS, SPECIAL_TOKENS
from transformer_core.text.special import PAD_ID, UNK_ID, CLS_ID, SEP_ID, MASK_ID, BOS_ID, EOS_ID
from transformer_core.text.characters import visible
from transformer_core.text.encoding import Encoding
from transformer_core.text.loading import TokenizerError
from transformer_core.text.tokenizer import KINDS, Tokenizer
from transformer_core.text.batch import Batch, make_batch

__all__ = [
    "PAD",
    "UNK",
    "CLS",
    "SEP",
    "MASK",
    "BOS",
    "EOS",
    "SPECIAL_TOKENS",
    "PAD_ID",
    "UNK_ID",
    "CLS_ID",
    "SEP_ID",
    "MASK_ID",
    "BOS_ID",
    "EOS_ID",
    "visible",
    "Encoding",
    "TokenizerError",
    "KINDS",
    "Tokenizer",
    "Batch",
    "make_batch",
]
