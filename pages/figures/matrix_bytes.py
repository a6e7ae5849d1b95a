"""Arrays as bytes for the browser: one byte a value, or float32, laid one after another."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from pages.figures.matrix_parts import Scale

LEVELS = 254  # codes 0..254 are values from low to high
MASKED = 255
ALIGNMENT = 8


def quantise(values: np.ndarray, scale: Scale) -> np.ndarray:
    """Return uint8 codes: round((value - low) / (high - low) * 254), and 255 where masked."""
    values = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(values)
    steps = (np.where(finite, values, scale.low) - scale.low) / (scale.high - scale.low) * LEVELS
    return np.where(finite, np.clip(np.rint(steps), 0, LEVELS), MASKED).astype(np.uint8)


class Buffers:
    """Lay arrays one after another, equal ones once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._places: dict[tuple[str, bytes], int] = {}

    def add(self, array: np.ndarray) -> dict[str, Any]:
        """Append an array and return its place: offset, shape and type."""
        raw = np.ascontiguousarray(array).tobytes()
        name = (array.dtype.str, raw)
        if name not in self._places:
            self._places[name] = len(self.data)
            self.data += padded(raw)
        return {"at": self._places[name], "shape": list(array.shape), "type": "u1" if array.dtype == np.uint8 else "f4"}


def padded(raw: bytes) -> bytes:
    """Return bytes with zeros up to the next multiple of 8."""
    return raw + b"\0" * (-len(raw) % ALIGNMENT)


def packed(header: dict[str, Any], buffers: Buffers) -> bytes:
    """Return the header's length (uint32, little-endian), the header (JSON), and the arrays, all padded to 8."""
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    return padded(struct.pack("<I", len(text)) + text) + bytes(buffers.data)


def unpack(payload: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays by panel id and as "explain.query" and so on; codes become values again."""
    (length,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4 : 4 + length].decode("utf-8"))
    start = -(-(4 + length) // ALIGNMENT) * ALIGNMENT

    def read(place: dict[str, Any]) -> np.ndarray:
        kind = np.dtype({"u1": np.uint8, "f4": "<f4"}[place["type"]])
        flat = np.frombuffer(payload, kind, int(np.prod(place["shape"])), start + place["at"])
        return flat.reshape(place["shape"])

    arrays = {}
    for panel in header["panels"]:
        values, scale = read(panel["values"]), panel["scale"]
        if values.dtype == np.uint8:
            decoded = scale["low"] + values / LEVELS * (scale["high"] - scale["low"])
            values = np.where(values == MASKED, np.nan, decoded)
        arrays[panel["id"]] = values
    for name, place in header.get("explain", {}).get("arrays", {}).items():
        arrays[f"explain.{name}"] = read(place)
    return header, arrays
