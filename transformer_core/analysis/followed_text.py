"""A followed text: what the model of each frame of a run makes of one typed text, from its weights."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch

from transformer_core.analysis.outcome import one_text
from transformer_core.bundle import Bundle
from transformer_core.generation import greedy, sample
from transformer_core.layout.neighbours import place_by_neighbours
from transformer_core.models.output import sentence_site
from transformer_core.probe import capture
from transformer_core.text import Tokenizer
from transformer_core.trace import Trace
from transformer_core.training.corpora.sequences import Rule
from transformer_core.training.corpora.sequences import answer as rule_answer
from transformer_core.training.runs.store.folder import TOKENIZER
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.tasks.pairs import pairs_of

MOST_CHARACTERS = 500
MOST_TOKENS = 48
SAMPLE_TOKENS = 80
OWN, CROSS = ("*.self_attention.weights",), ("decoder.*.cross_attention.weights",)
ATTENTION_SITES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("classifier", "gpt", "bert"), OWN),
    "translation": CROSS,
    "seq2seq": ("decoder.alignment.weights",),
}


@dataclass(frozen=True, eq=False)
class Moment:
    """What the model of one frame makes of the text.

    Shapes:
        attention: (layer, head, query_pos, key_pos), each row of weights sums to 1; no layer where the model has none
        probabilities: (class,); embedding: (width of the sentence vector,)

    Args:
        number: of the frame.
        probabilities, embedding: of a classifier, else None.
        xy: the embedding's place in each layout, by method: among its 5 nearest points.
        sample: what the model writes: the output sequence, a continuation, or the sentence with its guesses put in.
        tokens: labels of the attention's rows where each frame has its own, those of what its model writes; else None.
    """

    number: int
    attention: np.ndarray
    probabilities: np.ndarray | None = None
    embedding: np.ndarray | None = None
    xy: dict[str, tuple[float, float]] = field(default_factory=dict)
    sample: str = ""
    tokens: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class FollowedText:
    """One text, followed through the frames of a run.

    Args:
        text: as it was typed.
        tokens, key_tokens: labels of the attention's rows and columns; empty where there is no frame.
        attention_name: "self" or "cross".
        frames: in their order.
        goal: the right answer, where there is one that is known.
    """

    text: str
    tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    attention_name: str
    frames: tuple[Moment, ...]
    goal: str = ""


@dataclass(frozen=True, eq=False)
class _Question:
    """One text prepared for the models of a run: labels, and a function from a model to its Moment."""

    tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    attention_name: str
    answer: Callable[[Bundle, int], Moment]
    goal: str = ""


def follow_text(store: RunStore, text: str, after: int = -1) -> FollowedText:
    """Return what the model of each published frame after number `after` makes of a text.

    Raises:
        ValueError: the text is empty or too long, or cannot be read.
    """
    if not text.strip():
        raise ValueError("text is empty; at least one word is needed")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"text has {len(text):,} characters; at most {MOST_CHARACTERS} are followed through a run")
    numbers = [frame.number for frame in store.frames(after) if store.weights_path(frame.number) is not None]
    if not numbers:
        return FollowedText(text, (), (), "self", ())
    question = ASK[store.spec.data.kind](store, Tokenizer.load(store.folder / TOKENIZER), text, after)
    frames = tuple(question.answer(store.model(number), number) for number in numbers)
    return FollowedText(text, question.tokens, question.key_tokens, question.attention_name, frames, question.goal)


def _room(store: RunStore) -> int:
    return min(MOST_TOKENS, store.spec.model.max_len)


def _attention_sites(bundle: Bundle) -> tuple[str, ...]:
    """Return the pattern of the weights that are followed; none where the model has no attention."""
    without = bundle.kind == "seq2seq" and bundle.config.attention is None  # type: ignore[attr-defined]
    return () if without else ATTENTION_SITES.get(bundle.kind, ())


def _maps(bundle: Bundle, trace: Trace, queries: int, keys: int) -> np.ndarray:
    """Return the weights that are followed, (layer, head, query_pos, key_pos)."""
    for pattern in _attention_sites(bundle):
        return trace.stack(pattern)[:, 0].float().cpu().numpy()
    return np.zeros((0, 0, queries, keys), np.float32)


def _ask_classifier(store: RunStore, tokenizer: Tokenizer, text: str, after: int) -> _Question:
    encoding = tokenizer.encode(text, max_len=_room(store))
    places = {(layout.frame, layout.method): layout.xy for layout in store.layouts(after)}

    def answer(bundle: Bundle, number: int) -> Moment:
        pooled = sentence_site(bundle.model)
        logits, trace = capture(bundle.model, one_text(bundle, encoding), sites=(*_attention_sites(bundle), pooled))
        embedding = trace[pooled].float().cpu()  # (1, width of the sentence vector)
        points = torch.from_numpy(store.embeddings(number))  # (point, d_model)
        xy = {
            method: place_by_neighbours(embedding, points, torch.from_numpy(places[number, method]))[0]
            for method in ("tsne", "pca")
            if (number, method) in places
        }
        return Moment(
            number,
            _maps(bundle, trace, len(encoding), len(encoding)),
            logits[0].float().softmax(-1).cpu().numpy(),
            embedding[0].numpy(),
            {method: (float(place[0]), float(place[1])) for method, place in xy.items()},
        )

    return _Question(encoding.labels, encoding.labels, "self", answer)


def _right_answer(store: RunStore, text: str) -> tuple[str, str | None]:
    """Return the text as the run's model reads it, and its right answer; None where the run's data have none."""
    spec = store.spec
    if spec.data.source != "pairs":
        letters = " ".join("".join(text.split()))
        return letters, rule_answer(cast(Rule, spec.data.source), letters)
    text = " ".join(text.split())
    known = {source: target for part in pairs_of(spec, store.folder) for source, target in part}
    return text, known.get(text)


def _ask_translation(store: RunStore, tokenizer: Tokenizer, text: str, after: int) -> _Question:
    """The attention is that of writing the right answer, so that its axes stay the same from frame to frame.

    Where the right answer is not known, it is that of writing the frame's own.
    """
    text, goal = _right_answer(store, text)
    source = tokenizer.encode(text, max_len=_room(store))
    right = None if goal is None else tokenizer.encode(goal, max_len=_room(store)).ids
    bos_id, eos_id = tokenizer.bos_id, tokenizer.eos_id
    assert bos_id is not None
    assert eos_id is not None

    def answer(bundle: Bundle, number: int) -> Moment:
        steps = greedy(
            bundle.model,  # type: ignore[arg-type]
            one_text(bundle, source),
            bos_id=bos_id,
            eos_id=eos_id,
            most=min(2 * len(source) + 4, _room(store) - 1),
        )
        own = [step.token_id for step in steps]
        target = (bos_id, *own) if right is None else right
        read = torch.tensor([target[:-1]], device=bundle.device)
        _, trace = capture(bundle.model, one_text(bundle, source), read, sites=_attention_sites(bundle))
        maps = _maps(bundle, trace, len(target) - 1, len(source))
        tokens = tokenizer.labels_of(own) if right is None else None
        return Moment(number, maps, sample=tokenizer.decode(own), tokens=tokens)

    tokens = () if right is None else tokenizer.labels_of(right[1:])
    return _Question(tokens, source.labels, "cross", answer, goal or "")


def _ask_gpt(store: RunStore, tokenizer: Tokenizer, text: str, after: int) -> _Question:
    encoding = tokenizer.encode(text, max_len=_room(store))

    def answer(bundle: Bundle, number: int) -> Moment:
        ids = one_text(bundle, encoding)
        _, trace = capture(bundle.model, ids, sites=_attention_sites(bundle))
        generator = torch.Generator(ids.device).manual_seed(store.spec.training.seed)
        steps = sample(bundle.model, ids, most=SAMPLE_TOKENS, temperature=0.8, generator=generator)  # type: ignore[arg-type]
        written = tokenizer.decode([step.token_id for step in steps])
        return Moment(number, _maps(bundle, trace, len(encoding), len(encoding)), sample=written)

    return _Question(encoding.labels, encoding.labels, "self", answer)


def _ask_bert(store: RunStore, tokenizer: Tokenizer, text: str, after: int) -> _Question:
    encoding = tokenizer.encode(text, max_len=_room(store))

    def answer(bundle: Bundle, number: int) -> Moment:
        output, trace = capture(bundle.model, one_text(bundle, encoding), sites=_attention_sites(bundle))
        guesses = output.mlm_logits[0].argmax(-1).tolist()
        words = [
            f"[{tokenizer.label_of(guess)}]" if id_ == tokenizer.mask_id else label
            for id_, label, guess in zip(encoding.ids, encoding.labels, guesses, strict=True)
        ]
        return Moment(number, _maps(bundle, trace, len(encoding), len(encoding)), sample=" ".join(words[1:-1]))

    return _Question(encoding.labels, encoding.labels, "self", answer)


ASK: dict[str, Callable[[RunStore, Tokenizer, str, int], _Question]] = {
    "classifier": _ask_classifier,
    "translation": _ask_translation,
    "gpt": _ask_gpt,
    "bert": _ask_bert,
}
