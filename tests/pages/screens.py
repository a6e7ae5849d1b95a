"""Every part of every page, as the pages' scripts have them."""

import ast
from pathlib import Path

from tests.paths import ROOT

CHOSEN_BY = {"why": "why"}


def parts_of(script: Path) -> list[str]:
    """Return the names of a page's parts as its script has them; one without a name where it has none."""
    for node in ast.parse(script.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("PARTS", "QUESTIONS"):
            assert isinstance(node.value, ast.Dict | ast.Tuple)
            names = node.value.keys if isinstance(node.value, ast.Dict) else node.value.elts
            return [ast.unparse(name).strip("'\"").lower() for name in names if name is not None]
    return [""]


ALL_SCREENS = [
    (script.parent.name, part) for script in sorted((ROOT / "pages").glob("*/page.py")) for part in parts_of(script)
]
NO_TEXT = ("train", "compare", "my_model", "server", "lectures")
SCREENS = [screen for screen in ALL_SCREENS if screen[0] not in NO_TEXT]


def named(page: str, part: str) -> dict[str, str]:
    """Return how a link asks for a part of a page."""
    return {CHOSEN_BY.get(page, f"{page}_part"): part} if part else {}
