"""Ragged arrays, and the vmap handler for them; may import batching and what comes before it."""
