"""What a BERT makes of a sentence: hidden words, pairs, segments, its output matrix and its training recipe."""
