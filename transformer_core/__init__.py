"""Vitrine's Transformers: written out from scratch in torch, every tensor observable through the probe.

The public names in reading order.
Read next: transformer_core/config.py
"""

# ruff: noqa: I001, RUF022  the order is the reading order

from transformer_core.config import ModelConfig
from transformer_core.sites import SITES, Site
from transformer_core.trace import Trace
from transformer_core.probe import SILENT, Probe, TraceTooLarge, capture
from transformer_core.text import Batch, Encoding, Tokenizer, make_batch
from transformer_core.models import (
    Bert,
    BertOutput,
    Classifier,
    Decoder,
    Encoder,
    Gpt,
    MaskedDecoder,
    SentenceEncoder,
    Translation,
)
from transformer_core.device import best_device
from transformer_core.bundle import Bundle, save
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.checkpoints import load
from transformer_core.training.config import TrainConfig

__all__ = [
    "ModelConfig",
    "SITES",
    "Site",
    "Trace",
    "SILENT",
    "Probe",
    "TraceTooLarge",
    "capture",
    "Encoding",
    "Tokenizer",
    "Batch",
    "make_batch",
    "Encoder",
    "Decoder",
    "MaskedDecoder",
    "Classifier",
    "SentenceEncoder",
    "Translation",
    "Bert",
    "BertOutput",
    "Gpt",
    "best_device",
    "Bundle",
    "BundleError",
    "load",
    "save",
    "TrainConfig",
]
