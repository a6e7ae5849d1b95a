"""Position encodings analysed: waves, exponents, schemes, sums with the embeddings, and what order is worth to a model.

Vaswani et al. 2017, sections 3.4 and 3.5.
"""
