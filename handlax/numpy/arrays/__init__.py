"""Array creation, manipulation and indexing, as NumPy's reference divides them; may import ``lowering`` and what comes
before it.
"""
