"""What the blocks of operations are built with: shapes, random keys as words, 16-bit precision, the factory of
elementwise operations; may import core and what comes before it.
"""
