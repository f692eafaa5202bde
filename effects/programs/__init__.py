"""Recorded programs as values: printed, parsed, compared, closure-converted; and the base class of higher-order
operations; may import functions and what comes before it.
"""
