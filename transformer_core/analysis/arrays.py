"""A result as arrays: what any analysis found, by name, ready to be saved or compared."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from torch import Tensor


def arrays_of(result: Any) -> dict[str, np.ndarray]:
    """Return the arrays, numbers and words of a result, by field name; nested fields are named outer.inner.

    Args:
        result: a dataclass, a mapping or a trace. A tuple of dataclasses counts its parts: ``runs.0.loss``.

    Raises:
        ValueError: the result is not one of these.
    """
    if isinstance(result, Mapping):
        parts = dict(result.items())
    elif is_dataclass(result) and not isinstance(result, type):
        parts = {field.name: getattr(result, field.name) for field in fields(result)}
    else:
        raise ValueError(f"result of type {type(result).__name__} must be a dataclass, a mapping or a trace")
    found: dict[str, np.ndarray] = {}
    for name, part in parts.items():
        found |= _named(str(name), part)
    return found


def _named(name: str, part: Any) -> dict[str, np.ndarray]:
    if part is None:
        return {}
    if isinstance(part, Tensor):
        return {name: part.detach().float().cpu().numpy() if part.is_floating_point() else part.cpu().numpy()}
    if isinstance(part, np.ndarray | np.generic | bool | int | float | str):
        return {name: np.asarray(part)}
    if isinstance(part, tuple | list):
        return {name: np.asarray(part)} if _is_plain(part) else _numbered(name, part)
    return {f"{name}.{inner}": array for inner, array in arrays_of(part).items()}


def _numbered(name: str, parts: Any) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for index, part in enumerate(parts):
        found |= _named(f"{name}.{index}", part)
    return found


def _is_plain(parts: Any) -> bool:
    """Return whether a sequence is one array: numbers or words, or sequences of them of one length."""
    if not all(isinstance(part, bool | int | float | str | np.generic | tuple | list) for part in parts):
        return False
    inner = [part for part in parts if isinstance(part, tuple | list)]
    return not inner or (
        len(inner) == len(parts) and len({len(part) for part in inner}) == 1 and all(map(_is_plain, inner))
    )
