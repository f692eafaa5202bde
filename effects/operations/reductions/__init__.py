"""Reductions, cumulative operations and sorting; may import indexing and what comes before it."""
