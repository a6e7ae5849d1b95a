"""Twenty tasks of a new user: from Home by what is written on the screen, to a result that the engine gives here.

Pages are found by the menu, parts and controls by their words, in the language chosen on the page; none by link or key.
"""

import os
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from pages.embeddings.neighbours import one_token
from pages.kit.header import DEFAULT_TEXT, EXAMPLES
from pages.kit.navigation import SECTIONS
from pages.kit.number_format import percent, significant
from pages.language import LANGUAGES, words
from tests.e2e.test_writing import asked, opened, verdict
from tests.helpers.browser import rest, settle, wait_painted, weights
from tests.helpers.pages import minus
from tests.helpers.reading import metric, press
from transformer_core.analysis.attention.head_ablation import head_effects
from transformer_core.analysis.before.reach import gradient_reach
from transformer_core.analysis.bert.masked_words import fill_in
from transformer_core.analysis.encoder.layers import layer_verdicts
from transformer_core.analysis.feed_forward.neurons import neurons
from transformer_core.analysis.gpt.next_token import expected
from transformer_core.analysis.lab.intervention import intervene
from transformer_core.analysis.masks.masked_head import masked_head
from transformer_core.analysis.stream.normalization import normed_vector
from transformer_core.analysis.translation.greedy_steps import written_greedily
from transformer_core.analysis.why.scaling import WIDTHS, spread_by_width
from transformer_core.analysis.words.nearest_words import nearest_words
from transformer_core.analysis.words.sentence_vectors import sentence_vectors
from transformer_core.layers.positions import sinusoidal_table
from transformer_core.training.runs.run_list import RunList

pytestmark = pytest.mark.nightly
PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
TEXT = "The plot was thin but I loved every minute"


def number(written: str) -> float:
    """Return a number that a table has, such as −0.25 or 2.79×10⁻⁵."""
    return float(written.replace("−", "-").replace("×10", "e").translate(PLAIN))


class Person:
    """Somebody who opened the front page, and knows of the app what is written there; the browser is English."""

    def __init__(self, page: Page, address: str, language: str = "en") -> None:
        self.page, self.language = page, language
        page.goto(address)
        settle(page)
        if language != "en":
            page.get_by_role("radio", name=LANGUAGES[language], exact=True).click()
        self._heading("home")

    def word(self, key: str, **values: object) -> str:
        """Return what the screen says for a key, without the marks of what stands out."""
        return words(self.language)[key].format(**values).replace("**", "")

    def _heading(self, name: str) -> None:
        expect(self.page.get_by_role("heading", name=self.word(f"{name}.heading"), exact=True)).to_be_visible()
        rest(self.page)

    def goes_to(self, name: str) -> None:
        """Open a page by the menu."""
        section = next(section for section, names in SECTIONS.items() if name in names)
        self.presses(f"nav.{section}")
        self.page.get_by_role("menuitem", name=self.word(f"nav.{name}"), exact=True).click()
        self._heading(name)

    def part(self, name: str, of: str) -> None:
        """Choose a part of a page above its picture."""
        self.page.get_by_role("radio", name=self.word(f"{of}.part_{name}"), exact=True).click()
        rest(self.page)

    def types(self, text: str, box: str = "header.text") -> None:
        """Replace what stands in a box."""
        self.page.get_by_role("textbox", name=self.word(box), exact=True).fill(text)
        self.page.keyboard.press("Enter")
        rest(self.page)

    def chooses(self, name: str, among: str) -> None:
        """Choose one of several buttons below a word."""
        group = self.page.get_by_role("radiogroup", name=self.word(among), exact=True)
        group.get_by_role("radio", name=name, exact=True).click()
        rest(self.page)

    def presses(self, key: str) -> None:
        """Press a button."""
        self.page.get_by_role("button", name=self.word(key), exact=True).first.click()

    def slides(self, label: str, *keys: str) -> None:
        """Move a slider by keys."""
        press(self.page, self.page.get_by_role("slider", name=self.word(label)).first, *keys)
        rest(self.page)

    def board(self, name: str) -> Locator:
        """Return the figure that has this name."""
        return self.page.get_by_role("application", name=re.compile(rf"^{re.escape(name)}"))

    def row(self, label: str, which: int = 0) -> np.ndarray:
        """Ask for a figure as a table, and return the numbers of the row that is called so."""
        self.page.get_by_role("button", name=self.word("matrix.table_show"), exact=True).nth(which).click()
        header = self.page.get_by_role("rowheader", name=label, exact=True)
        cells = self.page.get_by_role("row").filter(has=header).last.get_by_role("cell")
        return np.array([number(cell) for cell in cells.all_inner_texts()])

    def sees(self, said: str) -> None:
        """Read a text on the screen."""
        expect(self.page.get_by_role("main").get_by_text(said).first).to_be_visible()

    def reads(self, *texts: str) -> None:
        """Read texts that stand one after the other, such as the bars of a chart from the top down."""
        expect(self.page.get_by_role("main")).to_contain_text(re.compile(r"\s*".join(map(re.escape, texts))))


@pytest.fixture
def person(page: Page, address: str, request: pytest.FixtureRequest) -> Person:
    """Somebody who reads English, or what the test names."""
    return Person(page, address, getattr(request, "param", "en"))


IN_CHINESE = pytest.mark.parametrize("person", ["zh"], indirect=True)
JUDGED = [("en", "sentiment", TEXT), ("zh", "sentiment-zh", "房间很脏，服务员也不理人，再也不会来了。")]


@pytest.mark.parametrize(("person", "model", "text"), JUDGED, indirect=["person"])
def test_a_sentence_is_judged_on_the_front_page(person: Person, model: str, text: str) -> None:
    person.types(text)
    person.sees(verdict(model, text, person.language))


def test_a_part_of_the_diagram_opens_its_page_with_the_same_sentence(person: Person) -> None:
    person.types(TEXT)
    person.page.get_by_role("button", name=person.word("diagram.open", page=person.word("nav.embeddings"))).click()
    expect(person.page.get_by_role("textbox", name=person.word("header.text"))).to_have_value(TEXT)
    found, labels = sentence_vectors(**asked("sentiment", TEXT)), asked("sentiment", TEXT)["prompt"].encoding.labels
    first, second = found.closest or (0, 0)
    said = {"first": labels[first], "second": labels[second], "cosine": f"{found.cosine[first, second]:.3f}"}
    person.sees(person.word("embeddings.closest", **said))


def test_a_sentence_is_cut_into_tokens_with_their_numbers(person: Person) -> None:
    text = "An unwatchable, charmless film."
    person.goes_to("tokens")
    person.types(text)
    encoding = opened("sentiment").tokenizer.encode(text)
    chips = person.page.get_by_role("listbox", name=re.compile(rf"^{person.word('tokens.kind_model')}"))
    pairs = zip(encoding.labels, encoding.ids, strict=True)
    expect(chips.get_by_role("option")).to_have_text([re.compile(rf"^{re.escape(one)}\s*{id_}$") for one, id_ in pairs])


def test_the_nearest_words_of_a_word_are_found(person: Person) -> None:
    person.goes_to("embeddings")
    person.part("neighbours", "embeddings")
    person.types("brilliant", "embeddings.word")
    token_id = one_token(opened("sentiment").tokenizer, "brilliant").ids[0]
    found = nearest_words(bundle=opened("sentiment"), token_id=token_id)
    person.reads(*found.labels, *(f"{value:.3f}" for value in found.values))


def test_a_cell_of_the_sines_and_cosines_is_read(person: Person) -> None:
    person.goes_to("positions")
    person.slides("positions.length", "ArrowRight")
    shown = person.row("20")
    np.testing.assert_allclose(shown, sinusoidal_table(65, 128)[20][: len(shown)], atol=6e-4)


def test_no_weight_is_on_a_later_word_under_the_causal_mask(person: Person) -> None:
    person.goes_to("masks")
    person.types(TEXT)
    for preset in ("window", "causal"):  # it begins with the second
        person.chooses(person.word(f"masks.preset_{preset}"), "masks.preset")
    found = masked_head(**asked("sentiment", TEXT), pads=0, mask="causal", layer=0, head=0, everywhere=True)
    person.sees(f"{person.word('class.positive')} {found.after[1]:.1%}")
    person.sees(minus(f"{100 * (found.after[1] - found.before[1]):+.1f}"))
    press(person.page, person.board(""), "PageDown", "PageDown")
    shown, place = person.row("loved"), found.labels.index("loved")
    np.testing.assert_allclose(shown, found.steps.weights[place], atol=6e-4)
    assert shown[: place + 1].sum() == pytest.approx(1, abs=0.01)
    assert not shown[place + 1 :].any()


def test_a_row_of_a_chosen_head_is_read(person: Person) -> None:
    person.goes_to("attention")
    person.types(TEXT)
    person.chooses("1", "attention.layer")
    person.chooses("2", "attention.head")
    wait_painted(person.page, f"1.2|{TEXT}")
    labels, found = weights(TEXT, 1, 2)
    np.testing.assert_allclose(person.row("loved", 1), found[labels.index("loved")], atol=6e-4)


def test_a_head_is_switched_off_and_the_verdict_moves(person: Person) -> None:
    person.goes_to("attention")
    person.types(TEXT)
    person.part("effect", "attention")
    person.presses("try.show")
    person.chooses("2", "attention.layer")
    person.chooses("1", "attention.head")
    moved = minus(f"{100 * head_effects(**asked('sentiment', TEXT)).change[2, 1]:+.2f}")
    person.sees(person.word("try.measured", head=1, layer=2, label=person.word("class.positive"), moved=moved))


def test_the_strongest_neuron_of_a_layer_is_named_with_its_numbers(person: Person) -> None:
    person.goes_to("feed_forward")
    person.types(TEXT)
    person.part("neurons", "feed_forward")
    person.chooses("2", "feed_forward.layer")
    asking = asked("sentiment", TEXT)
    found = neurons(**asking, layer=2, top=24)
    place = int(found.peaks[neuron := int(found.columns[0])])
    before, after = (significant(float(one[place, neuron]), 4) for one in (found.pre_activation, found.activation))
    said = {"neuron": neuron, "token": asking["prompt"].encoding.labels[place], "before": before, "after": after}
    person.sees(person.word("feed_forward.cell_of_neuron", name=person.word("feed_forward.name_gelu"), **said))


@IN_CHINESE
def test_mean_and_variance_of_a_words_vector_are_read_in_chinese(person: Person) -> None:
    text = "这家店的面条一点也不好吃。"
    person.types(text)
    person.goes_to("norm")
    expect(person.page.get_by_role("textbox", name=person.word("header.text"))).to_have_value(text)
    person.chooses("1", "norm.layer")
    found = normed_vector(**asked("sentiment-zh", text), layer=1, sublayer="feed_forward", token=0, scale=1.0)
    for value in (found.mean, found.variance):
        expect(person.page.get_by_role("math").nth(1)).to_contain_text(minus(f"{value:.4f}"))


def test_why_scores_are_divided_is_seen_at_a_width_of_16(person: Person) -> None:
    person.goes_to("why")
    person.part("scaling", "why")
    person.page.get_by_role("radio", name=person.word("why.scaling.winner"), exact=True).click()
    person.slides("why.scaling.width", "ArrowRight", "ArrowRight")
    variance = significant(spread_by_width(seed=0).variance[WIDTHS.index(16)], 3)
    said = words("en")["why.scaling.measured_random"].split(". ")[1].partition(",")[0]
    person.sees(said.format(width=16, variance=variance))


def test_the_verdict_is_read_from_the_mean_of_the_tokens(person: Person) -> None:
    person.goes_to("encoder")
    person.types(TEXT)
    found = layer_verdicts(**asked("sentiment", TEXT))
    pooling, label = person.word("encoder.pooling_mean"), person.word("class.positive")
    shown = metric(person.page, person.word("encoder.by_other", label=label, pooling=pooling))
    expect(shown).to_have_text(f"{found.probabilities[1, -1, found.winner]:.1%}")


CAPTION = "Two dogs are running on the beach."
TRANSLATED = [("en", "translation-en-fr", CAPTION), ("zh", "translation-zh-en", "我明天给你打电话。")]


@pytest.mark.parametrize(("person", "model", "text"), TRANSLATED, indirect=["person"])
def test_a_sentence_is_translated(person: Person, model: str, text: str) -> None:
    person.types(text)  # on the front page; it goes along
    person.goes_to("translation")
    found = written_greedily(**asked(model, text))
    person.slides("translation.step", "End")
    person.sees(found.text)
    person.slides("translation.step", "Home")
    word, chance = found.words[0].removeprefix("␣"), f"{found.probabilities[0]:.2%}"
    person.sees(person.word("translation.came", step=0, word=word, chance=chance))


def test_chinese_chosen_on_the_front_page_goes_along_with_a_sentence_that_the_model_reads(
    page: Page, address: str
) -> None:
    reader = Person(page, address, "zh")
    reader.goes_to("translation")
    box = reader.page.get_by_role("textbox", name=reader.word("header.text"), exact=True)
    expect(box).to_have_value(EXAMPLES["translation-zh-en"])
    assert "text=" not in reader.page.url


def test_a_gap_is_filled_in(person: Person) -> None:
    text = "A man in a [MASK] shirt is riding a horse."
    person.goes_to("bert")
    person.types(text)
    person.sees(person.word("bert.typed_told"))
    found = fill_in(**asked("bert", text), hidden=())
    person.reads(*found.labels[0])
    person.reads(*map(percent, found.probabilities[0].tolist()))


def test_the_likeliest_next_token_is_read(person: Person) -> None:
    text = "Once upon a time there was a big"
    person.goes_to("gpt")
    person.types(text)
    asking = asked("gpt", text)
    found = expected(**asking, place=len(asking["prompt"].encoding), top=10)
    person.reads(*found.labels)
    person.reads(*(f"{chance:.1%}" for chance in found.probabilities))
    expect(metric(person.page, person.word("gpt.entropy"))).to_contain_text(f"{found.entropy:.2f}")


@IN_CHINESE
def test_a_chinese_word_is_searched_for_and_its_part_shows_what_is_measured(person: Person) -> None:
    person.presses("search.open")
    person.page.get_by_role("textbox", name=person.word("search.label"), exact=True).fill("梯度")
    title = f"{person.word('nav.before')} › {person.word('before.part_reach')}"
    person.page.get_by_role("button", name=title, exact=True).click()
    expect(person.page.get_by_role("heading", name=person.word("before.heading"), exact=True)).to_be_visible()
    rest(person.page)
    found = gradient_reach(length=64, d_model=32, seed=0, gain=1.0, keep_bias=2.0)  # as the page begins
    for name, row in zip(found.systems, found.relative, strict=True):
        line = person.page.get_by_role("row").filter(has_text=person.word(f"before.{name}"))
        expect(line.get_by_role("cell").nth(3)).to_have_text(significant(float(row[64 // 2])))


@IN_CHINESE
def test_a_quick_training_is_watched_to_its_end_in_chinese(person: Person) -> None:
    person.goes_to("train")
    person.presses("train.start")
    shown = metric(person.page, person.word("result.held_out"))
    expect(shown).to_be_visible()
    store = RunList(Path(os.environ["VITRINE_RUNS"])).open(parse_qs(urlsplit(person.page.url).query)["run"][0])
    assert store.status().state == "finished"
    expect(shown).to_have_text(f"{store.frames()[-1].measures['held_out_accuracy']:.1%}")


def test_a_head_is_switched_off_and_stands_in_the_log(person: Person) -> None:
    person.goes_to("lab")
    assert person.page.get_by_role("textbox", name=person.word("header.text")).input_value() == DEFAULT_TEXT
    press(person.page, person.board(person.word("lab_heads.on")), "ArrowRight", "Enter")
    change = ("head", "encoder.layer0.self_attention", 1, "zero")
    found = intervene(**asked("sentiment", DEFAULT_TEXT), changes=(change,))
    person.sees(minus(f"{found.before:.2f} → {found.after:.2f}"))
    rest(person.page)
    person.presses("lab.log_this")
    person.part("log", "lab")
    what = person.word("lab.what_heads", heads="encoder 0.1", how=person.word("lab.how_zero"))
    cells = person.page.get_by_role("gridcell", include_hidden=True)  # on a canvas, with its cells for screen readers
    expect(cells.filter(has_text=what).first).to_be_attached()
    written = cells.all_text_contents()
    place = written.index(what)
    assert [*map(float, written[place + 1 : place + 3])] == pytest.approx([found.before, found.after], abs=1e-4)
