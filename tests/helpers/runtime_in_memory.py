"""The runtime by which processes are joined, in memory: a table of texts, barriers, and who is alive."""

import io
import socket
import threading
from collections import Counter, defaultdict
from types import SimpleNamespace

from helpers.other_threads import OtherThread, together

from handlax.lowering.clients.coordinator import tell_who_leaves
from handlax.lowering.clients.jaxlib_modules import RuntimeFailure
from handlax.lowering.clients.processes import Connection, Membership


class Table:
    """What the clients of one runtime share; ``dead`` are the processes that it misses, ``left`` those that left it."""

    def __init__(self):
        self.changed = threading.Condition()
        self.texts, self.dead, self.left = {}, set(), set()
        self.waiting, self.passed = defaultdict(set), Counter()  # at each barrier; and how often all were at it

    def wait(self, condition, milliseconds, what):
        """Wait, with the table held. Raises: RuntimeFailure: the condition does not become true in time."""
        if not self.changed.wait_for(condition, milliseconds / 1000):
            raise RuntimeFailure(f"DEADLINE_EXCEEDED: {what}")


class MemoryClient:
    """The client of one process."""

    def __init__(self, table, index):
        self.table, self.index = table, index

    def key_value_set(self, key, text, allow_overwrite=False):
        with self.table.changed:
            if key in self.table.texts and not allow_overwrite:
                raise RuntimeFailure(f"ALREADY_EXISTS: {key}")
            self.table.texts[key] = text
            self.table.changed.notify_all()

    def key_value_try_get(self, key):
        return self.blocking_key_value_get(key, 0)

    def blocking_key_value_get(self, key, milliseconds):
        with self.table.changed:
            self.table.wait(lambda: key in self.table.texts, milliseconds, key)
            return self.table.texts[key]

    def key_value_dir_get(self, prefix):
        with self.table.changed:
            return [(key, text) for key, text in self.table.texts.items() if key.startswith(prefix)]

    def key_value_delete(self, prefix):
        with self.table.changed:
            self.table.texts = {key: text for key, text in self.table.texts.items() if not key.startswith(prefix)}

    def wait_at_barrier(self, name, milliseconds, numbers):
        table = self.table
        with table.changed:
            times, here = table.passed[name], table.waiting[name]
            here.add(self.index)
            if here >= {*numbers}:
                here.clear()
                table.passed[name] += 1
                table.changed.notify_all()
            try:
                table.wait(lambda: table.passed[name] > times, milliseconds, name)
            finally:
                here.discard(self.index)

    def get_live_nodes(self, numbers):
        return [number for number in numbers if number not in self.table.dead]

    def shutdown(self):
        self.table.left.add(self.index)


BOTH = frozenset([0, 1])


class Two:
    """The connections of two processes with each other, in one process, and what is told of either.

    The calls of each are made in a thread of its own.
    """

    def __init__(self):
        self.table, self.failed, visitors, lines = Table(), [[], []], {}, []
        for index in range(2):
            visitors[index], line = socket.socketpair()
            lines.append(line)
        self.telling = OtherThread(tell_who_leaves, visitors)
        self.started = SimpleNamespace(stdin=io.StringIO())
        self.started.stdin.close = lambda: None  # what was written is read afterwards
        self.each = []
        for index, (line, started) in enumerate(zip(lines, (self.started, None))):
            member = Membership("127.0.0.1:1", 2, index, "127.0.0.1:1", heartbeat_timeout=1, end_timeout=60)
            each = Connection(member, MemoryClient(self.table, index), started, line)
            each.on_failure = lambda index=index: self.failed[index].append(str(self.each[index].failure()))
            self.each.append(each)

    def __call__(self, call):
        """The results of a call of each, at the same time."""
        return together(2, lambda index: call(self.each[index]))

    def close(self):
        for each in self.each:
            if not each._ended:
                each.close(wait=False)
        self.telling.result()
