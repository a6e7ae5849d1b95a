"""Poems in form, of random characters."""

import itertools
import random

CHARACTERS = "春风吹落日秋月照空山客路三千里人家一水白云飞"


def verse(count: int, seed: int) -> list[str]:
    """Return poems of four lines of five random characters, whose even lines end alike."""
    rng = random.Random(seed)
    lines = (["".join(rng.sample(CHARACTERS, 5)) for _ in range(4)] for _ in itertools.count())
    return [f"{a}，{b[:4]}山。{c}，{d[:4]}间。" for a, b, c, d in itertools.islice(lines, count)]
