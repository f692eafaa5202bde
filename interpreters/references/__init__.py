"""Mutable references, discharged at the level that made them, and references as arguments; may import batching and what
comes before it.
"""
