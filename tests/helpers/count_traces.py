"""Counting traces and compilations."""

import handlax as hx
from handlax.interpreters.core import trace_cache


def traced(f):
    """The number of traces during a call of ``f``."""
    before = trace_cache.COUNTS["trace"]
    f()
    return trace_cache.COUNTS["trace"] - before


def compiled(f):
    """The number of programs that are compiled during a call of ``f``."""
    before = hx.cache_info()["compile"].misses
    f()
    return hx.cache_info()["compile"].misses - before
