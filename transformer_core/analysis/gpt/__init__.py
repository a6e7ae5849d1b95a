"""What a GPT predicts, how it continues a text, how its answer forms layer by layer, and what its mask does."""
