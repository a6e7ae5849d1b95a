"""The film in a page of its own: no text becomes markup, and no network is needed."""

import base64
import hashlib
import html
import json
import re
from dataclasses import replace

import pytest

from pages.film.figures.film import DARK, LIGHT
from pages.film.figures.page import film_data, to_html
from tests.helpers.figures import ATTACK, clouds, film_words, followed_of


@pytest.fixture
def page() -> str:
    film = clouds(12, 2, labels=(ATTACK, "positive"), name=ATTACK)
    film = replace(film, points=replace(film.points, texts=[ATTACK] * 12))
    return to_html(
        [film],
        film_words(),
        title=f"A title {ATTACK}",
        followed_texts=[followed_of(film, ATTACK)],
        language='"><script>',
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


def test_page_carries_runs_and_followed_text(page):
    data = json.loads(html.unescape(re.search(r'data-film="([^"]+)"', page).group(1)))
    assert data["runs"][0]["name"] == data["followed_text"] == ATTACK
    assert ATTACK.encode() in base64.b64decode(data["films"][0])
    assert base64.b64decode(data["followed_texts"][0])[:1]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_component_is_told_all_it_needs(language):
    data = film_data([("a", "A"), ("b", "B")], film_words(language), followed_text="x", frame=3, language=language)
    assert [run["id"] for run in data["runs"]] == ["a", "b"]
    assert data["words"] == film_words(language)
    assert json.loads(json.dumps(data)) == data


@pytest.mark.parametrize("runs", [[], [("a", "A")] * 2, [("a", ""), ("b", ""), ("c", "")]])
def test_one_run_or_two_are_shown(runs):
    with pytest.raises(ValueError, match="must be one run, or two that differ"):
        film_data(runs, film_words())


@pytest.mark.parametrize("hues", [LIGHT, DARK])
def test_there_is_a_hue_for_each_of_twenty_classes(hues):
    assert len(set(hues)) == 20
    assert all(re.fullmatch("#[0-9a-f]{6}", hue) for hue in hues)
