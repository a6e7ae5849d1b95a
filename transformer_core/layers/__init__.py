"""The parts of a Transformer, one concept per file, leaves to root."""
