"""Questions about a scene whose answers are measured: which of the options came true, and by what number.

A lecture names one of QUESTIONS; its options are what that function may find.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from types import MappingProxyType

import numpy as np

from transformer_core.analysis.attention.head_ablation import head_effects, without_head
from transformer_core.analysis.attention.occlusion import word_importance
from transformer_core.analysis.attention.tendencies import NONE, PLACES, TENDENCIES, labelled, tendencies_of_text
from transformer_core.analysis.before.alignments import word_alignment
from transformer_core.analysis.before.by_length import by_length
from transformer_core.analysis.before.gates import gates_of_sentence
from transformer_core.analysis.before.reach import sentence_reach
from transformer_core.analysis.encoder.layers import POOLINGS, layer_verdicts
from transformer_core.analysis.feed_forward.other_activation import swapped_activation
from transformer_core.analysis.finding import Finding, moved, plain_word
from transformer_core.analysis.gpt.ladder import ladder
from transformer_core.analysis.gpt.next_token import expected
from transformer_core.analysis.lab.changes import Steer, code_of, streams
from transformer_core.analysis.lab.directions import Direction
from transformer_core.analysis.lab.heads_off import few_heads, head_boards
from transformer_core.analysis.lab.intervention import changed_answers, intervene
from transformer_core.analysis.lab.patching import patch_map, patched_stacks
from transformer_core.analysis.lab.text_sets import measured_cases
from transformer_core.analysis.lab.weight_curve import KEPT
from transformer_core.analysis.lab.weights import WeightEdit, matrices_of
from transformer_core.analysis.learning.questions import QUESTIONS_OF_A_STEP
from transformer_core.analysis.masks.masked_head import masked_head
from transformer_core.analysis.outcome import read, require_outcome
from transformer_core.analysis.positions.order_effect import order_edits
from transformer_core.analysis.rank_correlation import agreement_word
from transformer_core.analysis.stream.residual_sum import stream_sum
from transformer_core.analysis.words.nearest_words import nearest_words
from transformer_core.bundle import Bundle
from transformer_core.config import require_index
from transformer_core.prompt import Prompt
from transformer_core.reader import Outcome

LEAST = 0.2  # by which a head must look at a kind of place more than a uniform one does
BY_LENGTH = "length_en_fr"
BITS = tuple(range(8, 0, -1))
HALF = 0.5
CONTROLS = 16


def verdict(*, prompt: Prompt) -> Finding:
    """Which outcome is the likeliest (a class, the next token, the token at [MASK]), and its probability.

    Raises:
        ValueError: the model predicts nothing from the text.
    """
    encoding = prompt.encoding
    outcome = require_outcome(prompt.bundle, encoding)
    return _likeliest(prompt.bundle, outcome, read(prompt.bundle, encoding, sites=()).probabilities)


def how_many_tokens(*, prompt: Prompt) -> Finding:
    """Into how many tokens a text is cut, those that the template adds left out.

    Raises:
        ValueError: as encode.
    """
    count = sum(not special for special in prompt.encoding.special)
    return Finding(str(count), count)


def nearest_word(*, prompt: Prompt, row: int) -> Finding:
    """Which word's vector in the table has the smallest angle with that of a token of the text, and the cosine.

    Args:
        row: the token's place.

    Raises:
        ValueError: there is no such place, or as nearest_words.
    """
    encoding = prompt.encoding
    require_index("row", row, len(encoding))
    found = nearest_words(bundle=prompt.bundle, token_id=encoding.ids[row], k=1)
    return Finding(plain_word(found.labels[0]), float(found.values[0]))


def without_positions(*, prompt: Prompt) -> Finding:
    """Whether the verdict flips once all positions are taken away, or moves much or little; the winner's move.

    Raises:
        ValueError: the model predicts nothing from the text, or adds no positions.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    require_outcome(bundle, encoding)
    after = read(bundle, encoding, sites=(), edits=order_edits(bundle.config, None)).probabilities
    return moved(read(bundle, encoding, sites=()).probabilities, after)


def under_a_causal_mask(*, prompt: Prompt) -> Finding:
    """Whether the verdict flips where no token sees a later one, or moves much or little; the winner's move.

    Raises:
        ValueError: as masked_head.
    """
    found = masked_head(prompt=prompt, pads=0, mask="causal", layer=0, head=0, everywhere=True)
    return moved(found.before, found.after)


def where_a_head_looks(*, prompt: Prompt, layer: int, head: int) -> Finding:
    """Which kind of place a head looks at (TENDENCIES; "none" where at no kind), and how much more than a uniform head.

    Raises:
        ValueError: there is no such layer or head, or as read.
    """
    scores = tendencies_of_text(prompt=prompt).scores
    require_index("layer", layer, scores.shape[0])
    require_index("head", head, scores.shape[1])
    found = int(labelled(scores[layer, head], LEAST))
    value = scores[layer, head, found] if found != NONE else np.nanmax(scores[layer, head, : len(PLACES)])
    return Finding("none" if found == NONE else TENDENCIES[found], float(value))


def a_head_off(*, prompt: Prompt, layer: int, head: int) -> Finding:
    """Whether the verdict flips without a head, or moves much or little; the winner's move.

    Raises:
        ValueError: as without_head.
    """
    found = without_head(prompt=prompt, layer=layer, head=head)
    return moved(found.before, found.after)


def strongest_head(*, prompt: Prompt) -> Finding:
    """Whether the head with the greatest weight is the one without which the verdict moves most; its place by that.

    Raises:
        ValueError: as head_effects.
    """
    found = head_effects(prompt=prompt)
    return Finding("strongest" if found.place == 1 else "another", found.place)


def weightiest_word(*, prompt: Prompt) -> Finding:
    """Which word takes most from the likeliest outcome when it is hidden, and how much.

    Raises:
        ValueError: as word_importance.
    """
    found = word_importance(prompt=prompt)
    place = int(np.nan_to_num(found.worth, nan=-np.inf).argmax())
    start, end = found.spans[place]
    return Finding(prompt.text[start:end], float(found.worth[place]))


def another_activation(*, prompt: Prompt) -> Finding:
    """Whether the verdict flips with ReLU in the place of GELU, or the other way round, or moves much or little.

    Raises:
        ValueError: the model was trained with another one, or predicts nothing from the text.
    """
    found = swapped_activation(prompt=prompt)
    other = {"relu": "gelu", "gelu": "relu"}.get(found.used)
    if other is None:
        raise ValueError(f"bundle={prompt.bundle.name!r} was trained with {found.used}; it must be relu or gelu")
    before, after = (found.probabilities[found.names.index(name)] for name in (found.used, other))
    return moved(tuple(before.tolist()), tuple(after.tolist()))


def larger_part(*, prompt: Prompt) -> Finding:
    """Which wrote the longer vectors into the first token's stream, attention or feed-forward; the ratio of the sums.

    Raises:
        ValueError: as stream_sum.
    """
    found = stream_sum(prompt=prompt, token=0)
    attention, feed_forward = (
        sum(norm for part, norm in zip(found.parts, found.norms.tolist(), strict=True) if part.endswith(name))
        for name in ("self_attention", "feed_forward")
    )
    if attention >= feed_forward:
        return Finding("attention", attention / feed_forward)
    return Finding("feed_forward", feed_forward / attention)


def settled_at(*, prompt: Prompt) -> Finding:
    """From which depth on the class map gives the verdict, 0 being the embedding; the probability there.

    Raises:
        ValueError: as layer_verdicts.
    """
    found = layer_verdicts(prompt=prompt)
    own = found.probabilities[POOLINGS.index(found.pooling)]
    return Finding(str(found.settled), float(own[found.settled, found.winner]))


def next_token(*, prompt: Prompt) -> Finding:
    """Which token is the likeliest after the text, and its probability.

    Raises:
        ValueError: as expected.
    """
    place = len(prompt.encoding)
    found = expected(prompt=prompt, place=place, top=1)
    return Finding(plain_word(found.labels[0]), float(found.probabilities[0]))


def written_word(*, prompt: Prompt, step: int) -> Finding:
    """Which word a greedy translation writes at a step, and its probability.

    Raises:
        ValueError: there is no such step, or as word_alignment.
    """
    found = word_alignment(prompt=prompt)
    require_index("step", step, len(found.target))
    return Finding(plain_word(found.target[step]), float(found.probabilities[step]))


def where_the_decoder_looks(*, prompt: Prompt, step: int) -> Finding:
    """At which word of the source a decoder looks most as it writes a step, and the mean weight over heads and layers.

    Raises:
        ValueError: there is no such step, or as word_alignment.
    """
    found = word_alignment(prompt=prompt)
    require_index("step", step, len(found.target))
    special = np.array(prompt.encoding.special)
    mean = found.weights.mean(0)[step]
    place = int(np.where(special, -1.0, mean).argmax())
    return Finding(plain_word(found.source[place]), float(mean[place]))


def most_left_of(*, prompt: Prompt) -> Finding:
    """Which token has the largest share in the last state of a recurrent layer that reads forward, and that share.

    Raises:
        ValueError: as gates_of_sentence.
    """
    found = gates_of_sentence(prompt=prompt, direction="forward")
    place = int(found.share.argmax())
    return Finding(plain_word(found.tokens[place]), float(found.share[place]))


def half_of_the_gradient(*, prompt: Prompt) -> Finding:
    """How many tokens back the gradient of a recurrent layer's last state first falls below half; its share there.

    Raises:
        ValueError: as sentence_reach.
    """
    found = sentence_reach(prompt=prompt)
    back = found.norms[::-1] / found.norms[found.last]
    return Finding("never", float(back.min())) if found.half < 0 else Finding(str(found.half), float(back[found.half]))


def falls_most_with_length() -> Finding:
    """Which translator loses most BLEU from the shortest captions to the longest, and how much.

    Raises:
        ValueError: as by_length.
    """
    found = by_length(name=BY_LENGTH)
    place = int(found.lost.argmax())
    return Finding(found.models[place], float(found.lost[place]))


def one_head_carries(*, prompt: Prompt) -> Finding:
    """Whether the head without which, alone, the answer moves most makes it flip, moves it much or little; its move.

    Raises:
        ValueError: as head_boards.
    """
    found = head_boards(prompt=prompt)
    change = next(iter(found.change.values()))
    layer, head = np.unravel_index(int(np.abs(change).argmax()), change.shape)
    return a_head_off(prompt=prompt, layer=int(layer), head=int(head))


def heads_enough(*, prompt: Prompt) -> Finding:
    """How many heads keep 95 % of the answer's probability, the least worth going first: at most a quarter of them
    ("quarter"), at most half ("half"), or "more"; their number.

    Raises:
        ValueError: as few_heads.
    """
    found = few_heads(prompt=prompt)
    needed, count = int(found.enough[0]), int(found.off[-1])
    return Finding("quarter" if needed <= count / 4 else "half" if needed <= count / 2 else "more", needed)


def arrives_in_layer(*, prompt: Prompt, other: str) -> Finding:
    """From which layer on the last token's stream alone brings back more than half of the first text's answer, read in
    the other text ("never" where none does); the share there.

    Args:
        other: the text that is read.

    Raises:
        ValueError: as patch_map.
    """
    found = patch_map(prompt=prompt, other=prompt.with_text(other), stack=patched_stacks(prompt.bundle)[0])
    last = found.exact[0][:, -1]
    enough = np.flatnonzero(last > HALF)
    return Finding(str(int(enough[0])) if enough.size else "never", float(last[enough[0] if enough.size else -1]))


def gradient_foretells(*, prompt: Prompt, other: str) -> Finding:
    """How well one gradient foretells the whole map of patches: "close", "loose" or "hardly"; the rank correlation.

    Args:
        other: the text that is read.

    Raises:
        ValueError: as patch_map.
    """
    found = patch_map(prompt=prompt, other=prompt.with_text(other), stack=patched_stacks(prompt.bundle)[0])
    word = agreement_word(found.agreement.rho)
    return Finding("hardly" if word == "none" else word, found.agreement.rho)


def bits_needed(*, bundle: Bundle) -> Finding:
    """How few bits for every matrix, a step for each, keep 90 % of the right answers to built-in texts, and with all
    more bits, too ("9" where 8 do not); the share of right answers with one bit less.
    """
    cases = measured_cases(bundle)
    whole, fewest, accuracy = changed_answers(cases, ()).accuracy, BITS[0] + 1, 0.0
    for bits in BITS:
        edits = tuple(WeightEdit(name, "round", float(bits)) for name in matrices_of(bundle.model))
        accuracy = changed_answers(cases, edits).accuracy
        if accuracy < KEPT * whole:
            break
        fewest = bits
    return Finding(str(fewest), accuracy)


def steering_beats_chance(*, prompt: Prompt, layer: int, strength: int) -> Finding:
    """Whether the direction from negative to positive reviews moves the answer more than each of 16 random ones of its
    length ("yes", "no"); its change of ln p in nats.

    Args:
        layer: from 0; strength: in mean lengths of the stream.

    Raises:
        ValueError: there is no such layer, or as intervene.
    """
    sites = next(iter(streams(prompt.bundle).values()))
    require_index("layer", layer, len(sites))
    change = code_of(Steer(sites[layer], float(strength), Direction("classes")))
    found = intervene(prompt=prompt, changes=(change,), controls=CONTROLS)
    moved = abs(found.after - found.before)
    return Finding("yes" if moved > np.abs(found.controls - found.before).max() else "no", found.after - found.before)


def worth_of_a_change(*, rung: str) -> Finding:
    """Whether a change since 2017 lowered the loss of the ladder's models ("better", "worse", or "within" what seeds
    differ by); by how many nats a token.

    Raises:
        ValueError: as ladder.
    """
    found = ladder(rungs=(rung,))
    return Finding(found.outcome(rung), float(found.worth[0]))


QUESTIONS: Mapping[str, Callable[..., Finding]] = MappingProxyType(
    {
        question.__name__: question
        for question in (
            verdict,
            how_many_tokens,
            nearest_word,
            without_positions,
            under_a_causal_mask,
            where_a_head_looks,
            a_head_off,
            strongest_head,
            weightiest_word,
            another_activation,
            larger_part,
            settled_at,
            next_token,
            written_word,
            where_the_decoder_looks,
            most_left_of,
            half_of_the_gradient,
            falls_most_with_length,
            one_head_carries,
            heads_enough,
            arrives_in_layer,
            gradient_foretells,
            bits_needed,
            steering_beats_chance,
            worth_of_a_change,
            *QUESTIONS_OF_A_STEP,
        )
    }
)


READ = ("bundle", "prompt")


def taken_by(question: str) -> dict[str, type]:
    """Return what a question takes from its scene's link besides model and text: int or str, by name."""
    parameters = signature(QUESTIONS[question]).parameters
    return {name: one.annotation for name, one in parameters.items() if name not in READ}


def reads(question: str) -> tuple[str, ...]:
    """Return what a question is about: "bundle", a model, or "prompt", a model and the text that it reads."""
    return tuple(name for name in signature(QUESTIONS[question]).parameters if name in READ)


def _likeliest(bundle: Bundle, outcome: Outcome, probabilities: np.ndarray) -> Finding:
    winner = int(np.argmax(probabilities))
    return Finding(plain_word(outcome.reader.label(winner)), float(probabilities[winner]))
