"""A family: how one architecture of theirs is told, configured and named in ours.

Read next: bert.py.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from transformer_core.config import ModelConfig
from transformer_core.open_checkpoints.origins import Origins, Shape
from transformer_core.open_checkpoints.settings import Settings

Shapes = Mapping[str, Shape]
POSITION_IDS = r"embeddings\.position_ids"


@dataclass(frozen=True)
class Family:
    """One model_type.

    Args:
        prefix: what the backbone's tensors begin with in a checkpoint that has a head.
        backbone: how a backbone's tensor begins without it; one that we do not know changes what is computed.
        kinds: our kind of each architecture of theirs; the first is meant where config.json names none.
        configure: the arguments of ModelConfig, from config.json, our kind and the shapes in the file.
        origins: where each of our parameters comes from.
        word_matrix: the embedding of tokens.
        head_matrix: of scores for words, which is tied to word_matrix unless the file has another.
        buffers: tensors that are no weights, and may be there or not.
        aliases: their other names for what they tie together.
        vocabulary: the files that hold a vocabulary where there is no tokenizer.json.
    """

    model_type: str
    prefix: str
    backbone: tuple[str, ...]
    kinds: Mapping[str, str]
    configure: Callable[[Settings, str, Shapes], dict[str, Any]]
    origins: Callable[[ModelConfig, str], Origins]
    word_matrix: str
    head_matrix: str
    buffers: re.Pattern[str]
    aliases: Mapping[str, str]
    vocabulary: tuple[str, ...]
