"""The parts of a Transformer, one concept a file, leaves to root.

Read in this order: linear, positions, embeddings, normalization, feed_forward, masks, scoring, attention, blocks.
Read next: linear.py.
"""
