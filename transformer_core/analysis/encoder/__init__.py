"""From the encoder's vectors to a verdict: by layer, by coordinate, by token, and how sure it may be."""
