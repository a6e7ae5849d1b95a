"""Open checkpoints: what the `transformers` library published, read into the modules of this package, and back.

A family maps names: which tensor of theirs is which of ours.
"""

from transformer_core.open_checkpoints.gguf import ARCHITECTURES
from transformer_core.open_checkpoints.hub import HUB, load_from_hub
from transformer_core.open_checkpoints.load import SUPPORTED, has_chat, is_open_checkpoint, kind_of_folder, load_open
from transformer_core.open_checkpoints.reference_check import Trust, check_against_reference
from transformer_core.open_checkpoints.save import save_hf

__all__ = [
    "ARCHITECTURES",
    "HUB",
    "SUPPORTED",
    "Trust",
    "check_against_reference",
    "has_chat",
    "is_open_checkpoint",
    "kind_of_folder",
    "load_from_hub",
    "load_open",
    "save_hf",
]
