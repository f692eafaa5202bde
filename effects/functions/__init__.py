"""Python functions as values: as parts of cache keys, their captured boxes, and the check of unsupported
arguments; may import core and what comes before it.
"""
