"""Whole models built from the layers, one per file.

Vaswani et al. 2017; Devlin et al. 2019; Radford et al. 2019.
"""

from transformer_core.models.bert import Bert, BertOutput
from transformer_core.models.classifier import Classifier
from transformer_core.models.decoder import Decoder, MaskedDecoder
from transformer_core.models.encoder import Encoder, SentenceEncoder
from transformer_core.models.gpt import Gpt
from transformer_core.models.tokens import AnswerFinder, TokenClassifier
from transformer_core.models.translation import Translation

__all__ = [
    "AnswerFinder",
    "Bert",
    "BertOutput",
    "Classifier",
    "Decoder",
    "Encoder",
    "Gpt",
    "MaskedDecoder",
    "SentenceEncoder",
    "TokenClassifier",
    "Translation",
]
