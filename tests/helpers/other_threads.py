"""Calls in threads of their own, which end in time or fail the test."""

import threading

LIMIT = 300  # seconds that a call has; pytest's own limit, which ends the process, is longer


class OtherThread:
    """``f(*args)``, begun in another thread, with a fresh context, which ends with the process at the latest."""

    def __init__(self, f, *args):
        self.returned, self.raised = None, None
        self.thread = threading.Thread(target=self._run, args=(f, *args), daemon=True)
        self.thread.start()

    def _run(self, f, *args):
        try:
            self.returned = f(*args)
        except BaseException as error:
            self.raised = error

    def is_alive(self):
        return self.thread.is_alive()

    def result(self):
        """What the call returns or raises. AssertionError: it does not end."""
        self.thread.join(LIMIT)
        assert not self.is_alive(), f"a call in another thread must end in {LIMIT} s"
        if self.raised is not None:
            raise self.raised
        return self.returned


def in_thread(f, *args):
    """``f(*args)``, in another thread."""
    return OtherThread(f, *args).result()


def together(count, f):
    """``[f(0), ..., f(count - 1)]``, begun at the same moment, each in another thread."""
    barrier = threading.Barrier(count, timeout=LIMIT)

    def run(i):
        barrier.wait()
        return f(i)

    return [thread.result() for thread in [OtherThread(run, i) for i in range(count)]]
