"""Many sentences translated at once: the best hypothesis of a beam search for each.

Wu et al. 2016, section 7.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.generation.beam import Beams, check_search, penalty
from transformer_core.generation.writer import Writer
from transformer_core.training.batching import padded


def translate(
    bundle: Bundle,
    texts: Sequence[str],
    *,
    width: int = 4,
    length_penalty: float = 0.6,
    most: int | None = None,
    bos_id: int | None = None,
    eos_id: int | None = None,
    exclude: tuple[int, ...] = (),
    batch_size: int = 64,
) -> list[str]:
    """Translate sentences, those of about one length together; each comes out as beam_search would translate it alone.

    Args:
        bundle: of a kind that writes from a source.
        texts: sentences; of a longer one, the model reads its first max_len tokens.
        width, length_penalty: as in beam_search; width 1 is greedy.
        most: tokens of a translation at most; by default, and in any case, max_len - 1.
        bos_id, eos_id: what a target begins and ends with; by default the tokenizer's [BOS] and [EOS].
        exclude: tokens that are never written; none by default.
        batch_size: sentences at once; it changes speed and memory only.

    Raises:
        ValueError: the model writes from no source, the tokenizer lacks [BOS] or [EOS], or as beam_search.
    """
    bundle.must_ask("words")
    model: Writer = bundle.model  # type: ignore[assignment]
    tokenizer = bundle.tokenizer
    bos_id = tokenizer.bos_id if bos_id is None else bos_id
    eos_id = tokenizer.eos_id if eos_id is None else eos_id
    if bos_id is None or eos_id is None:
        raise ValueError(f"bundle={bundle.name!r} has a tokenizer without [BOS] or [EOS]; give bos_id and eos_id")
    most = min(bundle.config.max_len - 1, most or bundle.config.max_len)
    search = _Search(model, width, length_penalty, bos_id, eos_id, most, exclude)
    sources = tokenizer.ids_of(texts, max_len=bundle.config.max_len)
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    device = bundle.device
    written = [""] * len(sources)
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        source_ids = padded([sources[place] for place in batch], bundle.config.padding).to(device)
        for place, ids in zip(batch, search.best(source_ids), strict=True):
            written[place] = tokenizer.decode(ids)
    return written


class _Search:
    def __init__(
        self,
        model: Writer,
        width: int,
        length_penalty: float,
        bos_id: int,
        eos_id: int,
        most: int,
        exclude: tuple[int, ...],
    ) -> None:
        check_search(width, length_penalty)
        self.model, self.width, self.length_penalty = model, width, length_penalty
        self.bos_id, self.eos_id, self.most, self.exclude = bos_id, eos_id, most, exclude

    @torch.inference_mode()
    def best(self, source_ids: Tensor) -> list[list[int]]:
        """Return the best hypothesis of each source (sentence, source_pos), without beginning and end."""
        device = source_ids.device
        beams = Beams.begin(self.model, source_ids, self.bos_id)
        going = list(range(len(source_ids)))
        ended: list[list[tuple[float, list[int]]]] = [[] for _ in going]
        for length in range(1, self.most + 1):
            weighed = beams.weigh(self.model, device, self.width, self.exclude)
            candidates = weighed.candidates
            done, on = candidates.sorted_out(self.width, self.eos_id)
            for row, rank in done.nonzero().tolist():
                score = float(candidates.log_probs[row, rank]) / penalty(length, self.length_penalty)
                ids = beams.token_ids[row, int(candidates.parents[row, rank]), 1:]
                ended[going[row]].append((score, ids.tolist()))
            rows = [row for row, sentence in enumerate(going) if len(ended[sentence]) < self.width]
            going = [going[row] for row in rows]
            if not going or not on.shape[1]:
                break
            beams = weighed.follow(self.model, device, torch.tensor(rows), on)
        for row, sentence in enumerate(going):  # cut off at `most` tokens
            for ids, log_prob in zip(beams.token_ids[row, :, 1:].tolist(), beams.log_probs[row].tolist(), strict=True):
                ended[sentence].append((log_prob / penalty(len(ids), self.length_penalty), ids))
        return [max(hypotheses, key=lambda scored: scored[0])[1] for hypotheses in ended]
