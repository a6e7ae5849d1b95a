"""The grammar's files: all their frames, not only those that were drawn, keep what is held out apart."""

import copy
import json
import re
from random import Random

import pytest

from transformer_core.training.corpora import grammar as grammars
from transformer_core.training.corpora.grammar import CORPORA, SLOT, load_grammar, parse_grammar
from transformer_core.training.corpora.reviews import frame_of, in_place, write_review

LANGUAGES = ["en", "zh"]


def content_of(language):
    return json.loads((CORPORA / "reviews" / f"{language}.json").read_text(encoding="utf-8"))


def all_frames(grammar, text, part):
    """Yield every frame that a template can take on in a part."""
    match = next((m for m in SLOT.finditer(text) if m["name"] in grammar.clauses), None)
    if match is None:
        yield frame_of(text)
        return
    options = grammar.clauses[match["name"]]
    for clause in options.train + (options.held_out if part == "held_out" else ()):
        yield from all_frames(grammar, text[: match.start()] + in_place(clause, match, 10) + text[match.end() :], part)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_frame_that_can_be_written_is_in_both_parts(language):
    grammar = load_grammar(language)
    train, held_out = (
        {
            frame
            for ps in grammar.templates.values()
            for text in ps.of(part)
            for frame in all_frames(grammar, text, part)
        }
        for part in ("train", "held_out")
    )
    assert not train & held_out
    assert len(train) > 1_000


@pytest.mark.parametrize("language", LANGUAGES)
def test_held_out_frames_are_made_of_words_of_training_frames(language):
    grammar = load_grammar(language)
    pattern = r"\w+" if language == "en" else r"\w"
    sections = [*grammar.templates.values(), *grammar.clauses.values()]
    train, held_out = (
        {word for parts in sections for text in parts.of(part) for word in re.findall(pattern, SLOT.sub(" ", text))}
        for part in ("train", "held_out")
    )
    assert held_out <= train


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_template_fits_both_labels_in_every_domain(language):
    grammar = load_grammar(language)
    for construction in grammar.templates:
        for label in (0, 1):
            rng = Random(label)
            drawn = [write_review(grammar, construction, "held_out", label, rng) for _ in range(300)]
            signed = {polarity for review in drawn for _, _, polarity in review.words}
            assert {0, 1, None} >= signed
            assert label in signed


def test_a_clause_that_is_contradicted_has_its_signs_turned_round():
    slot = SLOT.search("although {-detail}, {+final}")
    assert slot is not None
    assert in_place("its {thing} is {+adj}, not {-adj}", slot, 10) == "its {thing} is {-adj10}, not {+adj10}"


def test_the_frame_covers_words_signs_and_punctuation():
    assert frame_of("Not {-adj}, but {+adj2}: the {thing}!") == "not <adj> but <adj> the <thing>"


def test_each_word_of_opinion_is_withheld_from_one_construction_and_all_share_equally():
    withheld = load_grammar("en").withheld
    counts = [list(withheld.values()).count(construction) for construction in grammars.TURNING]
    assert max(counts) - min(counts) <= 2


def broken(change):
    content = copy.deepcopy(content_of("en"))
    change(content)
    return content


def add_open_slot(content):
    content["templates"]["plain"]["train"].append("the {nonsense} was {+adj}.")


def share_a_template(content):
    content["templates"]["irony"]["held_out"].append(content["templates"]["irony"]["train"][0])


def shorten_a_list(content):
    content["opinions"]["did"]["positive"] = ["impressed me", "delighted me"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (add_open_slot, r"plain: 'the \{nonsense\} was \{\+adj\}\.' has the slot \{nonsense\}, which no list"),
        (share_a_template, "irony: .* is both for training and held out"),
        (shorten_a_list, r"list 'did' leaves \d words for \w+ in training; 3 are needed"),
    ],
)
def test_a_file_that_contradicts_itself_gets_words(change, words):
    with pytest.raises(ValueError, match=words):
        parse_grammar(broken(change))
