"""Sorting, searching, sets and statistics; may import ``mathematics`` and what comes before it."""
