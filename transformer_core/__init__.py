"""Vitrine's Transformers: written out from scratch in torch, every tensor observable through the probe.

The public names in reading order. Read next: config.py.
"""

# ruff: noqa: I001, RUF022  the order is the reading order

from transformer_core.config import ModelConfig
from transformer_core.sites import SITES, Site
from transformer_core.probe import SILENT, Probe, Trace, TraceTooLarge, capture
from transformer_core.models import Bert, BertOutput, Classifier, Decoder, Encoder, Gpt, MaskedDecoder, Translation

__all__ = [
    "ModelConfig",
    "SITES",
    "Site",
    "SILENT",
    "Probe",
    "Trace",
    "TraceTooLarge",
    "capture",
    "Encoder",
    "Decoder",
    "MaskedDecoder",
    "Classifier",
    "Translation",
    "Bert",
    "BertOutput",
    "Gpt",
]
