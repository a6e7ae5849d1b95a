"""A component's script and style, and one self-contained page that runs it without any network."""

from __future__ import annotations

import base64
import hashlib
import html
import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

COMPONENTS = Path(__file__).parents[2] / "assets" / "components"
IMPORT = re.compile(r'^import .* from "(.+)\.js";\n', flags=re.MULTILINE)

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


def modules_of(main: str) -> list[str]:
    """Return a module of assets/components, such as "matrix/matrix", after all that it imports, each once.

    Raises:
        ValueError: If modules import each other in a circle.
    """
    order: dict[str, bool] = {}  # whether all imports of a module are in the order

    def visit(module: str) -> None:
        if module in order:
            if not order[module]:
                raise ValueError(f"{module}.js imports itself through other modules; imports must form no circle")
            return
        order[module] = False
        for imported in IMPORT.findall(source_of(module)):
            visit(posixpath.normpath(posixpath.join(posixpath.dirname(module), imported)))
        del order[module]  # so that it stands after its imports
        order[module] = True

    visit(main)
    return list(order)


def source_of(module: str) -> str:
    """Return the source of a module of assets/components."""
    return (COMPONENTS / f"{module}.js").read_text(encoding="utf-8")


@cache
def component_assets(name: str) -> tuple[str, str]:
    """Return the script of a component, joined with all modules that it imports, and its style.

    Args:
        name: the component's folder; its main module and its style have the same name.
    """
    texts = (IMPORT.sub("", source_of(module)) for module in modules_of(f"{name}/{name}"))
    script = "\n".join(re.sub(r"^export (?!default)", "", text, flags=re.MULTILINE) for text in texts)
    return script, (COMPONENTS / name / f"{name}.css").read_text(encoding="utf-8")


def component_page(name: str, payload: bytes, *, title: str, language: str = "en", caption: Sequence[str] = ()) -> str:
    """Return one self-contained page with a component in it, which needs no network.

    Args:
        name: as of component_assets; its main module has a function `standalone` that shows the payload.
        payload: in the page as base64.
        title: of the page.
        language: as of self_contained.
        caption: lines that say what is shown.
    """
    script, style = component_assets(name)
    script += "\nstandalone(document);\n"
    data = {"payload": base64.b64encode(payload).decode()}
    return self_contained(title=title, language=language, script=script, style=style, data=data, caption=caption)


def self_contained(
    *, title: str, language: str, script: str, style: str, data: Mapping[str, str], caption: Sequence[str] = ()
) -> str:
    """Return one page that runs this script and no other.

    Args:
        title: of the page.
        language: of the page, for screen readers.
        script: run as a module.
        style: of the component, placed after the page's own.
        data: passed to the script as data-* attributes of its element, so that no text can end the script.
        caption: lines under the title.
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
