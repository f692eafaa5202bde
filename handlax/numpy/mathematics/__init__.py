"""Mathematical, logic and bit-wise functions, reductions and products of arrays; may import ``arrays`` and what comes
before it.
"""
