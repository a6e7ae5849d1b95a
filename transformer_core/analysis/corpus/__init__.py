"""Every head of a model measured over many texts, on random tokens that repeat, and by its weights."""
