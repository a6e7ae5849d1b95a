"""Captions by picture and stories by sentence: the data of Bert and Gpt, and the part of it that is set aside.

Multi30k: Elliott et al. 2016; TinyStories: Eldan and Li 2023.
"""

import json
import random
import re
from dataclasses import dataclass
from pathlib import Path

from transformer_core.evaluation.gpt import read_text
from transformer_core.evaluation.translation import read_lines
from transformer_core.training.tasks.masked import SENTENCE

CAPTIONS_A_PICTURE = 5
PICTURES_SET_ASIDE = 1_000
NEEDS = "captions.1.en.gz to captions.5.en.gz of Multi30k and tinystories.train.jsonl.gz, in it or in its subfolders"
MARKS = {"œ": '"', "˜": "'", "™": "'", "“": "-", "”": " - ", "¦": "...", "": '"'}  # by the last of their three signs
MISREAD = re.compile("â€([œ˜™“”¦]?)")
CURLY = str.maketrans("“”‘’", "\"\"''")
Group = tuple[str, ...]  # sentences that belong together: captions of one picture, or a story's, in their order


@dataclass(frozen=True)
class Sentences:
    """Groups of sentences.

    Args:
        pictures: the captions of each picture.
        stories: the sentences of each story.
    """

    pictures: tuple[Group, ...]
    stories: tuple[Group, ...]


def find_file(folder: Path, *names: str) -> Path:
    """Return the first file of one of these names in a folder or one of its subfolders.

    Raises:
        ValueError: there is none.
    """
    paths = (path for name in names for path in (folder / name, *sorted(folder.glob(f"*/{name}"))))
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        raise ValueError(f"--data {folder} and its folders hold no {' or '.join(names)}")
    return found


def read_captions(folder: Path) -> list[Group]:
    """Return the five captions of each picture: line n of each file describes picture n.

    Raises:
        ValueError: a file is missing, or they differ in their number of lines.
    """
    files = [read_lines(find_file(folder, f"captions.{n}.en.gz")) for n in range(1, CAPTIONS_A_PICTURE + 1)]
    if len({len(lines) for lines in files}) > 1:
        raise ValueError(f"the captions files have {[len(lines) for lines in files]} lines; they must be parallel")
    return list(zip(*files, strict=True))


def mended(text: str) -> str:
    """Return a text with the quotation marks and dashes put right that were decoded in the wrong alphabet.

    Their three bytes of UTF-8 were read as Windows-1252: a dash became "â€”"; of the closing quotation mark, whose last
    byte has no sign there, only "â€" is left. What is put right is written in ASCII, as most of the stories are.
    """
    text = MISREAD.sub(lambda found: MARKS[found[1]], text)
    return text.translate(CURLY)


def read_stories(folder: Path, name: str = "tinystories.train.jsonl.gz") -> list[str]:
    """Return the stories of a file of JSON lines with a "text" each, with their quotation marks mended.

    Raises:
        ValueError: a line is no such object.
    """
    try:
        return [mended(json.loads(line)["text"]) for line in read_text(find_file(folder, name)).splitlines()]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{name}: every line must be an object with a text: {error}") from error


def sentences_in(story: str) -> Group:
    """Cut a story into its sentences, in their order."""
    return tuple(found.strip() for found in SENTENCE.findall(story) if len(found.strip()) > 1)


def read_sentences(folder: Path) -> tuple[Sentences, Sentences]:
    """Return the training part and the part set aside: the last 1,000 pictures, and the stories of the val file."""
    pictures = read_captions(folder)
    cut = max(len(pictures) - PICTURES_SET_ASIDE, len(pictures) // 2)
    stories = [
        [sentences_in(story) for story in read_stories(folder, f"tinystories.{part}.jsonl.gz")]
        for part in ("train", "val")
    ]
    learned = Sentences(tuple(pictures[:cut]), tuple(stories[0]))
    return learned, Sentences(tuple(pictures[cut:]), tuple(stories[1]))


def sentence_pairs(
    sentences: Sentences, rng: random.Random, *, a_picture: int = 1, a_neighbour: int = 1
) -> list[tuple[str, str, bool]]:
    """Sample pairs, half of which belong together: two captions of one picture, or a story's sentence and its next.

    The other half has a second sentence of another picture or story (Devlin et al. 2019, section 3.1, task 2, with
    captions beside sentences that follow each other).

    Args:
        sentences: groups to sample from.
        rng: of every choice.
        a_picture: pairs a picture.
        a_neighbour: pairs a sentence of a story that has a next one.

    Returns:
        (first, second, together) each.
    """
    pairs = []
    for groups, consecutive in ((sentences.pictures, False), (sentences.stories, True)):
        for place, group in enumerate(groups):
            for start in [*range(len(group) - 1)] * a_neighbour if consecutive else range(a_picture):
                first, second = group[start : start + 2] if consecutive else rng.sample(group, 2)
                together = rng.random() < 0.5
                if not together:
                    other = (place + rng.randrange(1, len(groups))) % len(groups)
                    second = rng.choice(groups[other])
                pairs.append((first, second, together))
    return pairs
