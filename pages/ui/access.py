"""Which paths of the server a visitor may name."""

import os
from pathlib import Path

import streamlit as st


def may_read(path: Path) -> bool:
    """Tell whether a visitor may name this path.

    Where VITRINE_DATA names a folder, whatever lies in it; else anything for a visitor at this very machine, and
    nothing for others. Behind a proxy on the same machine every visitor looks local: a public server sets VITRINE_DATA.
    """
    allowed = os.environ.get("VITRINE_DATA")
    if allowed:
        return path.resolve().is_relative_to(Path(allowed).resolve())
    return st.context.ip_address is None
