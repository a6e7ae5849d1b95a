"""Recipes of classifiers: their data, their pretraining, and cards that say what evaluate measures."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import combinations
from statistics import mean

import numpy as np
import pytest
import torch

from tests.helpers.engine import separable, shipped
from transformer_core.config import ModelConfig
from transformer_core.examples import Example
from transformer_core.models import Bert, Classifier
from transformer_core.recipes import sentiment
from transformer_core.recipes.opinions import GRAMMAR, LEXICON, opinions
from transformer_core.recipes.reviews import STRETCHES, Crops, ReviewBatches, average, copy_encoder, describe, set_aside
from transformer_core.recipes.sentiment import divided, everyday_rows, right_of, without_parts_of
from transformer_core.recipes.texts import Say, read_opinions
from transformer_core.text import Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Run
from transformer_core.training.objectives import masked_words


def test_what_is_set_aside_is_balanced_and_not_trained_on():
    examples = separable(100)
    twice = [*examples, *(Example(f"  {example.text.upper()} ", example.label) for example in examples)]
    train, aside = set_aside(twice, 10, seed=3)
    assert Counter(example.label for example in aside) == {0: 10, 1: 10}
    assert sorted([*train, *aside], key=str) == sorted(examples, key=str)
    assert (train, aside) == set_aside(twice, 10, seed=3) != set_aside(twice, 10, seed=4)


def test_what_recipes_set_aside_is_as_it_was_when_they_were_run():
    train, aside = set_aside([Example(f"text {n}", n % 2) for n in range(12)], 2, seed=0)
    assert [example.text for example in aside] == ["text 9", "text 2", "text 7", "text 4"]
    assert len(train) == 8


def test_too_few_reviews_are_refused(tmp_path, capsys):
    with pytest.raises(ValueError, match="label 0 has 6 different reviews; to set 6 aside, more are needed"):
        set_aside(separable(12), 6, seed=0)
    assert sentiment.main(["--data", str(tmp_path / "nowhere")]) == 2
    error = capsys.readouterr().err
    assert "nowhere and its folders hold no train25k.csv.gz" in error
    assert error.count("\n") == 1


def test_crops_are_stretches_of_the_review():
    rng = np.random.default_rng(0)
    ids, ends = np.arange(100), np.array([10, 30, 31, 90])
    for crops in (Crops(1.0, 0.0), Crops(0.0, 1.0), Crops(0.0, 0.0)):
        for _ in range(50):
            crop = crops.cut(ids, ends, 40, rng)
            assert 1 <= len(crop) <= 40
            assert crop.tolist() == list(range(crop[0], crop[0] + len(crop)))
    assert Crops(1.0, 0.0).cut(ids, ends, 40, rng).tolist() == list(range(40))
    starts = {int(Crops(0.0, 0.0).cut(ids, ends, 40, rng)[0]) for _ in range(200)}
    assert starts == {0, 10, 30, 31, 90}


@pytest.mark.parametrize("language", sentiment.FULL)
def test_the_shipped_bundle_is_what_the_recipe_makes(language):
    made_before, settings = shipped(sentiment.NAMES[language]), sentiment.FULL[language]
    vocabulary = {"vocab_size": made_before.config.vocab_size, "target_vocab_size": made_before.config.vocab_size}
    assert made_before.config == replace(settings.model, **vocabulary)
    assert describe(settings, Say("en")) in made_before.card
    assert describe(settings, Say("zh")) in made_before.card_zh


EXAMPLES = [*separable(300), *(Example(f"  {example.text.upper()} ", example.label) for example in separable(300))]


@pytest.mark.parametrize("balanced", [True, False])
def test_no_text_is_in_two_of_the_three_parts(balanced: bool) -> None:
    parts = divided(EXAMPLES, choice=20, test=40, seed=3, balanced=balanced)
    assert [len(part) for part in parts[1:]] == [20, 40]
    assert sum(map(len, parts)) == 300
    texts = [{" ".join(example.text.casefold().split()) for example in part} for part in parts]
    assert not any(first & second for first, second in combinations(texts, 2))
    assert parts == divided(EXAMPLES, choice=20, test=40, seed=3, balanced=balanced)
    assert parts != divided(EXAMPLES, choice=20, test=40, seed=4, balanced=balanced)


def test_a_balanced_part_has_half_of_each_class_and_any_other_as_many_as_the_data() -> None:
    lopsided = [*separable(80), *(Example(f"more {example.text}", 1) for example in separable(80))]
    shares = [Counter(e.label for e in part) for part in divided(lopsided, choice=20, test=20, seed=0)[1:]]
    assert shares == [{0: 10, 1: 10}] * 2
    shares = [Counter(e.label for e in part) for part in divided(lopsided, choice=20, test=20, seed=0, balanced=False)]
    assert shares[1:] == [{0: 5, 1: 15}] * 2


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(ValueError, match="to set 20 aside, more are needed"):
        divided(separable(40), choice=2, test=40, seed=0)


def test_phrases_of_a_sentence_set_aside_are_left_out_but_single_words_stay() -> None:
    sentences = [Example("The plot, though thin, is never dull.", 1)]
    inside = ["never dull", "Though thin , is never dull", "the plot though"]
    outside = ["dull", "plot", "dull never", "is dull", "a thin plot", "the plot is never dull"]
    left = without_parts_of([Example(text, 1) for text in inside + outside], sentences)
    assert [example.text for example in left] == outside


def test_a_table_of_everyday_sentences_says_which_are_right() -> None:
    chances = (0.9, 0.5, 0.7)
    sentences = (("Good.", 1), ("Bad.", 0), ("Awful.", 0))
    assert right_of(chances, sentences) == [True, True, False]
    assert everyday_rows(chances, sentences, Say("en")).splitlines() == [
        "| Good. | positive | 0.90 | yes |",
        "| Bad. | negative | 0.50 | yes |",
        "| Awful. | negative | 0.70 | **no** |",
    ]
    assert "| Awful. | 负面 | 0.70 | **否** |" in everyday_rows(chances, sentences, Say("zh"))


TEXTS = ["one two three four five six", "two three four five six one", "three four five six one two"]
TRAINING = TrainConfig(learning_rate=5e-3, batch_size=8, epochs=40)


def small(vocab_size: int) -> ModelConfig:
    """Return a model for six words."""
    return ModelConfig(vocab_size=vocab_size, d_model=32, n_heads=2, d_ff=64, n_layers=1, max_len=8, dropout=0.0)


def test_hidden_words_are_guessed_from_their_neighbours() -> None:
    tokenizer = Tokenizer.train("word", TEXTS, min_frequency=1)
    rows = [np.array(tokenizer.encode(text).ids[1:-1], dtype=np.int32) for text in TEXTS * 8]
    batches = ReviewBatches(rows, [0] * len(rows), tokenizer, STRETCHES, max_len=8, batch_size=8, seed=0)
    torch.manual_seed(TRAINING.seed)
    model, objective = Bert(small(tokenizer.vocab_size)), partial(masked_words, probability=0.3)
    run = Run(model, objective, batches, steps_per_epoch=len(batches), config=TRAINING)
    losses = [step.loss for step in run.steps()]
    by_counts_alone = np.log(6)
    assert mean(losses[:5]) > by_counts_alone
    assert mean(losses[-10:]) < 0.7 * by_counts_alone  # some words lose both neighbours, too


def test_the_classifier_takes_over_every_weight_of_the_encoder() -> None:
    classifier, bert = Classifier(small(20)), Bert(small(20))
    copy_encoder(classifier, bert)
    ids = torch.randint(7, 20, (2, 5))
    for name, parameter in classifier.encoder.named_parameters():
        assert torch.equal(parameter, bert.encoder.get_parameter(name))
        assert parameter is not bert.encoder.get_parameter(name)
    assert torch.equal(classifier.eval().encoder(ids), bert.eval().encoder(ids))


def test_the_mean_of_three_models_has_the_mean_of_each_weight_and_of_equal_ones_the_weights_themselves() -> None:
    models = [Classifier(small(20)) for _ in range(3)]
    wanted = [sum(each).div(3) for each in zip(*(model.parameters() for model in models), strict=True)]
    for weight, mean_weight in zip(average(models).parameters(), wanted, strict=True):
        torch.testing.assert_close(weight, mean_weight)
    one = Classifier(small(20))
    twins = [Classifier(small(20)) for _ in range(3)]
    for twin in twins:
        twin.load_state_dict(one.state_dict())
    for weight, same in zip(average(twins).parameters(), one.parameters(), strict=True):
        assert torch.equal(weight, same)


COUNT = 12_000
SLOT = re.compile(r"\{(a:)?(\w+?)2?\}")


@pytest.fixture(scope="module")
def written() -> list[Example]:
    return opinions(COUNT, seed=0)


def test_the_same_seed_writes_the_same_and_another_seed_others(written) -> None:
    assert opinions(COUNT, seed=0) == written
    assert opinions(100, seed=0) == written[:100]
    assert opinions(100, seed=1) != written[:100]


def test_opinions_are_those_that_the_shipped_classifier_learned_from(written) -> None:
    rows = json.dumps([[example.text, example.label] for example in written], ensure_ascii=False)
    assert hashlib.sha256(rows.encode()).hexdigest()[:16] == "d4b77d684e090db2"


def test_all_are_different_and_half_of_them_are_positive(written) -> None:
    assert len(written) == COUNT
    assert len({example.text.casefold() for example in written}) == COUNT
    assert Counter(example.label for example in written)[1] == pytest.approx(COUNT / 2, rel=0.05)


def test_none_is_a_sentence_that_cards_report_on(written) -> None:
    everyday = {re.sub(r"\W+", " ", text.casefold()).strip() for text, _ in read_opinions("en")}
    assert not [example for example in written if re.sub(r"\W+", " ", example.text.casefold()).strip() in everyday]


def test_no_slot_is_left_open(written) -> None:
    assert not [example.text for example in written if re.search(r"[{}|]|\b[a-z]+_[a-z]+\b", example.text)]


def test_the_article_fits_the_word(written) -> None:
    found = [match.groups() for example in written for match in re.finditer(r"\b([Aa]n?) (\w[\w-]*)", example.text)]
    assert len(found) > 300
    silent_or_not = {"useful": "a", "useless": "a", "honest": "an", "hour": "an", "one": "a"}
    for article, word in found:
        expected = silent_or_not.get(word.lower(), "an" if word[0].lower() in "aeiou" else "a")
        assert article.lower() == expected, f"{article} {word}"


def test_every_slot_of_the_grammar_has_words() -> None:
    slots = {name for row in GRAMMAR for _, name in SLOT.findall(row.text)}
    assert slots <= LEXICON.keys()
    assert all(len(LEXICON[name]) > 1 for name in slots)
