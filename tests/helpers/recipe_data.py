"""Tiny data of every recipe, in the files that the recipes read."""

import csv
import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from tests.helpers.engine import separable
from tests.helpers.verses import verse
from transformer_core.bundle import Bundle, save
from transformer_core.config import ModelConfig
from transformer_core.models import Gpt
from transformer_core.recipes import gpt_poem, sentiment
from transformer_core.text import Tokenizer

ANIMALS, PLACES = ("dog", "cat", "bird", "horse", "fish"), ("river", "house", "tree", "hill", "road", "park")
CAPTIONS = [f"A {animal} is near the {place} ." for animal in ANIMALS for place in PLACES]
FRENCH = [f"Un {animal} est près du {place} ." for animal in ANIMALS for place in PLACES]
GERMAN = [f"Ein {animal} ist nahe bei {place} ." for animal in ANIMALS for place in PLACES]
CHINESE = [f"{animal}在{place}旁邊。" for animal in ANIMALS for place in PLACES]
STORY = "Once there was a dog. It ran to the hill. It saw a bird! The bird flew away."
SHAKESPEARE = "to be, or not to be: that is the question\n" * 120
SUBJECTS = ("books", "takeaway", "hotels", "hotels2", "phones")


def write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


def write_table(path: Path, *rows: tuple) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def write_data(folder: Path) -> Path:
    """Write tiny data of every recipe into a folder, and return it."""
    for name, times in (("train", 7), ("val", 1), ("test_2016_flickr", 1)):  # three steps of training
        for language, lines in (("en", CAPTIONS), ("fr", FRENCH), ("de", GERMAN)):
            write(folder / f"{name}.{language}.gz", lines * times)
    rows = [json.dumps({"en": en, "zh": zh}) for en, zh in zip(CAPTIONS, CHINESE, strict=True)]
    for name in ("train", "val"):
        write(folder / f"en-zh.{name}.jsonl.gz", rows)
        write(folder / f"tinystories.{name}.jsonl.gz", [json.dumps({"text": STORY})] * 4)
    for number in range(1, 6):
        write(folder / f"captions.{number}.en.gz", [f"{caption[:-2]} {number} ." for caption in CAPTIONS])
    write(folder / "captions.val.en.gz", CAPTIONS)
    write(folder / "shakespeare.txt.gz", SHAKESPEARE.splitlines())
    write(folder / gpt_poem.TRAIN, verse(gpt_poem.POEMS_FOR_CHOICE + 100, 0))
    write(folder / gpt_poem.TEST, verse(30, 1))
    worlds = [[(example.text, example.label, 1) for example in separable(300, seed=seed)] for seed in range(3)]
    worlds[1] += [(text.split()[0], label, 0) for text, label, _ in worlds[1][:20]]
    for name, world in zip((sentiment.REVIEWS, sentiment.PHRASES, sentiment.PRODUCTS), worlds, strict=True):
        write_table(folder / name, ("text", "label", "sentence"), *world)
    own = [(example.text, example.label, SUBJECTS[place % 5]) for place, example in enumerate(separable(600))]
    write_table(folder / sentiment.CHINESE_REVIEWS, ("text", "label", "category"), *own)
    tokenizer = Tokenizer.train("character", [SHAKESPEARE], vocab_size=100, min_frequency=1, template="none")
    config = ModelConfig(vocab_size=tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=16, n_layers=1, max_len=32)
    save(Bundle("gpt-char", Gpt(config), tokenizer), folder / "beside" / "gpt-char")
    return folder
