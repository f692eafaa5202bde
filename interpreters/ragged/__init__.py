"""Lanes of different lengths: ragged arrays, and the handler of vmap over them; may import batching and what comes before it."""
