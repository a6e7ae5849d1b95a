"""The film in a page of its own: no text becomes markup, no network is needed, and every word is asked for."""

import base64
import hashlib
import html
import json
import re
from dataclasses import replace

import pytest

from pages.figures.matrix_page import DRAWING
from pages.figures.standalone import COMPONENTS
from pages.film.figures.colours import DARK, LIGHT
from pages.film.figures.page import MATRIX_WORDS, SCRIPTS, WORDS, component_assets, film_data, to_html
from tests.pages.film.films import ATTACK, clouds, film_words, probe_of

NAMED = re.compile(r'^import \{ (.*) \} from "(\./|\.\./(?:matrix/)?)(\w+)\.js";$', flags=re.MULTILINE)


@pytest.fixture
def page() -> str:
    film = clouds(12, 2, labels=(ATTACK, "positive"), name=ATTACK)
    film = replace(film, points=replace(film.points, texts=[ATTACK] * 12))
    return to_html(
        [film], film_words(), title=f"A title {ATTACK}", probes=[probe_of(film, ATTACK)], language='"><script>'
    )


def test_page_has_no_text_of_a_user_as_markup(page):
    assert ATTACK not in page
    assert page.count(html.escape(f"A title {ATTACK}")) == 2
    assert len(re.findall(r"<script", page)) == len(re.findall(r"</script", page)) == 1
    assert "<img" not in page


def test_page_needs_no_network_and_allows_its_own_script_alone(page):
    assert set(re.findall(r"https?://[^\s\"'`)]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(?:link|img|iframe)|<script[^>]+src|url\([^#]|@import|^import ", page, flags=re.MULTILINE)
    script = re.search(r'<script type="module">(.*)</script>', page, flags=re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in page


def test_page_carries_runs_and_probe(page):
    data = json.loads(html.unescape(re.search(r'data-film="([^"]+)"', page).group(1)))
    assert data["runs"][0]["name"] == data["probe"] == ATTACK
    assert ATTACK.encode() in base64.b64decode(data["films"][0])
    assert base64.b64decode(data["probes"][0])[:1]


def test_script_never_reads_text_as_markup_and_knows_every_word():
    code = "\n".join((COMPONENTS / "film" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    code = re.sub(r"^\s*//.*$", "", code, flags=re.MULTILINE)
    for door in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert door not in code
    assert set(re.findall(r"words\.(\w+)", code)) <= set(WORDS)
    built = re.compile(
        "^(state|method|baseline|show|export|train|held_out|png|svg|webm|open|branch|play|pause|epoch|frame)"
    )
    assert [word for word in WORDS if not re.search(rf"\b{word}\b", code) and not built.match(word)] == []


def test_modules_import_what_others_export():
    known = {"../lasting", *(f"../matrix/{name}" for name in DRAWING)}
    for name in SCRIPTS:
        text = (COMPONENTS / "film" / f"{name}.js").read_text(encoding="utf-8")
        assert len(re.findall("^import ", text, flags=re.MULTILINE)) == len(NAMED.findall(text))
        for names, folder, home in NAMED.findall(text):
            assert f"{folder}{home}" in known, (name, home)
            path = COMPONENTS / "film" / folder / f"{home}.js"
            exported = re.findall(
                r"^export (?:async )?(?:function\*?|class|const) (\w+)", path.read_text(), re.MULTILINE
            )
            assert set(names.split(", ")) <= set(exported), (name, home)
        known.add(f"./{name}")


def test_modules_are_short_and_open_by_saying_what_they_are():
    for name in SCRIPTS:
        lines = (COMPONENTS / "film" / f"{name}.js").read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 260, name
        assert lines[0].startswith("// "), name


def test_joined_modules_share_no_name():
    names = re.findall(r"^(?:async )?(?:function\*?|class|const|let) (\w+)", component_assets()[0], flags=re.MULTILINE)
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_component_is_told_all_it_needs(language):
    data = film_data([("a", "A"), ("b", "B")], film_words(language), probe="x", frame=3, language=language)
    assert [run["id"] for run in data["runs"]] == ["a", "b"]
    assert data["words"].keys() == {*WORDS, *MATRIX_WORDS}
    assert json.loads(json.dumps(data)) == data


@pytest.mark.parametrize("runs", [[], [("a", "A")] * 2, [("a", ""), ("b", ""), ("c", "")]])
def test_one_run_or_two_are_shown(runs):
    with pytest.raises(ValueError, match="must be one run, or two that differ"):
        film_data(runs, film_words())
    with pytest.raises(ValueError, match=r"words lacks .*play"):
        film_data([("a", "A")], {})


@pytest.mark.parametrize("hues", [LIGHT, DARK])
def test_there_is_a_hue_for_each_of_twenty_classes(hues):
    assert len(set(hues)) == 20
    assert all(re.fullmatch("#[0-9a-f]{6}", hue) for hue in hues)
