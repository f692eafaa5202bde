"""Python functions as values: fingerprints, by which equal ones share traces, captured boxes, and the check of
unsupported arguments; may import programs and what comes before it.
"""
