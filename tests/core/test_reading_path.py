"""One path of "Read next" lines leads through the engine, from its public names to `load`."""

import ast
import re

from tests.helpers import ROOT
from tests.test_architecture import name_of, parsed, sources

FIRST, LAST = "transformer_core/__init__.py", "transformer_core/checkpoints.py"
LINE = re.compile("Read " + r"next: *(\S+)")


def next_of(name: str) -> list[str]:
    """Return the files that a file's module docstring names as the next to read."""
    return LINE.findall(ast.get_docstring(parsed(ROOT / name)) or "")


def path() -> list[str]:
    """Follow the lines from the first file on; a loop ends where it closes."""
    followed = [FIRST]
    while (found := next_of(followed[-1])) and found[0] not in followed:
        followed.append(found[0])
    return followed


def test_the_path_leads_from_the_public_names_to_load_without_a_gap_or_a_loop() -> None:
    followed = path()
    assert all((ROOT / name).is_file() for name in followed)
    assert (followed[-1], next_of(LAST)) == (LAST, [])
    assert all(len(next_of(name)) == 1 for name in followed[:-1])
    assert 20 <= len(followed) <= 30


def test_no_other_file_has_such_a_line() -> None:
    files = [path for folder in ("transformer_core", "pages", "tests") for path in sources(folder)] + [ROOT / "app.py"]
    with_a_line = {name_of(path) for path in files if LINE.search(path.read_text(encoding="utf-8"))}
    assert with_a_line == set(path()[:-1])
