"""Translation: where each target word comes from, and what a search for a better translation finds."""
