"""A decoder that may not look: the same context at each word, and what both translations have in common."""

import pytest
import torch

from tests.core.analysis.before.conftest import SENTENCE
from tests.helpers.engine import exactly
from transformer_core.analysis.before.alignments import compared, one_vector
from transformer_core.probe import capture


def test_without_looking_each_word_has_the_mean_as_its_context(bundle_of) -> None:
    bundle = bundle_of()
    found = one_vector(bundle=bundle, text=SENTENCE, n_tokens=12, most=6)
    tokenizer, model = bundle.tokenizer, bundle.model
    source = torch.tensor([tokenizer.encode(SENTENCE).ids])
    places = {label: id_ for id_, label in enumerate(tokenizer.labels_of(range(tokenizer.vocab_size)))}
    words = [places[label] for label in found.blind_words]
    read = torch.tensor([[tokenizer.bos_id, *words]])
    edits = {"decoder.context": lambda context: annotations.mean(1, keepdim=True).expand_as(context)}
    annotations = capture(model, source, read, sites=("encoder.annotations",))[1]["encoder.annotations"]
    logits, _ = capture(model, source, read, sites=(), edits=edits)
    assert logits[0].argmax(-1)[: len(words)].tolist() == words
    assert tokenizer.decode(words) == found.blind


def test_numbers_are_counted_and_words_in_common_are_a_share(bundle_of) -> None:
    found = one_vector(bundle=bundle_of(), text=SENTENCE, n_tokens=12)
    assert found.n_summary == 20
    assert found.n_annotations == 20 * len(found.source)
    assert 0 <= found.kept <= 1
    assert found.looking_words != found.blind_words or found.kept == 1


def test_other_kinds_are_refused(bundle_of, transformer) -> None:
    with pytest.raises(ValueError, match=exactly("bundle='new' is a translation; it must be a seq2seq")):
        one_vector(bundle=transformer, text="a", n_tokens=12)
    with pytest.raises(ValueError, match="has attention=None"):
        one_vector(bundle=bundle_of(attention=None), text="a", n_tokens=12)


def test_rows_are_compared_by_what_would_have_to_move() -> None:
    first, second = torch.eye(3).numpy(), torch.eye(3)[[0, 2, 2]].numpy()
    apart, agree = compared(first, second)
    assert apart.tolist() == [0.0, 1.0, 0.0]
    assert agree == pytest.approx(2 / 3)
