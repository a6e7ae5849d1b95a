"""A matrix figure as one self-contained page, and the script and style that draw it.

Read next: attention.py.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path

from pages.figures.matrix import MatrixFigure

ASSETS = Path(__file__).parents[2] / "assets" / "components" / "matrix"
DRAWING = ("unpack", "colour", "geometry", "surface", "paint", "arithmetic", "readout", "table")
SCRIPTS = (*DRAWING, "pointer", "keyboard", "matrix")  # in reading order: each imports only what comes before

PAGE_STYLE = """
:root {
  --st-background-color: #ffffff; --st-text-color: #31333f; --st-primary-color: #6d3fc0; color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root { --st-background-color: #0e1117; --st-text-color: #fafafa; --st-primary-color: #b794f6; }
}
body {
  margin: 2rem auto; padding: 0 1.5rem; max-width: 1500px;
  background: var(--st-background-color); color: var(--st-text-color);
  font-family: system-ui, "Segoe UI", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
}
h1 { font-size: 1.25rem; font-weight: 600; }
"""


def component_assets() -> tuple[str, str]:
    """Return the component's script, its modules joined into one, and its style."""
    modules = ((ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    script = "\n".join(re.sub(r"^export (?!default)|^import .*\n", "", text, flags=re.MULTILINE) for text in modules)
    return script, (ASSETS / "matrix.css").read_text(encoding="utf-8")


def to_html(figure: MatrixFigure, *, title: str, language: str = "en") -> str:
    """Return one self-contained page with the figure alive in it; nothing in it reaches for a network.

    The figure travels as base64, so that no label can end a script, and the page runs no script but its own.
    """
    js, css = component_assets()
    script = f"{js}\nstandalone(document);\n".replace("</script", "<\\/script")
    style = f"{PAGE_STYLE}\n{css}".replace("</style", "<\\/style")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"
    payload = base64.b64encode(figure.to_bytes()).decode()
    return (
        f'<!doctype html>\n<html lang="{html.escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f'<body>\n<h1>{html.escape(title)}</h1>\n<main id="figure" data-payload="{payload}"></main>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )
