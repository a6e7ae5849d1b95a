"""The scripts of all components: their imports, their words, and no text read as markup."""

import posixpath
import re
from pathlib import Path

import pytest

from pages.figures import standalone
from pages.figures.standalone import COMPONENTS, component_assets, modules_of, source_of
from pages.language import LANGUAGES, strings

MODULES = sorted(path.relative_to(COMPONENTS).with_suffix("").as_posix() for path in COMPONENTS.rglob("*.js"))
NAMES = sorted(path.name for path in COMPONENTS.iterdir() if path.is_dir())
TOP_LEVEL = re.compile(r"^(export )?(?:async )?(?:function\*?|class|const|let) (\w+)", flags=re.MULTILINE)
IMPORT = re.compile(r'^import \{ (.*) \} from "(\S+)\.js";$', flags=re.MULTILINE)
# (modules, name of the variable that holds their words, prefix of the words in the locale)
WORDS = [
    ("kit", "words", "duration"),
    ("matrix/", "strings", "matrix"),
    ("film/", "words", "film"),
    ("arcs/", "strings", "attention_arcs"),
    ("chips/", "words", "chips"),
    ("share/", "words", "share"),
]


def code_of(module: str) -> str:
    """Return the source of a module without its imports and comments."""
    source = re.sub(r"^import .*$", "", source_of(module), flags=re.MULTILINE)
    return re.sub(r"(^|\s)//.*$", "", source, flags=re.MULTILINE)


def exports_of(module: str) -> set[str]:
    return {name for exported, name in TOP_LEVEL.findall(source_of(module)) if exported}


def imports_of(module: str) -> dict[str, str]:
    """Return the names that a module imports, each with its module."""
    found = IMPORT.findall(source_of(module))
    home = posixpath.dirname(module)
    return {name: posixpath.normpath(posixpath.join(home, path)) for names, path in found for name in names.split(", ")}


def test_modules_say_what_they_are_and_fit_on_a_few_screens() -> None:
    for module in MODULES:
        lines = source_of(module).splitlines()
        assert lines[0].startswith("// "), module
        assert len(lines) <= 400, module


def test_modules_import_what_others_export_and_use_it() -> None:
    imported = set()
    for module in MODULES:
        code = code_of(module)
        assert len(re.findall("^import ", source_of(module), flags=re.MULTILINE)) == len(
            IMPORT.findall(source_of(module))
        )
        for name, home in imports_of(module).items():
            assert name in exports_of(home), f"{module} imports {name} from {home}"
            assert re.search(rf"\b{name}\b", code), f"{module} does not use {name}"
            imported.add((home, name))
    exported = {(module, name) for module in MODULES for name in exports_of(module)}
    assert exported == imported


def test_every_module_is_used_and_comes_after_what_it_imports() -> None:
    orders = [modules_of(f"{name}/{name}") for name in NAMES]
    assert {module for order in orders for module in order} == set(MODULES)
    for order in orders:
        for module in order:
            assert all(order.index(home) < order.index(module) for home in imports_of(module).values())


def test_a_circle_of_imports_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standalone, "COMPONENTS", tmp_path)
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\n')
    with pytest.raises(ValueError, match=r"a\.js imports itself through other modules"):
        modules_of("a")


@pytest.mark.parametrize("name", NAMES)
def test_joined_modules_share_no_name(name: str) -> None:
    names = [found for _, found in TOP_LEVEL.findall(component_assets(name)[0])]
    assert sorted(names) == sorted(set(names))


def test_no_script_reads_text_as_markup() -> None:
    for script in COMPONENTS.parent.rglob("*.js"):
        code = re.sub(r"^\s*//.*$", "", script.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for door in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert door not in code, f"{script.name}: {door}"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("modules", "variable", "prefix"), WORDS)
def test_scripts_ask_for_the_words_that_the_locale_has(modules: str, variable: str, prefix: str, language: str) -> None:
    code = "\n".join(code_of(module) for module in MODULES if module.startswith(modules))
    known = strings(prefix, language).keys()
    asked = set(re.findall(rf"\b{variable}\.(\w+)", code))
    for index in re.findall(rf"\b{variable}\[([^\]]+)\]", code):  # words[many ? "table_hide" : "table_show"]
        asked |= set(re.findall(r'"(\w+)"', index))
    assert asked <= known
    built = [
        rf"{start}\w+{end}" for start, end in re.findall(r"`([a-z]\w*_)\$\{[^}]*\}(\w*)`", code)
    ]  # `state_${state}`
    assert all(any(re.fullmatch(form, key) for key in known) for form in built)
    named = set(re.findall(r'"(\w+)"|\b(\w+):', code))  # keys that are held by a variable: words[name]
    reachable = asked | {name for pair in named for name in pair}
    assert not [key for key in known if key not in reachable and not any(re.fullmatch(form, key) for form in built)]


def test_the_sign_of_the_run_under_way_asks_for_what_it_is_given() -> None:
    asked = set(re.findall(r"\bwords\.(\w+)", code_of("underway/underway")))
    assert asked == {*strings("underway", "en"), "states", "step", "left"}
