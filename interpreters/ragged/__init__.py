"""Ragged arrays, and the handler of vmap over them; may import batching and what comes before it."""
