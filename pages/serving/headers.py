"""What the server sends along with every answer: where the browser may take scripts from, and who may show the app.

Whatever a visitor brings in (a text, a model's card, a file), the browser runs no script of it, fetches nothing from
elsewhere for it, and shows the app in no page of another site.
"""

import base64
import hashlib
import os
import re
from functools import lru_cache

from pages.language import LANGUAGES
from pages.serving.index import index

EMBED_IN = "VITRINE_EMBED_IN"
NAME_LANGUAGE = {lang: f"document.documentElement.lang = '{lang}'" for lang in LANGUAGES}
# A menu finds its place when it opens, and its entries come later.
PLACE_AGAIN = """document.querySelectorAll("[data-testid=stPopoverBody]").forEach((menu) =>
  new ResizeObserver(() => dispatchEvent(new Event("resize"))).observe(menu))"""
UNUSED = ("camera", "display-capture", "geolocation", "microphone", "midi", "payment", "serial", "usb")


@lru_cache(maxsize=1)
def _scripts_in_pages() -> str:
    """Return the hashes of the scripts in a page itself: those in its HTML, and those that the app adds."""
    scripts = [*re.findall(r"<script>(.*?)</script>", index(), flags=re.DOTALL), *NAME_LANGUAGE.values(), PLACE_AGAIN]
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    return " ".join(f"'sha256-{value}'" for value in hashes)


def embedding_sites() -> str:
    """Return who may show the app in a frame: its own projector, and the sites in the variable VITRINE_EMBED_IN.

    Raises:
        ValueError: a site is not written as an origin.
    """
    given = os.environ.get(EMBED_IN, "")
    sites = given.replace(",", " ").split()
    if not all(re.fullmatch(r"https?://[a-z0-9.*-]+(:[0-9]+)?", site) for site in sites):
        raise ValueError(
            f"{EMBED_IN}={given!r} must name origins such as https://course.example.org, with commas between"
        )
    return " ".join(["'self'", *sites])


def headers(host: str) -> dict[str, str]:
    """Return the headers of every answer.

    Args:
        host: as the visitor names the server, with its port; the only one that scripts may speak to.
    """
    policy = {
        "default-src": "'self'",
        "script-src": f"'self' 'wasm-unsafe-eval' {_scripts_in_pages()}",  # Streamlit computes with WebAssembly
        "style-src": "'self' 'unsafe-inline'",  # Streamlit writes its styles from its scripts
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": f"'self' ws://{host} wss://{host}",  # older browsers do not count sockets as 'self'
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": embedding_sites(),
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {sources}" for name, sources in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": ", ".join(f"{feature}=()" for feature in UNUSED),
    }
