"""The rules of the design, of style and of README, each checked in one walk over the source."""

import ast
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers import ROOT
from transformer_core.analysis.translation.toy_batch import CONFIG, SOURCE, TARGETS

MOST_LINES = 450
MOST_LINES_PAGE = 120
MOST_LINES_FUNCTION = 50
ARGUMENT = re.compile(r"^ {4}([a-z_0-9]+(?:, [a-z_0-9]+)*): ", re.MULTILINE)
ALLOWED_AT_TOP = {
    "app.py",
    "pages",
    "transformer_core",
    "assets",
    "tests",
    "requirements.txt",
    "constraints.txt",
    "README.md",
    ".ci",
    ".streamlit",
    "deploy",
    ".gitignore",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements-ray.txt",
    "Makefile",
    "LICENSE",
    "CONTRIBUTING.md",
    "DECISIONS.md",
    "CHANGELOG.md",
}


def tracked() -> list[str]:
    """Return every file of the project that git does not ignore, from the root."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


def sources(folder: str) -> list[Path]:
    """Return the Python files below a folder."""
    return sorted((ROOT / folder).glob("**/*.py"))


class Facts(NamedTuple):
    """What the rules ask of a file; its syntax tree, a hundred times larger, is not kept."""

    docstring: str
    imports: set[str]
    lengths: dict[str, int]  # lines of each function below its docstring
    unknown: dict[str, set[str]]  # what a function's docstring calls an argument and is none
    bare: list[str]  # channels of a chart that are strings, which Altair reads by way of its whole schema, in 3 ms each


@cache
def facts(path: Path) -> Facts:
    """Read a file once for all rules."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = Facts(ast.get_docstring(tree) or "", set(), {}, {}, [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.imports.update((node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "encode":
            given = [named.value for named in node.keywords]
            given += [one for value in given if isinstance(value, ast.List) for one in value.elts]
            texts = [ast.unparse(one) for one in given if isinstance(one, ast.Constant | ast.JoinedStr)]
            found.bare.extend(text for text in texts if ":" in text)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node) or ""
            first = node.body[1] if docstring and len(node.body) > 1 else node.body[0]
            length = (node.end_lineno or 0) - first.lineno + 1
            found.lengths[node.name] = max(length, found.lengths.get(node.name, 0))
            _, _, said = docstring.partition("\nArgs:\n")
            named = {name for names in ARGUMENT.findall(said.partition("\n\n")[0]) for name in names.split(", ")}
            if unknown := named - {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}:
                found.unknown[node.name] = unknown
    return found


def importers(paths: list[Path], *packages: str) -> dict[str, set[str]]:
    """Return the files that import any of these packages, each with the modules that it imports of them."""
    inside = tuple(f"{package}." for package in packages)
    found = {
        name_of(path): {name for name in facts(path).imports if name in packages or name.startswith(inside)}
        for path in paths
    }
    return {path: names for path, names in found.items() if names}


def name_of(path: Path) -> str:
    """Return a path from the root."""
    return path.relative_to(ROOT).as_posix()


def n_lines(path: Path) -> int:
    """Return how many lines a file has."""
    return len(path.read_text(encoding="utf-8").splitlines())


def test_the_walls_stand() -> None:
    """Who imports whom is written in pyproject.toml."""
    run = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_page_holds_no_maths_and_is_short() -> None:
    scripts = sorted((ROOT / "pages").glob("*/page.py"))
    assert not importers(scripts, "torch", "numpy", "math", "pandas")
    assert not [name_of(path) for path in scripts if n_lines(path) > MOST_LINES_PAGE]


def test_files_and_functions_are_short() -> None:
    files = sources("transformer_core") + sources("pages") + sources("tests")
    assert not {name_of(path): n_lines(path) for path in files if n_lines(path) > MOST_LINES}
    lengths = {f"{name_of(path)}: {name}": n for path in files for name, n in facts(path).lengths.items()}
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES_FUNCTION}


def test_every_module_opens_by_saying_what_it_is() -> None:
    silent = [path for path in sources("transformer_core") + sources("pages") if not facts(path).docstring]
    assert not [name_of(path) for path in silent if path.read_text(encoding="utf-8").strip()]


def test_what_a_docstring_calls_an_argument_is_one() -> None:
    unknown = {name_of(path): facts(path).unknown for path in sources("transformer_core") + sources("pages")}
    assert not {name: found for name, found in unknown.items() if found}


def test_no_channel_of_a_chart_is_a_bare_string() -> None:
    assert not [(name_of(path), facts(path).bare) for path in sources("pages") if facts(path).bare]


DRAWN_BY = {"pages/kit/charts.py", "pages/compare/pair.py", "pages/embeddings/map.py"}


def test_charts_are_drawn_where_their_files_are_offered() -> None:
    draws = re.compile(r"\.(altair|vega_lite|plotly|line|bar|scatter|area)_chart\(")
    assert {name_of(path) for path in sources("pages") if draws.search(path.read_text(encoding="utf-8"))} == DRAWN_BY


BETWEEN_OWN_PROCESSES = {"transformer_core/heavy_process.py", "transformer_core/heavy_relay.py"}  # on their pipes alone


def test_the_library_never_unpickles_or_executes() -> None:
    banned = re.compile(r"\b(pickle\b|torch\.load\b|eval\(|exec\(|os\.system\b|yaml\.load\b)")
    read = {path: path.read_text(encoding="utf-8") for path in sources("transformer_core")}
    found = {name_of(path) for path, text in read.items() if banned.search(text) and banned.search(_code(text))}
    assert found == BETWEEN_OWN_PROCESSES


def _code(text: str) -> str:
    """Return code without strings and comments, and without calls of a module's .eval()."""
    return ast.unparse(_without_strings(ast.parse(text))).replace(".eval(", "(")


def _without_strings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return tree


def test_the_top_level_is_the_one_agreed() -> None:
    assert {name.partition("/")[0] for name in tracked()} <= ALLOWED_AT_TOP


def test_no_machine_or_registry_is_named() -> None:
    banned = re.compile("|".join(("/" + "work/", "/" + "opt/pypi", "/" + "root/", "index" + "-url")))
    offenders = [
        name
        for name in tracked()
        if Path(name).suffix in {".py", ".md", ".toml", ".txt", ".js", ".css", ".po"}
        and banned.search((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert not offenders


def folders_of(*tops: str) -> set[str]:
    """Return these folders and the folders one level below them, as paths from the root."""
    deep = (name.split("/") for name in tracked() if name.startswith(tuple(f"{top}/" for top in tops)))
    return {"/".join(parts[:2]) for parts in deep if len(parts) > 2} | set(tops)


def readme_tree() -> list[tuple[str, str]]:
    """Return (folder, phrase) of each folder in README's tree; a line may name several: ``a/, b/  phrase``."""
    block = (ROOT / "README.md").read_text(encoding="utf-8").split("<!-- tree -->")[1].split("```")[1]
    entries, parents = [], []
    for line in block.splitlines():
        if not line.strip() or line.strip() == "text":
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        names, _, phrase = line.strip().partition("  ")
        parents = parents[:depth]
        folders = [name.rstrip("/") for name in names.split(", ") if name.endswith("/")]
        entries += [("/".join([*parents, name]), phrase.strip()) for name in folders]
        parents += folders[-1:]
    return entries


def test_readme_tree_names_the_folders_with_a_phrase_each() -> None:
    named = dict(readme_tree())
    assert not [path for path in named if not (ROOT / path).is_dir()], "README names folders that are not there"
    wordless = [path for path, phrase in named.items() if not phrase]
    assert all(any(other.startswith(f"{path}/") for other in named) for path in wordless), f"no phrase: {wordless}"
    of_a_page = {name_of(script.parent) for script in (ROOT / "pages").glob("*/page.py")}  # one line tells them all
    lacking = folders_of("pages", "transformer_core", "assets", "tests") - set(named) - of_a_page
    assert not lacking, f"README's tree lacks {sorted(lacking)}"


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff_has_nothing_to_say(command: list[str]) -> None:
    run = subprocess.run([sys.executable, "-m", "ruff", *command, "."], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_examples_run_and_give_the_shapes_they_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(compile(block, "README.md", "exec"), names)
    n_tokens = len(names["encoding"])
    config = names["bundle"].config
    stacked = torch.Size((config.n_layers, 1, config.n_heads, n_tokens, n_tokens))
    assert names["bundle"].model is not None
    assert names["logits"].shape == (4, 6, 5)
    assert sum(parameter.numel() for parameter in names["model"].parameters()) == 3_700_096
    assert (names["source"].tolist(), names["target"].tolist()) == ([list(SOURCE)] * 4, [list(row) for row in TARGETS])
    assert names["config"] == replace(CONFIG, max_len=names["config"].max_len)
    for weights in (names["encoder_self"], names["decoder_self"], names["cross"]):
        assert weights.shape == (4, 4, 8, 6, 6)
    assert not torch.equal(names["without"], names["verdict"])
    assert names["weights"].shape == stacked
    assert "# 12.1 nats" in README
    assert float(names["logit_diff"](names["gpt"], names["scores"], " time", " dog")) == pytest.approx(12.1, abs=0.05)


def test_each_command_is_one_line_and_the_gate_runs_the_test_command() -> None:
    commands = re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)[:2]
    assert all(len(command.strip().splitlines()) == 1 for command in commands)
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = re.search(r"sed -n '([^']+)' README.md", gate)
    assert found is not None
    shown = subprocess.run(
        ["sed", "-n", found.group(1), "README.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == commands[1].strip()


def required_in(file: str) -> list[Requirement]:
    """Return what a file of requirements or constraints asks for on this machine."""
    lines = [line.partition("#")[0].strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    found = [Requirement(line) for line in lines if line and not line.startswith("-")]
    return [one for one in found if one.marker is None or one.marker.evaluate()]


def test_all_that_the_requirements_bring_is_pinned_as_it_is_installed() -> None:
    assert (ROOT / "requirements.txt").read_text(encoding="utf-8").startswith("-c constraints.txt\n")
    pinned = {canonicalize_name(one.name): one.specifier for one in required_in("constraints.txt")}
    left, seen = [*required_in("requirements.txt"), *required_in("requirements-dev.txt")], set()
    while left:
        one = left.pop()
        if (said := str(one)) in seen:
            continue
        seen.add(said)
        installed, name = distribution(one.name), canonicalize_name(one.name)
        assert name in pinned, f"{name} is not pinned; run make lock"
        assert installed.version in pinned[name], f"{name} {installed.version} is not {pinned[name]}; run make lock"
        for brought in map(Requirement, installed.requires or ()):
            if brought.marker is None or any(brought.marker.evaluate({"extra": extra}) for extra in ("", *one.extras)):
                left.append(brought)
    assert len(seen) > len(pinned) / 2


FIRST, LAST = "transformer_core/__init__.py", "transformer_core/checkpoints.py"
LINE = re.compile("Read " + r"next: *(\S+)")


def next_of(name: str) -> list[str]:
    """Return the files that a file's module docstring names as the next to read."""
    return LINE.findall(facts(ROOT / name).docstring)


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
