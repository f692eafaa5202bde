"""The law of vmap over lanes of different lengths: it equals the loop over the lanes, values and gradients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp

R = hx.ragged_axis

# arguments of a lane: rows; rows of other lengths; a pair of equally many rows; a vector, a number and a matrix of the
# lane; a matrix that all share
AXES = {"rows": R, "others": R, "pair": R, "vector": 0, "number": 0, "matrix": 0, "shared": None}


def is_ragged(x: Any) -> bool:
    return isinstance(x, hx.Ragged)


def leaves(tree: Any) -> list[Any]:
    return hx.tree.leaves(tree, is_leaf=is_ragged)


def ragged(lengths: Sequence[int], rng: np.random.Generator, static: bool) -> hx.Ragged:
    """Rows of three numbers; unless the lengths are static, two spare rows of NaN, which must not be seen anywhere."""
    rows = rng.standard_normal((sum(lengths), 3)).astype("float32")
    if static:
        return hx.Ragged(rows, tuple(lengths))
    spare = np.full((2, 3), np.nan, "float32")
    return hx.Ragged(np.concatenate([rows, spare]), np.asarray(lengths, np.int32), max([1, *lengths]))


def arguments(kinds: str, lengths: Sequence[int], static: bool) -> list[Any]:
    rng = np.random.default_rng(0)
    count = len(lengths)
    normal = lambda *shape: hnp.asarray(rng.standard_normal(shape).astype("float32"))

    def pair() -> hx.Ragged:
        x = ragged(lengths, rng, static)
        return hx.Ragged((x.data, hnp.cos(x.data)), x.segment_lengths, x.longest)

    make: dict[str, Callable[[], Any]] = {
        "rows": lambda: ragged(lengths, rng, static),
        "others": lambda: ragged([n + 1 for n in lengths][::-1], rng, static),
        "pair": pair,
        "vector": lambda: normal(count, 3),
        "number": lambda: normal(count),
        "matrix": lambda: normal(count, 3, 2),
        "shared": lambda: normal(3, 3),
    }
    return [make[kind]() for kind in kinds.split()]


def lane(x: Any, i: int, shared: bool) -> Any:
    """What lane ``i`` sees of an argument."""
    if not is_ragged(x):
        return x if shared else x[i]
    n = np.asarray(x.segment_lengths)
    start, size = int(n[:i].sum()), int(n[i])
    return hx.tree.map(lambda v: v[start : start + size], x.data)


class RaggedCase:
    """A function of a lane, the kinds of its arguments, the axes of its results, and lengths.

    A lane alone executes its loops by Python, where it does not map over inner lanes: else each length is compiled.
    """

    def __init__(
        self, f: Any, kinds: str, out_axes: Any, lengths: Sequence[int], static: bool, by_python: bool = True
    ):
        self.args = arguments(kinds, lengths, static)
        self.data = hx.tree.map(hnp.asarray, [x.data if is_ragged(x) else x for x in self.args])
        self.shared = [kind == "shared" for kind in kinds.split()]
        self.f, self.count, self.by_python = f, len(lengths), by_python
        self.mapped = hx.vmap(f, in_axes=tuple([AXES[kind] for kind in kinds.split()]), out_axes=out_axes)

    def filled(self, data: Sequence[Any]) -> list[Any]:
        """The arguments with these data."""
        return [
            hx.Ragged(x, r.segment_lengths, r.longest) if is_ragged(r) else x for x, r in zip(data, self.args)
        ]

    def loop(self, data: Sequence[Any]) -> tuple[Any, list[list[Any]]]:
        """The loss and the results of each lane."""
        xs = self.filled(data)
        with hx.disable_jit(self.by_python):
            lanes = [leaves(self.f(*[lane(x, i, s) for x, s in zip(xs, self.shared)])) for i in range(self.count)]
            return sum(map(_loss, lanes), hnp.float32(0)), lanes

    def computed(self, args: Sequence[Any], data: Sequence[Any]) -> tuple[Any, Any]:
        """The results of all lanes, and the gradients of the loss."""
        return self.mapped(*args), hx.grad(self.loss)(data)

    def check(self, results: Any, gradients: Any) -> None:
        """They are those of the loop."""
        wanted_gradients, wanted_lanes = hx.grad(self.loop, has_aux=True)(self.data)
        columns = [column for y in leaves(results) for column in _columns(y)]
        for lanes, wanted in zip(columns, zip(*wanted_lanes) if self.count else [()] * len(columns), strict=True):
            for a, b in zip(lanes, wanted, strict=True):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=2e-5)
        for a, b in zip(hx.tree.leaves(gradients), hx.tree.leaves(wanted_gradients), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-3, atol=2e-4)

    def loss(self, data: Sequence[Any]) -> Any:
        ys = leaves(self.mapped(*self.filled(data)))
        return _loss([x for y in ys for x in (hx.tree.leaves(y.data) if is_ragged(y) else [y])])


LENGTHS = ([0, 2, 1, 0], False), ([3, 1, 4], True), ([], True), ([0, 0], True)


def _with_lengths(names: Iterable[str]) -> Iterator[Any]:
    """Each name with all lengths: always with those that are values, and with known ones in turn, else in the sweep."""
    for k, name in enumerate(names):
        for i, lengths in enumerate(LENGTHS):
            yield pytest.param(name, *lengths, marks=[] if i in (0, 1 + k % 3) else pytest.mark.sweep)


def law_of_lanes(
    cases: Mapping[str, tuple[Any, str, Any]], inner_loops: Collection[str] = ()
) -> tuple[Callable[..., None], Callable[..., None]]:
    """Tests that functions of a lane equal the loop over lanes: eager, and, in the sweep, compiled for more lengths.

    ``cases``: for each name a function, the kinds of its arguments and the axes of its results; those in
    ``inner_loops`` loop over the rows of inner lanes.
    """

    @pytest.mark.parametrize(("name", "lengths", "static"), [*_with_lengths(cases)], ids=str)
    def eager(name: str, lengths: Sequence[int], static: bool) -> None:
        case = RaggedCase(*cases[name], lengths, static, name not in inner_loops)
        case.check(*case.computed(case.args, case.data))

    @pytest.mark.sweep
    @pytest.mark.parametrize(
        ("lengths", "static"),
        [([2, 2, 2], True), ([0, 0], False), ([1, 40, 70], True), ([1, 40, 70], False), ([], False)],
        ids=str,
    )
    @pytest.mark.parametrize("name", cases)
    def compiled(name: str, lengths: Sequence[int], static: bool) -> None:
        case = RaggedCase(*cases[name], lengths, static, name not in inner_loops)
        case.check(*hx.jit(case.computed)(case.args, case.data))

    return eager, compiled


def _columns(y: Any) -> list[Any]:
    """The lanes of each array of a result."""
    if not is_ragged(y):
        return [y]
    return list(zip(*map(hx.tree.leaves, y.to_list()))) or [()] * len(hx.tree.leaves(y.data))


def _loss(ys: Sequence[Any]) -> Any:
    return sum([hnp.sum(hnp.sin(y)) for y in ys if y.dtype.kind == "f"], hnp.float32(0))
