"""What a person calls from Python: models by name, texts as they are, and words where a call is wrong."""

from collections.abc import Callable

import pytest
import torch

from transformer_core import Bundle, capture, load
from transformer_core.analysis.attention.heads import head_off
from transformer_core.analysis.lab.cases import logit_diff


def test_a_bundle_reads_texts_and_its_answers_are_compared_as_they_are_written() -> None:
    bundle = load("gpt")
    ids = torch.tensor([bundle.tokenizer.encode("Once upon a").ids])
    scores, trace = capture(bundle, "Once upon a", sites=("*.residual",))
    plain, expected = capture(bundle.model, ids, sites=("*.residual",))
    assert torch.equal(scores, plain)
    assert all(torch.equal(trace[name], expected[name]) for name in expected)
    one, other = (bundle.tokenizer.encode(text, add_special=False).ids[0] for text in (" time", " dog"))
    assert torch.equal(logit_diff(bundle, scores, " time", " dog"), plain[:, -1, one] - plain[:, -1, other])
    assert torch.equal(bundle.to_tokens("Once upon a", "The")[0], ids[0])
    translation = load("translation-en-fr")
    words = (translation.tokenizer.encode("A dog.").ids, translation.of_target.encode("Un chien.").ids)
    by_ids, _ = capture(translation.model, *(torch.tensor([one]) for one in words), sites=())
    assert torch.equal(capture(translation, "A dog.", "Un chien.", sites=())[0], by_ids)


GIVEN = torch.tensor([[5, 6, 7]])
WRONG_CALLS: dict[str, tuple[Callable[[Bundle], object], str]] = {
    "no model": (lambda bundle: capture("gpt", GIVEN), "model is of type str; it must be a model or a bundle"),
    "a text": (
        lambda bundle: capture(bundle.model, "a dog"),
        r"inputs\[0\] is of type str; it must be a tensor of ids",
    ),
    "lists": (lambda bundle: capture(bundle, [[5, 6]]), r"inputs\[0\] is of type list; it must be a tensor of ids"),
    "an edit of nothing": (
        lambda bundle: capture(bundle, "a", edits={"decoder.layer0.residual": lambda stream: None}),
        r"edits\['decoder.layer0.residual'\] returned NoneType at decoder.layer0.residual; it must return the tensor",
    ),
    "no such head": (
        lambda bundle: capture(bundle, "a", edits=head_off("decoder.layer0.self_attention", 77)),
        "head=77 must be from 0 to",
    ),
    "several tokens": (
        lambda bundle: logit_diff(bundle, capture(bundle, "a", sites=())[0], " dog", " the old dog"),
        "answer=' the old dog' is .*; it must be one token",
    ),
    "no such place": (
        lambda bundle: logit_diff(bundle, capture(bundle, "a", sites=())[0], 1, 2, position=9),
        "position=9 must be from",
    ),
    "no such model": (lambda bundle: load("gpt-9"), "gpt-9: there is no such folder"),
}


@pytest.mark.parametrize(("call", "said"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_wrong_call_is_told_in_words(call: Callable[[Bundle], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call(load("gpt"))
