"""Gather, scatter and dynamic slices; may import manipulation and what comes before it."""
