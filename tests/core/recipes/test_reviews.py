"""Guessing hidden words: the loss falls below what word counts alone give, and the encoder is handed over whole."""

from functools import partial
from statistics import mean

import numpy as np
import torch

from transformer_core.config import ModelConfig
from transformer_core.models import Bert, Classifier
from transformer_core.recipes.reviews import STRETCHES, ReviewBatches, average, copy_encoder
from transformer_core.text import Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Run
from transformer_core.training.objectives import masked_words

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
