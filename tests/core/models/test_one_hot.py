"""A recurrent language model that reads one-hot vectors: the same as with an embedding of rows of the unit matrix."""

import torch

from tests.helpers.engine import close, made
from transformer_core.analysis.before.textbook import Textbook, textbook
from transformer_core.models.recurrent import RecurrentLm


@torch.no_grad()
def test_a_one_hot_vector_picks_a_column_and_a_textbooks_network_has_so_many_numbers() -> None:
    model, ids = (
        made(RecurrentLm, one_hot=True),
        torch.randint(1, 13, (3, 6), generator=torch.Generator().manual_seed(2)),
    )
    embedded = made(RecurrentLm, d_model=13)
    embedded.load_state_dict(model.state_dict(), strict=False)
    embedded.embedding.weight.copy_(torch.eye(13) / 13**0.5)
    embedded.recurrent.cell.hidden_proj.bias.zero_()
    close(model(ids), embedded(ids))
    assert textbook(vocab_size=67) == Textbook(one_hot=266_051, embedded=429_123)
