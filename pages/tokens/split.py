"""The sentence split by every available tokenizer, what its length costs, and a prediction about another text."""

from functools import reduce

import streamlit as st

from pages.kit.asking import ask
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, show_in_columns
from pages.kit.experiment import ask_first, experiment, fragment, options_of
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.language import plain, section, t
from pages.room import Part
from pages.tokens.chips import offer_chips, show_chips
from pages.tokens.figures import Line, cost_chart
from transformer_core.analysis.words.tokenizer_comparison import CORPORA, MODEL, Cut, Cuts, cut_sentence

SIZES = ("300", "600", "1200", "2500", "5000")
SAMPLES = {
    "family": "👨\u200d👩\u200d👧\u200d👦",
    "chinese": "今天的天气好得让人不想上班",
    "long": "Donaudampfschifffahrtsgesellschaft",
    "number": "3.14159265358979",
    "hebrew": "שלום לכולם",
}
CORPUS = Choice("tokens_corpus", CORPORA, label="tokens.corpus", words="tokens.corpus_{}", default="both")
SIZE = Choice("tokens_size", {size: f"{int(size):,}" for size in SIZES}, label="tokens.size", default=2500, kind=int)
SAMPLE = Choice("tokens_sample", SAMPLES, label="tokens.sample", form="list")


def _name_of(kind: str) -> str:
    return t(f"tokens.kind_{kind}")


@fragment
def _show(view: View) -> None:
    """Show the tokens of every tokenizer, their cost, and the prediction."""
    corpus, size = show_in_columns(view, CORPUS, SIZE)
    text = view.encoding.text
    answer = ask(cut_sentence, bundle=view.bundle, text=text, corpus=corpus, vocab_size=size)
    chips = show_chips(text, tuple(_line(cut, len(text)) for cut in answer.value.cuts), answer, name="tokens_split")
    offer_chips(chips, answer)
    st.subheader(t("tokens.cost_heading"), anchor=False)
    show_prose(section("tokens", "cost"))
    st.markdown(_cost(view, answer.value))
    names = [_name_of(cut.name) for cut in answer.value.cuts]
    words = {name: t(f"tokens.axis_{name}") for name in ("tokens", "pairs")}
    chart = cost_chart(names, [cut.n_tokens for cut in answer.value.cuts], answer.value.pairs, words)
    show_chart(chart, answer, key="tokens_cost", label=t("tokens.cost_label"))
    _try_sample(view, corpus, size)


def _line(cut: Cut, n_characters: int) -> Line:
    n_special = sum(cut.special)
    facts = [
        t("tokens.fact_ratio", ratio=f"{n_characters / max(cut.n_tokens, 1):.2f}"),
        t("tokens.fact_vocabulary", size=f"{cut.vocab_size:,}"),
    ]
    facts += [t("tokens.fact_special", count=n_special)] if n_special else []
    facts += [t("tokens.fact_unknown", count=cut.n_unknown)] if cut.n_unknown else []
    losses = [t(f"tokens.loss_{loss}") for loss in cut.losses]
    lost = reduce(lambda first, next_: t("tokens.list", first=first, next=next_), losses) if losses else ""
    return Line.of(
        cut,
        title=_name_of(cut.name),
        count=f"{cut.n_tokens:,}",
        unit=t("tokens.unit"),
        facts=tuple(facts),
        verdict=t("tokens.lossy", lost=lost, decoded=cut.decoded) if lost else t("tokens.faithful"),
        faithful=not lost,
    )


def _cost(view: View, cuts: Cuts) -> str:
    by_length = sorted(cuts.cuts, key=lambda cut: cut.n_tokens)
    short, long = next((cut for cut in by_length if cut.n_tokens), by_length[0]), by_length[-1]
    ratio = long.n_tokens / max(short.n_tokens, 1)
    config, length = view.bundle.config, len(view.encoding)
    return t(
        "tokens.cost",
        short=_name_of(short.name),
        n_short=f"{short.n_tokens:,}",
        long=_name_of(long.name),
        n_long=f"{long.n_tokens:,}",
        ratio=f"{ratio:.1f}",
        squared=f"{ratio**2:.1f}",
        length=length,
        heads=config.n_heads,
        layers=config.n_layers,
        scores=f"{length**2 * config.n_heads * config.n_layers:,}",
    )


@experiment("tokens_try_split", "tokens.try_split")
def _try_sample(view: View, corpus: str, size: int) -> None:
    show_prose(section("tokens", "try_split"))
    sample = SAMPLES[SAMPLE.show()]
    options = options_of("tokens.guess_{}", ("bpe", "character", "same"))
    question = t("tokens.question_split", sample=plain(sample))
    cover = ask_first(question, options, name="tokens_split", about=f"{sample} {corpus} {size}")
    answer = ask(cut_sentence, bundle=view.bundle, text=sample, corpus=corpus, vocab_size=size)
    cuts = {cut.name: cut for cut in answer.value.cuts if cut.name != MODEL}
    counts = {name: cuts[name].n_tokens for name in ("bpe", "character")}
    outcome = max(counts, key=counts.__getitem__) if len(set(counts.values())) > 1 else "same"
    words = t("tokens.measured_split", bytes=answer.value.n_bytes, characters=answer.value.n_characters, **counts)
    cover.judge(outcome, words)
    with cover.picture():
        lines = tuple(_line(cuts[name], len(sample)) for name in counts)
        show_chips(sample, lines, answer, name="tokens_sample_chips")


SPLIT = Part("tokens", "split", _show)
