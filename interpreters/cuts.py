"""The least cut of a network: where a flow from the source to the sink is held up.

    the capacity of the edges that lead out of ``least_cut`` is the greatest flow

Source: Dinic 1970, Algorithm for solution of a problem of maximum flow in a network with power estimation.
"""

from __future__ import annotations

from collections import deque

INFINITE = 1 << 200


class Network:
    """Nodes 0 .. count - 1, and edges with capacities that are integers."""

    __slots__ = ("edges", "ends", "room")

    def __init__(self, count: int):
        self.edges: list[list[int]] = [[] for _ in range(count)]  # of each node; edge ``e ^ 1`` leads back
        self.ends: list[int] = []
        self.room: list[int] = []

    def connect(self, start: int, end: int, capacity: int) -> None:
        for node, other, room in ((start, end, capacity), (end, start, 0)):
            self.edges[node].append(len(self.ends))
            self.ends.append(other)
            self.room.append(room)

    def least_cut(self, source: int, sink: int) -> list[bool]:
        """Which nodes stay with the source. The flow fills the network: it is used up."""
        while True:
            levels = self._levels(source)
            if levels[sink] < 0:
                return [level >= 0 for level in levels]
            self._fill(source, sink, levels)

    def _levels(self, source: int) -> list[int]:
        levels = [-1] * len(self.edges)
        levels[source] = 0
        queue = deque([source])
        while queue:
            node = queue.popleft()
            for e in self.edges[node]:
                other = self.ends[e]
                if self.room[e] and levels[other] < 0:
                    levels[other] = levels[node] + 1
                    queue.append(other)
        return levels

    def _fill(self, source: int, sink: int, levels: list[int]) -> None:
        """Send flow along shortest paths until each is held up somewhere."""
        ends, room = self.ends, self.room
        left = [iter(edges) for edges in self.edges]
        path: list[int] = []
        node = source
        while True:
            if node == sink:
                flow = min([room[e] for e in path])
                for e in path:
                    room[e] -= flow
                    room[e ^ 1] += flow
                full = next(i for i, e in enumerate(path) if not room[e])
                node = ends[path[full] ^ 1]
                left[node] = iter(self.edges[node])
                del path[full:]
                continue
            onward = next((e for e in left[node] if room[e] and levels[ends[e]] == levels[node] + 1), None)
            if onward is not None:
                path.append(onward)
                node = ends[onward]
            elif path:
                levels[node] = -1  # a dead end
                node = ends[path.pop() ^ 1]
            else:
                return
