"""What the library says of a BERT: the same numbers as its forward pass, and as the reference's."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import transformers

from tests.helpers import refusals
from tests.helpers.engine import lively, made, shipped, small_bundle
from tests.helpers.open_checkpoints import written
from transformer_core.analysis.arithmetic import tensor_of
from transformer_core.analysis.bert.answers import MOST_SPAN, find_answers
from transformer_core.analysis.bert.head_gelu import head_gelu, head_scores
from transformer_core.analysis.bert.layers import by_layer, each_by_layer
from transformer_core.analysis.bert.masked_words import each_hidden, fill_in, hidden_text, hide, own_places
from transformer_core.analysis.bert.masking_recipe import masking_recipe, three_ways
from transformer_core.analysis.bert.sentence_pairs import (
    CHANGES,
    ORDERS,
    pair_verdict,
    segment_rows,
    without_segments,
    words_of_pair,
)
from transformer_core.analysis.bert.tied_output import one_score
from transformer_core.analysis.bert.token_labels import kind_of_label, token_labels
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.models import AnswerFinder, Bert, Gpt, TokenClassifier
from transformer_core.prompt import Prompt
from transformer_core.text import MASK_ID, Tokenizer

TEXTS = ["a man in a red shirt rides a horse", "two dogs run on the beach", "the dogs play near the water"] * 3
TEXT, PAIR = TEXTS[0], TEXTS[1]
N = 24
SHAPES = {
    "pre": {"n_segments": 2},
    "post": {"n_segments": 2, "norm_order": "post", "embedding_norm": True, "positions": "learned"},
    "bare": {"n_segments": 0, "scale_embeddings": True, "tied_output": False},
}


@pytest.fixture(params=list(SHAPES))
def bundle(request: pytest.FixtureRequest) -> Bundle:
    """Return a tiny lively Bert of each shape."""
    return shaped(request.param)


@cache
def shaped(shape: str) -> Bundle:
    """Return a tiny lively Bert."""
    tokenizer = Tokenizer.train("wordpiece", TEXTS, vocab_size=90, lowercase=True, min_frequency=1)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 3, "max_len": 32, "dropout": 0.0}
    torch.manual_seed(0)
    model = lively(Bert(ModelConfig(vocab_size=tokenizer.vocab_size, **sizes, **SHAPES[shape])))
    return Bundle("tiny", model, tokenizer)


def forward(bundle: Bundle, text: str, hidden: tuple[int, ...] = (), pair: str | None = None):
    """Return the model's own output for a text with some tokens hidden."""
    encoding = hide(bundle.tokenizer.encode(text, pair, max_len=N), hidden, bundle.tokenizer)
    segments = torch.tensor([encoding.segment_ids]) if bundle.config.n_segments else None
    with torch.inference_mode():
        return bundle.model(torch.tensor([encoding.ids]), segment_ids=segments)


def test_guesses_are_the_forward_pass_s(bundle: Bundle) -> None:
    found = fill_in(prompt=Prompt(bundle, TEXT, N), hidden=(2, 5), top=4)
    expected = forward(bundle, TEXT, (2, 5)).mlm_logits[0].softmax(-1)
    ids = bundle.tokenizer.encode(TEXT).ids
    assert found.places.tolist() == [2, 5]
    for place, row in zip((2, 5), range(2), strict=True):
        best = expected[place].topk(4)
        np.testing.assert_allclose(found.probabilities[row], best.values, atol=1e-5)
        assert found.ids[row].tolist() == best.indices.tolist()
        assert found.true_ids[row] == ids[place]
        np.testing.assert_allclose(found.true_probabilities[row], expected[place, ids[place]], atol=1e-6)
        assert found.true_ranks[row] == int((expected[place] > expected[place, ids[place]]).sum()) + 1


def test_a_mask_that_is_typed_is_a_mask_of_which_nothing_is_known(bundle: Bundle) -> None:
    typed = fill_in(prompt=Prompt(bundle, "a [MASK] in a red shirt rides a horse", N), hidden=())
    chosen = fill_in(prompt=Prompt(bundle, TEXT, N), hidden=(2,))
    np.testing.assert_allclose(typed.probabilities, chosen.probabilities, atol=1e-6)
    assert typed.true_labels == ("",)
    assert typed.true_ranks.tolist() == [0]
    assert np.isnan(typed.true_probabilities).all()


def test_hiding_each_word_by_itself_is_hiding_one(bundle: Bundle) -> None:
    each = each_hidden(prompt=Prompt(bundle, TEXT, N))
    assert tuple(each.places) == own_places(bundle.tokenizer.encode(TEXT))
    for token in (0, 4):
        one = fill_in(prompt=Prompt(bundle, TEXT, N), hidden=(int(each.places[token]),))
        np.testing.assert_allclose(each.probabilities[token], one.true_probabilities[0], atol=1e-5)
        assert (each.ranks[token], each.guesses[token]) == (one.true_ranks[0], one.labels[0][0])
    assert each.share_first == np.mean(each.ranks == 1)


def test_the_last_stage_is_the_model(bundle: Bundle) -> None:
    found = by_layer(prompt=Prompt(bundle, TEXT, N), hidden=(3,), place=3, top=3)
    filled = fill_in(prompt=Prompt(bundle, TEXT, N), hidden=(3,), top=3)
    assert found.probabilities.shape[0] == bundle.config.n_layers + 1
    np.testing.assert_allclose(found.best_probabilities[-1], filled.probabilities[0], atol=1e-5)
    assert found.best_labels[-1] == filled.labels[0]
    assert found.true_word is not None
    assert found.words[found.true_word] == filled.true_labels[0]
    assert (found.ranks[found.settled :, 0] == 1).all()
    assert found.settled == 0 or found.ranks[found.settled - 1, 0] > 1


def test_each_word_by_layer_is_one_word_by_layer(bundle: Bundle) -> None:
    each = each_by_layer(prompt=Prompt(bundle, TEXT, N))
    for token in (1, 6):
        place = int(each.places[token])
        one = by_layer(prompt=Prompt(bundle, TEXT, N), hidden=(place,), place=place)
        np.testing.assert_allclose(each.probabilities[:, token], one.probabilities[:, 0], atol=1e-5)
        assert each.ranks[:, token].tolist() == one.ranks[:, 0].tolist()
        assert [row[token] for row in each.firsts] == [row[0] for row in one.best_labels]
        assert each.settled[token] == one.settled


def test_the_pair_verdict_is_the_forward_pass_s(bundle: Bundle) -> None:
    found = pair_verdict(prompt=Prompt(bundle, TEXT, N, PAIR))
    sentences = {"a": TEXT, "b": PAIR}
    for order, share in zip(ORDERS, found.follows, strict=True):
        expected = forward(bundle, sentences[order[0]], pair=sentences[order[1]]).nsp_logits.softmax(-1)[0, 0]
        np.testing.assert_allclose(share, expected, atol=1e-6)


def test_hiding_a_word_of_a_pair(bundle: Bundle) -> None:
    found = words_of_pair(prompt=Prompt(bundle, TEXT, N, PAIR))
    expected = forward(bundle, TEXT, (int(found.places[-1]),), pair=PAIR).nsp_logits.softmax(-1)[0, 0]
    np.testing.assert_allclose(found.follows[-1], expected, atol=1e-6)
    np.testing.assert_allclose(found.moves, 100 * (found.follows - found.usual))
    assert found.segments[0] == 0
    assert found.segments[-1] == 1


@pytest.mark.parametrize("shape", ["pre", "post"])
def test_segments_through_the_probe(shape: str) -> None:
    bundle = shaped(shape)
    asked = {"prompt": Prompt(bundle, TEXT, N, PAIR)}
    found, rows = without_segments(**asked), segment_rows(**asked)
    shares = dict(zip(CHANGES, found.follows, strict=True))
    encoding = bundle.tokenizer.encode(TEXT, PAIR)
    ids, own = torch.tensor([encoding.ids]), torch.tensor([encoding.segment_ids])
    for change, segment_ids in {"usual": own, "swapped": 1 - own, "all_a": 0 * own, "all_b": 0 * own + 1}.items():
        with torch.inference_mode():
            logits = bundle.model(ids, segment_ids=segment_ids).nsp_logits
        np.testing.assert_allclose(shares[change], logits.softmax(-1)[0, 0], atol=1e-6)
    matrix = bundle.model.encoder.embedding.segment.weight  # type: ignore[union-attr]
    np.testing.assert_allclose(rows.segment_norms, matrix[own[0]].norm(dim=-1).detach(), rtol=1e-5)
    assert rows.segment_ids.tolist() == list(encoding.segment_ids)


def test_a_score_is_the_sum_of_its_products(bundle: Bundle) -> None:
    found = one_score(prompt=Prompt(bundle, TEXT, N), hidden=(2,), place=2, word_id=20, top=5)
    score = forward(bundle, TEXT, (2,)).mlm_logits[0, 2]
    np.testing.assert_allclose(found.score, score[20], atol=1e-5)
    np.testing.assert_allclose(found.products.sum() + found.bias, found.recomputed)
    assert found.difference <= found.rounding < 1e-3
    assert found.guess_ids.tolist() == score.topk(5).indices.tolist()
    assert found.tied == bundle.config.tied_output
    assert (found.apart == 0) == found.tied
    assert 20 not in found.near_ids
    assert (np.diff(found.near_cosines) <= 0).all()


def test_the_recipe_keeps_its_shares(bundle: Bundle) -> None:
    found = masking_recipe(prompt=Prompt(bundle, TEXT, N), probability=0.15, seed=3, copies=8_000)
    assert found.shares.sum() == pytest.approx(1)
    expected = np.array([0.85, 0.15 * 0.8, 0.15 * 0.1, 0.15 * 0.1])
    np.testing.assert_allclose(found.shares, expected, atol=0.006)
    ids = np.array(bundle.tokenizer.encode(TEXT).ids)
    assert (found.read_ids[found.fates == 0] == ids[found.fates == 0]).all()
    assert (found.read_ids[found.fates == 1] == MASK_ID).all()
    assert (found.chosen == (found.fates > 0)).all()
    again = masking_recipe(prompt=Prompt(bundle, TEXT, N), probability=0.15, seed=3, copies=8_000)
    assert (found.read_ids == again.read_ids).all()


def test_three_ways_of_treating_a_word(bundle: Bundle) -> None:
    found = three_ways(prompt=Prompt(bundle, TEXT, N), seed=1, exchanges=3)
    each = each_hidden(prompt=Prompt(bundle, TEXT, N))
    np.testing.assert_allclose(found.probabilities[0], each.probabilities, atol=1e-5)
    ids = torch.tensor(bundle.tokenizer.encode(TEXT).ids)
    kept = forward(bundle, TEXT).mlm_logits[0].softmax(-1)[torch.arange(len(ids)), ids]
    np.testing.assert_allclose(found.probabilities[2], kept[list(found.places)], atol=1e-5)
    np.testing.assert_allclose(found.means, found.probabilities.mean(1))


def test_special_tokens_may_have_any_ids(bundle: Bundle) -> None:
    encoding = bundle.tokenizer.encode(TEXT)
    shifted = bundle.tokenizer.from_json(bundle.tokenizer.to_json().replace('"[MASK]"', '"<mask>"'))
    masked = hidden_text(Prompt(replace(bundle, tokenizer=shifted), TEXT.replace("man", "[MASK]"), N), (5,))
    assert masked.places == (2, 5)
    assert masked.true_ids == (None, encoding.ids[5])


BUNDLE = shipped("bert")
MASKED = "A man in a [MASK] shirt is riding a horse."


def test_gelu_itself_gives_the_models_own_scores() -> None:
    ids = torch.tensor([BUNDLE.tokenizer.encode(MASKED).ids])
    with torch.inference_mode():
        own = head_scores(BUNDLE.model.mlm_head, BUNDLE.model.encoder(ids), "gelu")
        torch.testing.assert_close(own, BUNDLE.model(ids).mlm_logits)


def test_the_tanh_formula_moves_little() -> None:
    found = head_gelu(prompt=Prompt(BUNDLE, MASKED, 64), hidden=(), place=5, top=5)
    assert 1e-4 < found.greatest < 5e-4
    assert found.apart.max() <= found.greatest
    assert 0 < found.probabilities_differ < 1e-3
    assert found.scores_differ > found.probabilities_differ
    assert found.same >= found.places - 1
    assert found.probabilities.shape == (2, 5)
    assert (found.probabilities[0, :-1] >= found.probabilities[0, 1:]).all()


NAMES = "glass boxes ring in a glass hall of boxes"
LABELS = ("O", "B-PER", "I-PER", "B-LOC")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return names_tokenizer()


@cache
def names_tokenizer() -> Tokenizer:
    """Return a tokenizer of the words of names and passages."""
    return Tokenizer.train("wordpiece", [NAMES, "a ring"] * 3, vocab_size=60, lowercase=True, min_frequency=1)


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
    found = token_labels(prompt=Prompt(bundle, NAMES, 64))
    encoding = tokenizer.encode(NAMES)
    ids = torch.tensor([encoding.ids])
    segments = torch.tensor([encoding.segment_ids])
    with torch.inference_mode():
        expected = bundle.model(ids, segment_ids=segments)[0].softmax(-1).numpy()
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-6)
    assert found.words == tuple(NAMES.split())
    assert found.tokens == encoding.labels
    for own, label, sure in zip(found.places, found.chosen, found.sure, strict=True):
        assert label == expected[own[0]].argmax()
        assert sure == pytest.approx(expected[own[0]].max(), abs=1e-6)


def test_neighbours_of_one_kind_are_one_name_unless_another_begins(tokenizer) -> None:
    wanted = {"glass": "B-PER", "boxes": "I-PER", "ring": "B-LOC", "hall": "I-PER"}
    assert all(tokenizer.id_of(token) is not None for token in wanted)
    found = token_labels(prompt=Prompt(forced(tagger(tokenizer), wanted), NAMES, 64))
    named = [(name.kind, NAMES[name.start : name.end]) for name in found.names]
    assert named == [("PER", "glass boxes"), ("LOC", "ring"), ("PER", "glass hall"), ("PER", "boxes")]
    assert [(name.first, name.last) for name in found.names] == [(0, 1), (2, 2), (5, 6), (8, 8)]
    assert found.disagreeing == 0
    assert (kind_of_label("B-PER"), kind_of_label("B-"), kind_of_label("LABEL_1")) == ("PER", "B-", "LABEL_1")


@pytest.mark.parametrize("seed", range(3))
def test_the_best_span_is_the_best_of_all_valid_ones(tokenizer, seed: int) -> None:
    bundle = answerer(tokenizer, seed)
    question, passage = "a ring of glass", NAMES
    found = find_answers(bundle=bundle, question=question, passage=passage, n_tokens=64, top=4)
    encoding = tokenizer.encode(question, passage)
    ids, segments = torch.tensor([encoding.ids]), torch.tensor([encoding.segment_ids])
    with torch.inference_mode():
        probabilities = bundle.model(ids, segment_ids=segments)[0].double().softmax(0).numpy()
    places = [p for p in range(len(encoding)) if encoding.segment_ids[p] and not encoding.special[p]]
    every = sorted(
        (
            (probabilities[i, 0] * probabilities[j, 1], passage[encoding.offsets[i][0] : encoding.offsets[j][1]])
            for i in places
            for j in places
            if i <= j < i + MOST_SPAN
        ),
        reverse=True,
    )
    assert [span.text for span in found.spans] == [text for _, text in every[:4]]
    assert [span.probability for span in found.spans] == pytest.approx([chance for chance, _ in every[:4]], rel=1e-5)
    np.testing.assert_allclose(found.start, probabilities[places, 0], rtol=1e-4)
    assert found.nothing == pytest.approx(probabilities[0].prod(), rel=1e-4)
    assert found.backwards == (probabilities[places, 0].argmax() > probabilities[places, 1].argmax())
    assert found.start.sum() < 1


def test_a_span_has_a_bounded_length_and_a_passage_too(tokenizer) -> None:
    bundle = answerer(tokenizer)
    found = find_answers(bundle=bundle, question="a", passage=" ".join(["glass"] * 50), n_tokens=64, top=2_000)
    assert max(span.last - span.first for span in found.spans) == MOST_SPAN - 1
    assert min(span.last - span.first for span in found.spans) == 0
    cut = find_answers(bundle=answerer(tokenizer), question="a", passage=NAMES * 9, n_tokens=24, top=1)
    assert cut.truncated > 0
    assert len(cut.tokens) == 24 - 3 - 1


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
        found = token_labels(prompt=Prompt(bundle, "a glass, café", 20))
        np.testing.assert_allclose(found.probabilities, expected, atol=1e-5)
        return
    with torch.inference_mode():
        output = theirs(**read("a cafe", "glass, a café", return_tensors="pt"))
    found = find_answers(bundle=bundle, question="a cafe", passage="glass, a café", n_tokens=20, top=1)
    start, end = output.start_logits[0].softmax(-1).numpy(), output.end_logits[0].softmax(-1).numpy()
    np.testing.assert_allclose(found.start, start[4:-1], atol=1e-5)
    np.testing.assert_allclose(found.end, end[4:-1], atol=1e-5)


@pytest.mark.parametrize(("make", "site"), [(tagger, "token_logits"), (answerer, "span_logits")])
def test_their_arithmetic_is_shown_under_the_glass(tokenizer, make, site: str) -> None:
    bundle = make(tokenizer)
    encoding = tokenizer.encode(NAMES)
    found = tensor_of(prompt=Prompt(bundle, NAMES, len(encoding)), name=site)
    assert found.agrees


TINY = shaped("pre")
ASKED = {"prompt": Prompt(TINY, TEXT, N)}
HEADLESS = replace(TINY, model=Bert(replace(TINY.config, pair_head=False)).eval())
OTHER = replace(TINY, model=made(Gpt), name="g")
GELU = {"prompt": Prompt(BUNDLE, MASKED, 64), "hidden": (), "place": 1, "top": 5}
PASSAGE = {"question": "a", "passage": "a", "n_tokens": 8, "top": 1}
REFUSED = [
    (lambda: fill_in(**ASKED, hidden=()), "at least one token must be hidden"),
    (lambda: fill_in(**ASKED, hidden=(0,)), "got 0"),
    (lambda: fill_in(**ASKED, hidden=(2,), top=0), "top=0"),
    (lambda: fill_in(prompt=Prompt(OTHER, TEXT, N), hidden=(2,)), "is a gpt; it must be a bert"),
    (lambda: by_layer(**ASKED, hidden=(2,), place=4), "place=4 must be one of the masks' places, (2,)"),
    (lambda: pair_verdict(prompt=Prompt(TINY, TEXT, N, " ")), "must be a sentence"),
    (lambda: pair_verdict(prompt=Prompt(HEADLESS, TEXT, N, PAIR)), "without a head for pairs"),
    (lambda: without_segments(prompt=Prompt(shaped("bare"), TEXT, N, PAIR)), "0 segment vectors"),
    (lambda: masking_recipe(**ASKED, probability=0.1, seed=0, copies=0), "copies=0"),
    (lambda: head_gelu(**GELU), "place=1 must be one of the masks' places, (5,)"),
    (lambda: head_gelu(**GELU | {"prompt": Prompt(small_bundle(), MASKED, 64)}), "must be a bert"),
    (lambda: token_labels(prompt=Prompt(OTHER, "a", 8)), "bundle='g' is a gpt; it must be a tagger"),
    (lambda: find_answers(bundle=OTHER, **PASSAGE), "bundle='g' is a gpt; it must be an answerer"),
    (
        lambda: find_answers(bundle=answerer(names_tokenizer()), **PASSAGE | {"question": " "}),
        "question=' ' must be a text",
    ),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
