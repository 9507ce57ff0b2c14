"""Sentences and symbols to learn from, as ids and in batches (chapters 1, 2, 9 and 11)."""
