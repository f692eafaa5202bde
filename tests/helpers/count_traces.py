"""Counting traces."""

from handlax.lowering.jit import trace_cache


def traced(f):
    """The number of traces during a call of ``f``."""
    before = trace_cache.COUNTS["trace"]
    f()
    return trace_cache.COUNTS["trace"] - before
