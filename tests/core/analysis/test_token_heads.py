"""Labels of tokens and answers in passages: numbers are the model's; words, names and spans follow from them."""

import numpy as np
import pytest
import torch
import transformers

from tests.helpers.engine import made
from tests.helpers.open_checkpoints import written
from transformer_core.analysis.arithmetic import tensor_of
from transformer_core.analysis.bert.answers import MOST_SPAN, find_answers
from transformer_core.analysis.bert.token_labels import kind_of_label, token_labels
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.models import AnswerFinder, Gpt, TokenClassifier
from transformer_core.text import Tokenizer

TEXT = "glass boxes ring in a glass hall of boxes"
LABELS = ("O", "B-PER", "I-PER", "B-LOC")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train("wordpiece", [TEXT, "a ring"] * 3, vocab_size=60, lowercase=True, min_frequency=1)


def tagger(tokenizer: Tokenizer) -> Bundle:
    """A lively token classifier of four labels, with room for the text."""
    model = made(TokenClassifier, vocab_size=tokenizer.vocab_size, max_len=64, n_classes=len(LABELS), n_segments=2)
    return Bundle("tagger", model, tokenizer, LABELS)


def answerer(tokenizer: Tokenizer, seed: int = 0) -> Bundle:
    model = made(AnswerFinder, seed, vocab_size=tokenizer.vocab_size, max_len=64, n_segments=2)
    return Bundle("answerer", model, tokenizer)


def forced(bundle: Bundle, wanted: dict[str, str]) -> Bundle:
    """Let each known token have the label that is wanted, through a map that reads a one-hot embedding alone."""
    model = bundle.model
    with torch.no_grad():
        model.class_proj.weight.zero_()
        model.class_proj.bias.zero_()
    labels = {bundle.tokenizer.id_of(token): LABELS.index(label) for token, label in wanted.items()}

    def forward(token_ids, *, segment_ids=None, mask=None, probe=None):
        return torch.stack([torch.eye(len(LABELS))[labels.get(int(id_), 0)] * 20 for id_ in token_ids[0]])[None]

    model.forward = forward
    return bundle


def test_each_token_has_the_model_s_own_probabilities_and_each_word_its_first_token_s_label(tokenizer) -> None:
    bundle = tagger(tokenizer)
    found = token_labels(bundle=bundle, text=TEXT, n_tokens=64)
    encoding = tokenizer.encode(TEXT)
    ids = torch.tensor([encoding.ids])
    segments = torch.tensor([encoding.segment_ids])
    with torch.inference_mode():
        expected = bundle.model(ids, segment_ids=segments)[0].softmax(-1).numpy()
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-6)
    assert found.words == tuple(TEXT.split())
    assert found.tokens == encoding.labels
    for own, label, sure in zip(found.places, found.chosen, found.sure, strict=True):
        assert label == expected[own[0]].argmax()
        assert sure == pytest.approx(expected[own[0]].max(), abs=1e-6)


def test_neighbours_of_one_kind_are_one_name_unless_another_begins(tokenizer) -> None:
    wanted = {"glass": "B-PER", "boxes": "I-PER", "ring": "B-LOC", "hall": "I-PER"}
    assert all(tokenizer.id_of(token) is not None for token in wanted)
    found = token_labels(bundle=forced(tagger(tokenizer), wanted), text=TEXT, n_tokens=64)
    named = [(name.kind, TEXT[name.start : name.end]) for name in found.names]
    assert named == [("PER", "glass boxes"), ("LOC", "ring"), ("PER", "glass hall"), ("PER", "boxes")]
    assert [(name.first, name.last) for name in found.names] == [(0, 1), (2, 2), (5, 6), (8, 8)]
    assert found.disagreeing == 0
    assert (kind_of_label("B-PER"), kind_of_label("B-"), kind_of_label("LABEL_1")) == ("PER", "B-", "LABEL_1")


@pytest.mark.parametrize("seed", range(6))
def test_the_best_span_is_the_best_of_all_valid_ones(tokenizer, seed: int) -> None:
    bundle = answerer(tokenizer, seed)
    question, passage = "a ring of glass", TEXT
    found = find_answers(bundle=bundle, question=question, passage=passage, n_tokens=64, top=4)
    encoding = tokenizer.encode(question, passage)
    ids, segments = torch.tensor([encoding.ids]), torch.tensor([encoding.segment_ids])
    with torch.inference_mode():
        chances = bundle.model(ids, segment_ids=segments)[0].double().softmax(0).numpy()
    places = [p for p in range(len(encoding)) if encoding.segment_ids[p] and not encoding.special[p]]
    every = sorted(
        (
            (chances[i, 0] * chances[j, 1], passage[encoding.offsets[i][0] : encoding.offsets[j][1]])
            for i in places
            for j in places
            if i <= j < i + MOST_SPAN
        ),
        reverse=True,
    )
    assert [span.text for span in found.spans] == [text for _, text in every[:4]]
    assert [span.probability for span in found.spans] == pytest.approx([chance for chance, _ in every[:4]], rel=1e-5)
    np.testing.assert_allclose(found.start, chances[places, 0], rtol=1e-4)
    assert found.nothing == pytest.approx(chances[0].prod(), rel=1e-4)
    assert found.backwards == (chances[places, 0].argmax() > chances[places, 1].argmax())
    assert found.start.sum() < 1


def test_a_span_has_a_bounded_length(tokenizer) -> None:
    bundle = answerer(tokenizer)
    found = find_answers(bundle=bundle, question="a", passage=" ".join(["glass"] * 50), n_tokens=64, top=2_000)
    assert max(span.last - span.first for span in found.spans) == MOST_SPAN - 1
    assert min(span.last - span.first for span in found.spans) == 0


def test_a_long_passage_is_cut_and_said(tokenizer) -> None:
    found = find_answers(bundle=answerer(tokenizer), question="a", passage=TEXT * 9, n_tokens=24, top=1)
    assert found.truncated > 0
    assert len(found.tokens) == 24 - 3 - 1


@pytest.mark.parametrize(
    ("kind", "architecture"), [("names", "BertForTokenClassification"), ("answers", "BertForQuestionAnswering")]
)
def test_the_same_as_theirs_on_a_text(kind: str, architecture: str, tmp_path) -> None:
    theirs = written(architecture, tmp_path)
    bundle = load(tmp_path, device="cpu")
    read = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    if kind == "names":
        with torch.inference_mode():
            expected = theirs(**read("a glass, café", return_tensors="pt")).logits[0].softmax(-1).numpy()
        found = token_labels(bundle=bundle, text="a glass, café", n_tokens=20)
        np.testing.assert_allclose(found.probabilities, expected, atol=1e-5)
        return
    with torch.inference_mode():
        output = theirs(**read("a cafe", "glass, a café", return_tensors="pt"))
    found = find_answers(bundle=bundle, question="a cafe", passage="glass, a café", n_tokens=20, top=1)
    start, end = output.start_logits[0].softmax(-1).numpy(), output.end_logits[0].softmax(-1).numpy()
    np.testing.assert_allclose(found.start, start[4:-1], atol=1e-5)
    np.testing.assert_allclose(found.end, end[4:-1], atol=1e-5)


def test_other_models_and_empty_texts_are_refused(tokenizer) -> None:
    other = Bundle("g", made(Gpt, vocab_size=tokenizer.vocab_size), tokenizer)
    with pytest.raises(ValueError, match="bundle='g' is a gpt; it must be a tagger"):
        token_labels(bundle=other, text="a", n_tokens=8)
    with pytest.raises(ValueError, match="bundle='g' is a gpt; it must be an answerer"):
        find_answers(bundle=other, question="a", passage="a", n_tokens=8, top=1)
    with pytest.raises(ValueError, match="question=' ' must be a text"):
        find_answers(bundle=answerer(tokenizer), question=" ", passage="a", n_tokens=8, top=1)


@pytest.mark.parametrize(("make", "site"), [(tagger, "token_logits"), (answerer, "span_logits")])
def test_their_arithmetic_is_shown_under_the_glass(tokenizer, make, site: str) -> None:
    bundle = make(tokenizer)
    encoding = tokenizer.encode(TEXT)
    found = tensor_of(bundle=bundle, text=TEXT, n_tokens=len(encoding), name=site)
    assert found.agrees
