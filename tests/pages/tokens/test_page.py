"""The tokens page: every part, control and link, awkward texts, and scripts that repeat its numbers."""

import pytest

from pages.kit.asking import ask
from pages.kit.models import open_bundle
from pages.tokens.one_hot import TRIPLES
from pages.tokens.split import SAMPLES, SIZES
from tests.helpers.pages import asks, minus, note, repeats, run, told
from transformer_core.analysis.words.bpe_merges import merge_step
from transformer_core.analysis.words.one_hot import likeness, word_relations
from transformer_core.analysis.words.tokenizer_comparison import cut_sentence
from transformer_core.prompt import Prompt

TEXT = "The film was not good, but I loved the ending."
AWKWARD = {
    "family": "👨\u200d👩\u200d👧\u200d👦",
    "flags": "🇨🇳🇩🇪",
    "hebrew": "שלום לכולם",
    "control": "a\x07b\u202ec\x1b[31m",
    "word": "x" * 1_990,
    "chinese": "这部电影没有一个空格所以要自己找词" * 4,
    "markup": "<b>bold</b> **bold** [link](https://example.org) `code` $x$",
    "special": "[MASK] [UNK] [PAD]",
    "blanks": "  a   b  ",
}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "name"), [*(("split", name) for name in AWKWARD), ("merges", "control"), ("one_hot", "family")]
)
def test_any_text_is_shown(part: str, name: str) -> None:
    app = run("tokens", tokens_part=part, text=AWKWARD[name])
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("text", ["", "   ", "x" * 5_000], ids=["empty", "blank", "word"])
def test_what_cannot_be_read_is_answered_in_words(text: str) -> None:
    app = run("tokens")
    app.text_input(key="text@tokens").set_value(text).run()
    assert not app.exception
    assert note(app)


def test_every_tokenizer_splits_the_same_window_of_a_long_text() -> None:
    app = run("tokens", text="good film " * 150)
    assert not app.exception
    assert "128 tokens" in told(app)


@pytest.mark.parametrize(("corpus", "size"), [*(("both", size) for size in SIZES), ("en", "600"), ("zh", "1200")])
def test_the_cost_is_what_the_library_counts(corpus: str, size: str) -> None:
    app = run("tokens", text=TEXT, tokens_corpus=corpus, tokens_size=size)
    cuts = cut_sentence(bundle=open_bundle("sentiment"), text=TEXT, corpus=corpus, vocab_size=int(size)).cuts
    counts = sorted(one.n_tokens for one in cuts)
    assert f"({counts[-1]})" in told(app)
    assert f"**{counts[-1] / counts[0]:.1f}**" in told(app)


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_prediction_is_judged_by_the_counts(sample: str) -> None:
    app = run("tokens", text=TEXT, tokens_try_split="true", tokens_sample=sample)
    asks(app)[0].set_value("character").run()
    assert not app.exception
    cuts = cut_sentence(bundle=open_bundle("sentiment"), text=SAMPLES[sample], corpus="both", vocab_size=2500).cuts
    counts = {one.name: one.n_tokens for one in cuts}
    assert f"BPE: **{counts['bpe']}** tokens, characters: **{counts['character']}**" in told(app)
    assert ("Not so" in told(app)) == (counts["character"] <= counts["bpe"])


@pytest.mark.parametrize(("language", "alphabet"), [("en", "characters"), ("zh", "bytes")])
def test_a_step_says_what_was_joined_and_how_often(language: str, alphabet: str) -> None:
    app = run("tokens", lang=language, tokens_part="merges", text=TEXT, tokens_alphabet=alphabet)
    for step in (0, 1, 200):
        app.slider(key="tokens_step@tokens").set_value(step).run()
        assert not app.exception
        found = merge_step(corpus="en", pasted="", alphabet=alphabet, merges=400, step=step, text=TEXT)
        assert f"**{found.n_alphabet + step}**" in told(app) or not step
        if step:
            assert f"**{found.counts[step - 1]:,}**" in told(app)


def test_the_step_never_exceeds_the_merges() -> None:
    app = run("tokens", tokens_part="merges", tokens_step="300")
    app.slider(key="tokens_merges@tokens").set_value(50).run()
    assert not app.exception
    assert app.slider(key="tokens_step@tokens").value == 50


@pytest.mark.parametrize(
    ("pasted", "words"),
    [
        ("", "Paste a text above"),
        ("   \n", "Paste a text above"),
        ("one two", "no two neighbours occur twice"),
        ("x " * 200_000, "400,000 characters"),
    ],
)
def test_a_pasted_text_that_teaches_nothing_is_answered_in_words(pasted: str, words: str) -> None:
    app = run("tokens", tokens_part="merges", tokens_text="own")
    app.text_area(key="tokens_pasted@tokens").set_value(pasted).run()
    assert not app.exception
    assert any(words in info.value for info in app.info)


def test_any_pasted_text_that_repeats_itself_can_be_learned_from() -> None:
    app = run("tokens", tokens_part="merges", tokens_text="own")
    for pasted in ("ab ab", "👨\u200d👩\u200d👧 " * 3, "\x00\x01 " * 4, "是是是是" * 50, "a" * 5_000):
        app.text_area(key="tokens_pasted@tokens").set_value(pasted).run()
        assert not app.exception
        assert not app.info


def test_merges_of_the_other_language_are_counted() -> None:
    app = run("tokens", tokens_part="merges", text=TEXT, tokens_try_merges="true")
    asks(app)[0].set_value("fewer").run()
    assert not app.exception
    here, there = (
        merge_step(corpus=corpus, pasted="", alphabet="characters", merges=400, step=0, text=TEXT).sentence_tokens[-1]
        for corpus in ("en", "zh")
    )
    assert f"**{there}** tokens" in told(app)
    assert f"**{here}**" in told(app)


@pytest.mark.parametrize(("language", "measure"), [("en", "vectors"), ("zh", "cosine"), ("en", "distance")])
def test_one_hot_says_the_same_of_every_pair(language: str, measure: str) -> None:
    app = run("tokens", lang=language, tokens_part="one_hot", text=TEXT, tokens_measure=measure)
    assert not app.exception
    found = word_relations(prompt=Prompt(open_bundle("sentiment"), TEXT, 14))
    numbers = {
        "vectors": (f"{found.vocab_size:,}", f"{found.d_model}"),
        "cosine": ("0.0000", f"{found.bounds[0, 2]:.4f}", f"{found.bounds[0, 3]:.4f}"),
        "distance": ("1.4142", f"{found.bounds[1, 2]:.4f}", f"{found.bounds[1, 3]:.4f}"),
    }[measure]
    assert all(f"**{minus(number)}**" in told(app) for number in numbers)
    assert app.metric[0].value == f"{found.one_hot_bytes / 2**20:,.2f} MiB"


@pytest.mark.parametrize("triple", TRIPLES)
def test_likeness_is_measured_after_the_prediction(triple: str) -> None:
    app = run("tokens", tokens_part="one_hot", tokens_try_one_hot="true", tokens_triple=triple)
    asks(app)[0].set_value("near").run()
    assert not app.exception
    word, near, far = TRIPLES[triple]
    found = likeness(bundle=open_bundle("sentiment"), word=word, near=near, far=far)
    assert "no single token" in told(app) if found.near is None else f"{found.near:.3f}" in told(app)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (cut_sentence, {"text": f"{TEXT} 很好 👍", "corpus": "both", "vocab_size": 600}),
        (word_relations, {"prompt": Prompt(open_bundle("sentiment"), TEXT, 8)}),
        (
            merge_step,
            {"corpus": "own", "pasted": 'ab "ab"\n' * 3, "alphabet": "bytes", "merges": 3, "step": 2, "text": TEXT},
        ),
    ],
)
def test_scripts_repeat_the_numbers(function, arguments: dict) -> None:
    if function is cut_sentence:
        arguments = {"bundle": open_bundle("sentiment")} | arguments
    answer = ask(function, **arguments)
    repeats(answer.script, answer.arrays)
