"""Ready-made handlers of pure operations: cost counters, memoisation, mixed precision, NaN origin, dry run; may import
effectful and what comes before it.
"""
