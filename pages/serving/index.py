"""The HTML page in which the app runs: Streamlit's own, with a script of ours before its scripts.

Streamlit makes a step of the browser's history of every change of the link, and Back restores none of them. Ours keeps
one step a page, whose link is always that of the screen, and Back restores it (arrive in url.py). The link of a page
that opens comes before that page does, marked by LEAVES: the step that is left keeps its own.
"""

from collections.abc import Iterable
from functools import cache

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Match, Route
from starlette.types import Scope

from pages.link import LEAVES, below_base
from pages.serving.inside_streamlit import static_folder

ONE_STEP_A_PAGE = """{
  const { pushState, replaceState } = history;
  let leaves = false;
  history.pushState = (state, title, link) => {
    const to = new URL(link ?? "", location), stays = to.pathname === location.pathname;
    leaves = stays && (leaves || to.searchParams.has("LEAVES"));
    if (!leaves) (stays ? replaceState : pushState).call(history, state, title, link);
  };
}""".replace("LEAVES", LEAVES)


@cache
def index() -> str:
    """Return the page's HTML."""
    streamlits = (static_folder() / "index.html").read_text(encoding="utf-8")
    return streamlits.replace("<script", f"<script>{ONE_STEP_A_PAGE}</script>\n    <script", 1)


class _OfPage(Route):
    """A route that takes the names of pages alone, in any case; what else there is goes on to Streamlit."""

    names: frozenset[str] = frozenset()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        name = found["path_params"].get("page", "").casefold() if match == Match.FULL else None
        return (match, found) if name in self.names else (Match.NONE, {})


def index_routes(names: Iterable[str]) -> list[Route]:
    """Return the routes of the pages for st.App, below server.baseUrlPath.

    Args:
        names: of the pages.
    """

    async def answer(_: Request) -> HTMLResponse:
        return HTMLResponse(index(), headers={"Cache-Control": "no-cache"})

    routes = [_OfPage(below_base(path), answer) for path in ("", "{page}")]
    for route in routes:
        route.names = frozenset(("", *names))
    return list(routes)
