"""Calls that begin at the same moment, each in a thread of its own."""

import threading
from concurrent.futures import ThreadPoolExecutor


def together(count, f):
    """``[f(0), ..., f(count - 1)]``, begun at the same moment, each in a thread with a fresh context."""
    barrier = threading.Barrier(count)

    def run(i):
        barrier.wait()
        return f(i)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))
