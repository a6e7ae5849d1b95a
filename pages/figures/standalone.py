"""A component as one self-contained page: its modules joined into one script, and a page that needs no network."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

COMPONENTS = Path(__file__).parents[2] / "assets" / "components"

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
h1 ~ p { margin: 0 0 0.4rem; unicode-bidi: plaintext; }
"""


def joined(modules: Iterable[str]) -> str:
    """Return modules of assets/components, such as "matrix/paint", as one script; each imports only earlier ones."""
    texts = ((COMPONENTS / f"{name}.js").read_text(encoding="utf-8") for name in modules)
    return "\n".join(re.sub(r"^export (?!default)|^import .*\n", "", text, flags=re.MULTILINE) for text in texts)


def self_contained(
    *, title: str, language: str, script: str, style: str, data: Mapping[str, str], caption: Sequence[str] = ()
) -> str:
    """Return one page that runs this script and no other.

    Args:
        title: the page's.
        language: of the page, for screen readers.
        script: run as a module.
        style: of the component, after the page's own.
        caption: lines under the title.
        data: handed to the script as the data-* attributes of its place, so that no text can end a script.
    """
    script = script.replace("</script", "<\\/script")
    style = f"{PAGE_STYLE}\n{style}".replace("</style", "<\\/style")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"
    attributes = "".join(f' data-{name}="{html.escape(value)}"' for name, value in data.items())
    lines = "".join(f"<p>{html.escape(line)}</p>\n" for line in caption)
    return (
        f'<!doctype html>\n<html lang="{html.escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f'<body>\n<h1>{html.escape(title)}</h1>\n{lines}<main id="figure"{attributes}></main>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )
