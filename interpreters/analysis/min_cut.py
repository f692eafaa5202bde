"""Minimum cuts of networks, by Dinic's algorithm for maximum flow.

    the capacities of the edges that lead out of ``least_cut`` sum to the greatest flow

Each phase computes the distances from the source in the residual network, then a blocking flow along shortest paths;
the distance of the sink grows with each phase. When the sink is out of reach, the nodes within reach are a minimum cut.

Source: Dinic 1970, Algorithm for solution of a problem of maximum flow in a network with power estimation.
"""

from __future__ import annotations

from collections import deque

INFINITE = 1 << 200


class Network:
    """A directed graph on nodes 0 .. count - 1 whose edges have integer capacities.

    Edge ``e`` leads to ``ends[e]`` and has the residual capacity ``residual[e]``; ``e ^ 1`` is its reverse edge.
    ``edges[v]``: the edges that leave node ``v``.
    """

    __slots__ = ("edges", "ends", "residual")

    def __init__(self, count: int):
        self.edges: list[list[int]] = [[] for _ in range(count)]
        self.ends: list[int] = []
        self.residual: list[int] = []

    def connect(self, start: int, end: int, capacity: int) -> None:
        """Add an edge."""
        for node, other, residual in ((start, end, capacity), (end, start, 0)):
            self.edges[node].append(len(self.ends))
            self.ends.append(other)
            self.residual.append(residual)

    def least_cut(self, source: int, sink: int) -> list[bool]:
        """For each node whether it is on the source's side of a minimum cut. The residual capacities change."""
        while True:
            levels = self._levels(source)
            if levels[sink] < 0:
                return [level >= 0 for level in levels]
            self._fill(source, sink, levels)

    def _levels(self, source: int) -> list[int]:
        """The distance of each node from the source in the residual network; -1 where there is no path."""
        levels = [-1] * len(self.edges)
        levels[source] = 0
        queue = deque([source])
        while queue:
            node = queue.popleft()
            for e in self.edges[node]:
                other = self.ends[e]
                if self.residual[e] and levels[other] < 0:
                    levels[other] = levels[node] + 1
                    queue.append(other)
        return levels

    def _fill(self, source: int, sink: int, levels: list[int]) -> None:
        """A blocking flow: augment along paths on which the level grows by one, until each has a saturated edge."""
        ends, residual = self.ends, self.residual
        left = [iter(edges) for edges in self.edges]
        path: list[int] = []
        node = source
        while True:
            if node == sink:
                flow = min([residual[e] for e in path])
                for e in path:
                    residual[e] -= flow
                    residual[e ^ 1] += flow
                full = next(i for i, e in enumerate(path) if not residual[e])
                node = ends[path[full] ^ 1]
                left[node] = iter(self.edges[node])
                del path[full:]
                continue
            onward = next((e for e in left[node] if residual[e] and levels[ends[e]] == levels[node] + 1), None)
            if onward is not None:
                path.append(onward)
                node = ends[onward]
            elif path:
                levels[node] = -1  # a dead end
                node = ends[path.pop() ^ 1]
            else:
                return
