"""Mutable references, discharged where they were made, and references as arguments; may import batching and what comes
before it.
"""
