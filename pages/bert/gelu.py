"""The experiment of the page's part on the output: the masked-word head with GELU itself and with the tanh formula."""

from pages.bert.hidden_words import called, chosen_places, prompt_of
from pages.figures.charts import HUES
from pages.figures.curves import Side, bars
from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.number_format import significant
from pages.language import plain, section, t
from transformer_core.analysis.bert.head_gelu import KINDS, HeadGelu, head_gelu
from transformer_core.analysis.bert.masked_words import Hidden

TOP = 6
LITTLE = 0.001


def used_alike(found: HeadGelu) -> str:
    """Return whether either formula may be used: whether all first guesses stay."""
    return "either" if found.same == found.places else "one"


@experiment("bert_gelu_open", "bert.try_gelu")
def try_gelu(view: View, read: Hidden, place: int) -> None:
    """Ask how far the guesses move with the other formula, then show both."""
    options = options_of("bert.gelu_{}", ("little", "some", "other"))
    about = f"{view.bundle.name} {place} {view.encoding.text}"
    cover = ask_first(section("bert", "try_gelu"), options, name="bert_gelu", about=about)
    asked = {"prompt": prompt_of(view), "hidden": chosen_places(read), "place": place, "top": TOP}
    answer = ask_once(head_gelu, **asked)
    found = answer.value
    moved = float(abs(found.probabilities[0] - found.probabilities[1]).max())
    first = int(found.probabilities[1].argmax())
    cover.judge("other" if first else "little" if moved < LITTLE else "some")
    with cover.picture():
        names = [t(f"bert.kind_{kind}") for kind in KINDS]
        chart = bars(
            tuple(plain(word) for word in found.words),
            dict(zip(names, found.probabilities, strict=True)),
            across=t("bert.word"),
            up=Side(t("bert.axis_probability"), format=".0%"),
            hues=(HUES["query"], HUES["positions"]),
            height=220,
        )
        label = t("bert.gelu_label", mask=called(read, place))
        show_chart(chart, answer, key="bert_gelu", label=label)
        say(
            t(
                "bert.gelu_measured",
                greatest=significant(found.greatest),
                scores=significant(found.scores_differ),
                probabilities=significant(found.probabilities_differ),
                same=found.same,
                places=found.places,
            )
        )
        say(t(f"bert.gelu_{used_alike(found)}"), small=True)
