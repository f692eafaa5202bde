"""Recorded programs as values: printed, parsed, compared, closure-converted; and the base class of higher-order
operations; may import core and what comes before it.
"""
