"""Mutable references, discharged at the level that made them, and references as arguments; may import core and what
comes before it.
"""
