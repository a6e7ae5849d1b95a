"""The scripts and styles of the pages without Streamlit, as the server sends them: assets/hall, and the kit."""

import hashlib
from functools import cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pages.language import ASSETS
from pages.link import below_base

FOLDER = ASSETS / "hall"
KIT = ASSETS / "components" / "kit.js"
TYPES = {".js": "text/javascript", ".css": "text/css"}
FOR_A_YEAR = {"Cache-Control": "public, max-age=31536000, immutable"}


@cache
def files() -> dict[str, bytes]:
    """Return all that there is to send, by name."""
    return {path.name: path.read_bytes() for path in (*sorted(FOLDER.iterdir()), KIT) if path.suffix in TYPES}


@cache
def _version() -> str:
    return hashlib.sha256(b"".join(files().values())).hexdigest()[:12]


def linked_file(name: str) -> str:
    """Return the path of a file of assets/hall; another one once any file has changed, so that browsers may keep it."""
    return below_base(f"hall/files/{_version()}/{name}")


def file_routes() -> list[Route]:
    """Return the route of the files for st.App, below server.baseUrlPath."""

    async def send(request: Request) -> Response:
        name = request.path_params["name"]
        body = files().get(name)
        if body is None or request.path_params["version"] != _version():
            return Response(status_code=404)
        return Response(body, media_type=TYPES[name[name.rindex(".") :]], headers=FOR_A_YEAR)

    return [Route(below_base("hall/files/{version}/{name}"), send)]
