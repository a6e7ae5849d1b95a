"""What My model says of a model: sizes in true units, classes in words, and a card that reaches out for nothing."""

from pages.my_model.show import safe_line
from pages.ui.language import plain, words
from tests.pages.running import run, told


def test_sizes_are_in_megabytes_and_classes_in_words() -> None:
    app = run("my_model", lang="zh", model="sentiment")
    parameters = next(one for one in app.metric if one.label == words("zh")["my_model.parameters"])
    stored = next(one for one in app.metric if one.label == words("zh")["my_model.bytes"])
    assert stored.value == f"{4 * int(parameters.value.replace(',', '')) / 1e6:,.2f} MB"
    assert words("zh")["class.negative"] in told(app)


def test_a_card_keeps_its_layout_and_nothing_that_reaches_out() -> None:
    assert safe_line("## A [b](http://c.d)") == f"\n**A {plain('[b](http://c.d)')}**\n"
    assert safe_line("| `a*b` | **no** | ![x](y) |") == f"| `a*b` | **no** | {plain('![x](y)')} |"
    assert safe_line("|---|:-:|") == "| --- | :-: |"
    assert safe_line("- <b>x</b> ` :red[y]") == f"- {plain('<b>x</b> ` :red[y]')}"
