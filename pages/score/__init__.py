"""Why this word: the part of several pages that takes a score apart."""
