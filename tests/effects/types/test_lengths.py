import pickle

import numpy as np
import pytest
from helpers.other_threads import in_thread

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.types.array_type import OfArrayType
from handlax.effects.types.extent import Extent, length
from handlax.effects.types.lengths import Length
from handlax.errors import EscapedBox

R = hx.ragged_axis
X = hx.Ragged(hnp.arange(8.0), (3, 1, 4))
Y = hx.Ragged(hnp.arange(6.0), hnp.array([2, 2, 2]))


def left(size=lambda row: row.shape[0], x=X):
    """A length that has left its vmap."""
    found = []
    hx.vmap(lambda row: (found.append(size(row)), row.sum())[1], R)(x)
    return found[0]


class Described(OfArrayType):
    def __init__(self, aval):
        self.aval = aval


def ruled(row):
    """A length that an operation's rule read of the type of an operand."""
    seen = []

    @hx.operation
    class Seen:
        def result_type(op, x):
            seen.append(x.shape[0])
            return x

    hx.make_program(lambda r: hx.perform(Seen(), r))(row)
    return seen[0]


READ = {
    "shape": lambda row: row.shape[0],
    "size": lambda row: row.size,
    "shape of a function": lambda row: hnp.shape(row)[0],
    "size of a function": lambda row: hnp.size(row, 0),
    "NumPy's shape": lambda row: np.shape(row)[0],
    "of an abstract value": lambda row: hx.eval_shape(lambda r: r, row).shape[0],
    "shape of a type": lambda row: row.type.shape[0],
    "size of a type": lambda row: row.type.size,
    "extents of a type": lambda row: row.type.extents()[0],
    "shape of the type of": lambda row: hx.typeof(row).shape[0],
    "shape of an aval": lambda row: row.aval.shape[0],
    "bytes": lambda row: row.nbytes,
    "bytes of a type": lambda row: row.aval.nbytes,
    "size of an abstract value": lambda row: hx.eval_shape(lambda r: r, row).size,
    "size of a user's base": lambda row: Described(row.type).size,
    "in a user's rule": lambda row: ruled(row),
    "computed": lambda row: 2 * row.shape[0] + 1,
    "quotient": lambda row: divmod(row.shape[0], 2)[0],
    "of a part": lambda row: row[1:].shape[0],
    "under a derivative": lambda row: inner(hx.grad, row),
    "in an inner program": lambda row: inner(hx.jit, row),
}


def inner(transform, row):
    """A length that was read under another transformation."""
    found = []
    transform(lambda r: (found.append(r.shape[0]), r.sum())[1])(row)
    return found[0]


USED = {
    "value": lambda n: n / 2 + 0.0,
    "array": lambda n: hnp.asarray(n),
    "shape": lambda n: hnp.zeros(n).sum(),
    "tuple of a shape": lambda n: hnp.ones((2, n)).sum(),
    "places": lambda n: hnp.arange(n).sum(),
    "slice": lambda n: hnp.arange(9.0)[:n].sum(),
    "index": lambda n: hnp.arange(9.0)[n],
    "compared": lambda n: n > 2,
    "equal": lambda n: n == 3,
    "operand": lambda n: hnp.where(True, n, 0.0),
    "field": lambda n: hx.perform(hx.operations.Iota(np.dtype("int32"), (n,), 0)).sum(),
    "iterations": lambda n: lax.fori_loop(0, n, lambda i, c: c + 1, 0),
    "type": lambda n: hx.eval_shape(lambda x: x, hx.ShapeDtypeStruct((n,), "float32")),
    "keys": lambda n: hx.random.split(hx.random.key(0), n).shape,
}
WHERE = {
    "outside": lambda f: f(),
    "in a program": lambda f: hx.jit(lambda x: (f(), x)[1])(1.0),
    "in equal lanes": lambda f: hx.vmap(lambda x: (f(), x)[1])(hnp.ones(2)),
    "in other lanes": lambda f: hx.vmap(lambda row: (f(), row.sum())[1], R)(Y),
    "in a derivative of other lanes": lambda f: hx.vmap(hx.grad(lambda row: (f(), row.sum())[1]), R, R)(Y),
    "in a program in other lanes": lambda f: hx.vmap(hx.jit(lambda row: (f(), row.sum())[1]), R)(Y),
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("use", USED)
def test_a_length_that_left_its_lanes_is_refused_wherever_it_is_used(use, where):
    n = left()
    with pytest.raises(EscapedBox, match=r"n0 is the length of a lane of ragged vmap, .*, which has ended"):
        WHERE[where](lambda: USED[use](n))


@pytest.mark.parametrize("read", READ)
def test_however_it_was_read(read):
    n = left(READ[read])
    for where in ("outside", "in other lanes"):
        with pytest.raises(EscapedBox):
            WHERE[where](lambda: n + 0.5)


def test_that_of_inner_lanes_is_refused_in_the_lanes_around_them():
    def lane(row):
        n = left(x=hx.Ragged(hnp.arange(4.0), (1, 3)))
        return row.sum() / n

    with pytest.raises(EscapedBox, match="n1 is the length"):
        hx.vmap(lane, R)(X)


def test_that_of_lanes_of_another_thread_is_refused():
    refused = []

    def elsewhere(n):
        try:
            hx.vmap(lambda row: row.sum() / n, R)(Y)
        except EscapedBox as error:
            refused.append(str(error))

    def lane(row):
        in_thread(elsewhere, row.shape[0])
        return row.sum()

    hx.vmap(lane, R)(X)
    assert "which is not in this thread's stack" in refused[0]


def test_it_shows_and_pickles_as_its_extent():
    n = left(READ["computed"])
    assert repr(n) == "2*n0+1" and pickle.loads(pickle.dumps(n)) is 2 * length(0) + 1 and len({n, n}) == 1


@hx.custom_vjp
def scaled(x, n):
    return x * n


scaled.defvjp(lambda x, n: (x * n, n), lambda n, ct: (ct * n, None))


@hx.jit
def halves(row):
    return row / row.shape[0]


static = hx.jit(lambda row, n: row.sum() * n + hnp.arange(n).sum(), static_argnums=1)
WITHIN = {
    "an inner program": lambda row, n: hx.jit(lambda r: r.sum() / n)(row),
    "a static argument": lambda row, n: static(row, n),
    "a program of its own": lambda row, n: halves(row).sum(),
    "inner lanes": lambda row, n: hx.vmap(lambda r: r.sum() * n, R)(hx.Ragged(hnp.arange(3.0), (1, 2))).sum(),
    "a loop's body": lambda row, n: lax.scan(lambda c, _: (c + n, None), 0.0, None, length=2)[0],
    "a branch": lambda row, n: lax.cond(n > 2, lambda: 1.0 * n, lambda: hnp.zeros(n).sum()),
    "a checkpoint": lambda row, n: hx.checkpoint(lambda r: r.sum() * n)(row),
    "a custom rule": lambda row, n: scaled(row, n + 0.0).sum(),
    "a rule that reads it": lambda row, n: reading(n)(row.sum()),
}


def reading(n):
    """A function whose backward rule, which is called when the lanes have ended, reads the length."""
    f = hx.custom_vjp(lambda x: x * n)
    f.defvjp(lambda x: (x * n, None), lambda _, ct: (ct * n,))
    return f


@pytest.mark.each_choice
@pytest.mark.parametrize("x", [X, Y], ids=["known", "values"])
@pytest.mark.parametrize("f", WITHIN)
def test_within_its_lanes_it_is_that_of_the_lane(f, x):
    f = WITHIN[f]
    mapped = hx.vmap(lambda row: f(row, row.shape[0]), R)
    for given in (x, x, hx.Ragged(x.data, hnp.array([1, 3, 2]))):  # again, and others: none is remembered
        loop = [f(row, row.shape[0]) for row in given.to_list()]
        assert np.allclose(mapped(given), loop)
        gradient = hx.grad(lambda data: mapped(hx.Ragged(data, given.segment_lengths)).sum())(given.data)
        wanted = [hx.grad(lambda row: f(row, row.shape[0]) * 1.0)(row) for row in given.to_list()]
        assert np.allclose(gradient[: sum(map(len, wanted))], hnp.concatenate(wanted))


def test_the_package_sees_extents():
    seen = []

    @hx.operation
    class Seen:
        size: object

        def result_type(op, x):
            seen.extend([op.size, x.shape[0]])
            return x

    hx.vmap(lambda row: (hx.make_jaxpr(lambda r: hx.perform(Seen(r.shape[0]), r))(row), row.sum())[1], R)(X)
    size, read = seen
    assert type(size) is Extent and type(read) is Length and read.held is size  # a rule of the user reads as the user
