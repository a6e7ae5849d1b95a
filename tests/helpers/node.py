"""The scripts of a component, run by node without a browser."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pages.figures.standalone import component_assets
from tests.helpers import PATIENCE

NODE = shutil.which("node") or ""
BEFORE = """
import { readFileSync } from "node:fs";
const bytes = (name) => readFileSync(`${process.argv[2]}/${name}`);
const print = (value) => console.log(JSON.stringify(value));
globalThis.matchMedia = () => ({ matches: false });
"""
needs_node = pytest.mark.skipif(not NODE, reason="node is not installed")


def in_node(folder: Path, component: str, script: str, **payloads: bytes) -> Any:
    """Run a component's modules, then `script`, and return what it prints; `bytes(name)` gives a payload."""
    for name, payload in payloads.items():
        (folder / name).write_bytes(payload)
    check = folder / "check.mjs"
    check.write_text(component_assets(component)[0] + BEFORE + script, encoding="utf-8")
    done = subprocess.run([NODE, check, folder], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return json.loads(done.stdout)
