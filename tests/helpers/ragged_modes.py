"""The ways to run a function of a lane over lanes, and the loop over the lanes that all of them equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import handlax as hx
from handlax import numpy as hnp
from handlax.testing.generator.lane_programs import DENSE, RAGGED, SHARED, LaneProgram, drawn

SPARE = 2  # rows of NaN behind the lanes, where lengths are values


class Undefined(Exception):
    """The function has no such derivative in a single lane."""


class Lanes:
    """A program with arguments for lanes of these lengths; the second vector of lengths is the first, one longer.

    ``results``: for each result the arrays of all lanes, with their rows one after the other, or stacked.
    """

    def __init__(self, program: LaneProgram, lengths: Sequence[int], seed: int = 0):
        rng = np.random.default_rng(seed)
        self.program, self.ragged = program, program.ragged
        self.count = len(lengths)
        given = [kind for kind in program.kinds if not isinstance(kind, str)]
        self.lengths = [list(lengths), [n + 1 for n in lengths][::-1]][: len(given)]
        self.axes = tuple([None if k in SHARED else 0 if k in DENSE else hx.ragged_axis for k in program.kinds])
        make = lambda kind, shape: drawn(kind, shape, rng, program.dtype)
        self.data: list[Any] = []
        for i, kind in enumerate(program.kinds):
            if isinstance(kind, str):
                self.data.append(make(kind, SHARED[kind] if kind in SHARED else (self.count, *DENSE[kind])))
            else:
                self.data.append(tuple([make(k, (sum(self.lengths[i]), *RAGGED[k])) for k in kind]))

    def arguments(self, data: Sequence[Any], lengths: Any = None) -> list[Any]:
        """The arguments, with ragged arrays of known lengths, or of these values."""
        made = []
        for i, x in enumerate(data):
            if not isinstance(x, tuple):
                made.append(hnp.asarray(x))  # what NumPy makes of arrays without axes are weak Python numbers
            elif lengths is None:
                made.append(hx.Ragged(x, tuple(self.lengths[i])))
            else:
                made.append(hx.Ragged(x, lengths[i], max(1, *self.lengths[i])))
        return made

    def spared(self) -> tuple[list[Any], list[Any]]:
        """The data with spare rows, and the lengths as arrays."""
        data = [tuple(map(with_spare, x)) if isinstance(x, tuple) else x for x in self.data]
        return data, [np.asarray(n, "int32") for n in self.lengths]

    def mapped(self, f: Callable[..., Any], data: Any, lengths: Any = None) -> list[Any]:
        """The law's left side."""
        axes = tuple([hx.ragged_axis if ragged else 0 for ragged in self.ragged])
        return list(hx.vmap(f, self.axes, axes)(*self.arguments(data, lengths)))

    def loop(self, f: Callable[..., Any], data: Any) -> list[Any]:
        """The law's right side; no element if there is no lane."""
        starts = [np.concatenate([[0], np.cumsum(n)]) for n in self.lengths]
        data = [as_arrays(x) for x in data]
        lanes = []
        for i in range(self.count):
            cut = lambda k, x, i=i: tuple([v[starts[k][i] : starts[k][i + 1]] for v in x])
            xs = [
                cut(k, x) if isinstance(x, tuple) else x if self.axes[k] is None else x[i] for k, x in enumerate(data)
            ]
            lanes.append(f(*xs))
        join = [hnp.concatenate if ragged else hnp.stack for ragged in self.ragged]
        return [stack(ys) for stack, ys in zip(join, zip(*lanes))]


def as_arrays(x: Any) -> Any:
    return tuple(map(hnp.asarray, x)) if isinstance(x, tuple) else hnp.asarray(x)


def with_spare(x: Any) -> Any:
    spare = np.full((SPARE, *x.shape[1:]), np.nan if np.asarray(x).dtype.kind not in "iub" else 3)
    return np.concatenate([x, spare.astype(x.dtype)])


def rows_of(y: Any) -> Any:
    """The array of a result."""
    return y.data if isinstance(y, hx.Ragged) else y


def is_inexact(x: Any) -> bool:
    return hnp.issubdtype(x.dtype, hnp.inexact)


def loss(ys: Sequence[Any]) -> Any:
    """A sum of all elements, each with a weight of its own, which those of spare rows behind do not change."""
    total = hnp.zeros((), "float64")
    for k, y in enumerate(ys):
        if is_inexact(y):
            weights = hnp.cos(hnp.arange(y.size, dtype="float64") + k).reshape(y.shape)
            total = total + (weights * (y.real + y.imag if hnp.iscomplexobj(y) else y)).sum()
    return total


TOLERANCES = {"bfloat16": 0.05, "float32": 2e-4, "complex64": 2e-4, "float64": 1e-8}


def compare(found: Any, wanted: Any, dtypes: Sequence[str], what: str) -> None:
    """NaN and infinity at the same places, and equal up to rounding to these types; spare rows are zero."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype, f"{what}: {found.dtype} for {wanted.dtype}"
    if found.shape != wanted.shape:
        assert found.shape[1:] == wanted.shape[1:], f"{what}: {found.shape} for {wanted.shape}"
        spare, found = found[len(wanted) :], found[: len(wanted)]
        assert not spare.any(), f"{what}: spare rows are not zero"
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    tolerance = max([TOLERANCES.get(kind, 0) for kind in (*dtypes, str(wanted.dtype))])
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    found, wanted = found.astype(wide), wanted.astype(wide)
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = max(1.0, finite.max(initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=what)


# the ways to run: values, or values and derivatives


def eager_known(c: Lanes, f: Any) -> Any:
    return c.mapped(f, c.data), c.loop(f, c.data)


def eager_values(c: Lanes, f: Any) -> Any:
    return c.mapped(f, *c.spared()), c.loop(f, c.data)


def jit_known(c: Lanes, f: Any) -> Any:
    return hx.jit(lambda data: c.mapped(f, data))(c.data), c.loop(f, c.data)


def jit_values(c: Lanes, f: Any) -> Any:
    return hx.jit(lambda data, n: c.mapped(f, data, n))(*c.spared()), c.loop(f, c.data)


def differentiable(c: Lanes, data: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """The leaves with derivatives, and how to fill them in."""
    leaves, tree = hx.tree.flatten(data)
    places = [i for i, x in enumerate(leaves) if is_inexact(x)]

    def filled(xs: Any) -> Any:
        given = dict(zip(places, xs))
        return hx.tree.unflatten(tree, [given.get(i, x) for i, x in enumerate(leaves)])

    return [hnp.asarray(leaves[i]) for i in places], filled


def gradients(c: Lanes, f: Any, run: Any, known: bool) -> Any:
    """Of the loss of the mapped function, and of the loop."""
    given, lengths = (c.data, None) if known else c.spared()
    xs, filled = differentiable(c, given)
    whole, each = differentiable(c, c.data)
    ours = hx.grad(lambda xs: loss([rows_of(y) for y in c.mapped(f, filled(xs), lengths)]))
    theirs = hx.grad(lambda xs: loss(c.loop(f, each(xs))))
    if not xs:
        return [], []
    try:
        wanted = theirs(whole)
    except hx.errors.HandlaxError as error:
        raise Undefined from error
    return run(ours)(xs), wanted


def grad_known(c: Lanes, f: Any) -> Any:
    return gradients(c, f, lambda g: g, True)


def grad_values(c: Lanes, f: Any) -> Any:
    return gradients(c, f, lambda g: g, False)


def jit_grad_known(c: Lanes, f: Any) -> Any:
    return gradients(c, f, hx.jit, True)


def jit_grad_values(c: Lanes, f: Any) -> Any:
    return gradients(c, f, hx.jit, False)


def tangents(c: Lanes, f: Any, known: bool) -> Any:
    """Those of the results, in the direction of the cosines; in spare rows NaN."""
    given, lengths = (c.data, None) if known else c.spared()
    xs, filled = differentiable(c, given)
    whole, each = differentiable(c, c.data)
    if not xs:
        return [], []
    inexact = lambda ys: [y for y in ys if is_inexact(y)]
    ours = lambda xs: inexact([rows_of(y) for y in c.mapped(f, filled(xs), lengths)])
    theirs = lambda xs: inexact(c.loop(f, each(xs)))
    return [hx.jvp(g, (v,), ([hnp.cos(x) for x in v],))[1] for g, v in ((ours, xs), (theirs, whole))]


def jvp_known(c: Lanes, f: Any) -> Any:
    return tangents(c, f, True)


def jvp_values(c: Lanes, f: Any) -> Any:
    return tangents(c, f, False)


def outer_vmap(c: Lanes, f: Any, known: bool) -> Any:
    """A second batch of lanes, with data of its own; where lengths are values, the same ones in another order."""
    other = Lanes(c.program, c.lengths[0] if known else c.lengths[0][::-1], 1)
    if known:
        both = hx.tree.map(lambda a, b: np.stack([a, b]), c.data, other.data)
        ys = hx.vmap(lambda data: [rows_of(y) for y in c.mapped(f, data)])(both)
    else:
        both, n = [hx.tree.map(lambda a, b: np.stack([a, b]), u, v) for u, v in zip(c.spared(), other.spared())]
        ys = hx.vmap(lambda data, n: [rows_of(y) for y in c.mapped(f, data, n)])(both, n)
    return [y[0] for y in ys] + [y[1] for y in ys], c.loop(f, c.data) + other.loop(f, other.data)


def vmap_known(c: Lanes, f: Any) -> Any:
    return outer_vmap(c, f, True)


def vmap_values(c: Lanes, f: Any) -> Any:
    return outer_vmap(c, f, False)


MODES = (
    eager_known, eager_values, jit_known, jit_values, grad_known, grad_values, jvp_known, jvp_values, vmap_known,
    vmap_values, jit_grad_known, jit_grad_values,
)


def check(program: LaneProgram, lengths: Sequence[int], mode: Any) -> None:
    """The mapped function is the loop, up to what rounding alone changes in it."""
    case = Lanes(program, lengths)
    found, wanted = mode(case, program.function())
    assert len(found) == len(wanted)
    for k, (y, z) in enumerate(zip(found, wanted)):
        kinds = [program.dtype, *[kind for kind in TOLERANCES if kind in program.source]]
        what = f"{mode.__name__} {list(lengths)} result {k} of\n{program.source}"
        try:
            compare(rows_of(y), z, kinds, what)
        except AssertionError:
            case.data = [hx.tree.map(nearly, x) for x in case.data]
            moved = np.asarray(mode(case, program.function())[1][k])
            bound = 0.01 * max([TOLERANCES.get(kind, 0) for kind in kinds])
            if moved.dtype.kind in "iub" or not sensitive(np.asarray(z), moved, bound):
                raise


def nearly(x: Any) -> Any:
    """Other numbers, by a rounding."""
    eps = {"float64": 1e-13, "float32": 2e-7, "complex64": 2e-7}.get(str(x.dtype))
    return x if eps is None else x * x.dtype.type(1 + eps)


def sensitive(x: Any, y: Any, bound: float) -> bool:
    """Whether results differ, or have grown, so much that the program multiplies roundings."""
    x, y = np.nan_to_num(x), np.nan_to_num(y)
    size = np.abs(x).max(initial=0.0)
    return bool(np.abs(x - y).max(initial=0.0) > bound * max(1.0, size) or size > 1e8)


LENGTHS = ([3, 1, 4], [0, 2, 1, 0], [2, 2, 2], [5], [0, 0], [1, 1, 1], [1, 40, 2], [4, 3])


def defined(program: LaneProgram, lengths: Sequence[int]) -> bool:
    """Whether the function is defined on lanes of these lengths, which that of a fold of nothing is not."""
    case = Lanes(program, lengths)
    try:
        case.loop(program.function(), case.data)
    except (hx.errors.HandlaxError, ValueError, IndexError, TypeError):
        return False
    return True
