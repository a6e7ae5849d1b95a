"""What computes, in words: the line under a sentence, a run, the glass and the server's page say it alike."""

import streamlit as st
import torch
from torch import nn

from pages.language import t
from transformer_core.device import best_device, device_name
from transformer_core.training.runs.store.run_store import RunStore


def device_words(device: str, name: str, threads: int, precision: str) -> str:
    """Say on what something is computed.

    Args:
        device, name: such as "cuda:0" and what the card is called.
        threads: of the processor.
        precision: of the numbers, such as "float32".
    """
    if device == "cpu":
        return t("device.threads", count=threads, precision=precision)
    return t("device.card", device=device, name=name, precision=precision)


def device_of_model(model: nn.Module) -> str:
    """Say on what this server computes a model."""
    weight = next(model.parameters())
    return _here(weight.device, weight.dtype)


def device_of_server() -> str:
    """Say on what this server computes the models that it opens."""
    return _here(best_device(), torch.get_default_dtype())


def _here(device: torch.device, dtype: torch.dtype) -> str:
    precision = str(dtype).removeprefix("torch.")
    return device_words(str(device), device_name(device), torch.get_num_threads(), precision)


def device_of_run(store: RunStore) -> str | None:
    """Say on what a run was or is computed, on a cluster on which node; None before it has begun."""
    facts = store.facts()
    if not facts:
        return None
    words = device_words(facts["device"], facts["device_name"], facts["threads"], store.spec.training.precision)
    return t("device.node", device=words, node=facts["node"]) if facts.get("node") else words


def show_processor() -> None:
    """Say where a part makes small models from a seed, on the processor, though the server's models compute elsewhere.

    Each kind of device draws other random numbers from a seed, so that a figure would differ from one to another.
    """
    if best_device().type != "cpu":
        st.caption(t("device.seeded"))
