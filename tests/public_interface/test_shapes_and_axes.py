"""Shapes, axes and positions are taken as tuples, lists, ranges, NumPy arrays and arrays, wherever there are any."""

import numpy as np
import pytest

from handlax import jit, lax, nn, random, tree
from handlax import numpy as hnp
from handlax.errors import BadArgument, TracerIntegerConversionError

X, V, CUBE, KEY = np.arange(6.0).reshape(2, 3), np.arange(3.0), np.arange(24.0).reshape(2, 3, 4), random.key(0)

# calls with two axes, 0 and 1
AXES = {
    "expand_dims": lambda a: hnp.expand_dims(V, a), "squeeze": lambda a: hnp.squeeze(X[None, None], a),
    "sum": lambda a: hnp.sum(X, axis=a), "mean": lambda a: hnp.mean(X, axis=a), "max": lambda a: hnp.max(X, axis=a),
    "all": lambda a: hnp.all(X, axis=a), "var": lambda a: hnp.var(X, axis=a), "median": lambda a: hnp.median(X, axis=a),
    "quantile": lambda a: hnp.quantile(X, 0.3, axis=a), "nansum": lambda a: hnp.nansum(X, axis=a),
    "count_nonzero": lambda a: hnp.count_nonzero(X, axis=a), "average": lambda a: hnp.average(X, axis=a),
    "size": lambda a: hnp.size(X, a), "flip": lambda a: hnp.flip(X, a), "roll": lambda a: hnp.roll(X, (1, 2), a),
    "roll by": lambda a: hnp.roll(X, a, (0, 1)), "moveaxis": lambda a: hnp.moveaxis(CUBE, a, (2, 1)),
    "moveaxis to": lambda a: hnp.moveaxis(CUBE, (2, 1), a), "transpose": lambda a: hnp.transpose(X, a),
    "Array.transpose": lambda a: hnp.asarray(X).transpose(a), "rot90": lambda a: hnp.rot90(X, 1, a),
    "tensordot": lambda a: hnp.tensordot(X, X, axes=(a, a)), "gradient": lambda a: hnp.gradient(X, axis=a),
    "apply_over_axes": lambda a: hnp.apply_over_axes(hnp.sum, X, a), "norm": lambda a: hnp.linalg.norm(X, axis=a),
    "lax.transpose": lambda a: lax.transpose(X, a), "lax.rev": lambda a: lax.rev(X, a),
    "lax.squeeze": lambda a: lax.squeeze(X[None, None], a), "lax.expand_dims": lambda a: lax.expand_dims(X, a),
    "lax.reduce_sum": lambda a: lax.reduce_sum(X, a), "lax.reduce_max": lambda a: lax.reduce_max(X, a),
    "lax.reduce": lambda a: lax.reduce(X, 0.0, lax.add, a), "lax.reshape": lambda a: lax.reshape(X, (3, 2), a),
    "lax.broadcast_in_dim": lambda a: lax.broadcast_in_dim(X, (2, 3, 4), a),
    "lax.slice": lambda a: lax.slice(X, a, (2, 3)), "lax.dynamic_slice": lambda a: lax.dynamic_slice(X, a, (1, 1)),
    "lax.dynamic_update_slice": lambda a: lax.dynamic_update_slice(X, X[:1, :1], a),
    "lax.dot_general": lambda a: lax.dot_general(X, X, ((a, a), ((), ()))),
    "softmax": lambda a: nn.softmax(X, a), "log_softmax": lambda a: nn.log_softmax(X, a),
    "logsumexp": lambda a: nn.logsumexp(X, a), "standardize": lambda a: nn.standardize(X, a),
}
# calls with the shape (2, 3)
SHAPES = {
    "zeros": hnp.zeros, "ones": hnp.ones, "empty": hnp.empty, "full": lambda s: hnp.full(s, 1.0),
    "zeros_like": lambda s: hnp.zeros_like(V, shape=s), "full_like": lambda s: hnp.full_like(V, 1.0, shape=s),
    "reshape": lambda s: hnp.reshape(X, s), "Array.reshape": lambda s: hnp.asarray(X).reshape(s),
    "broadcast_to": lambda s: hnp.broadcast_to(V, s), "resize": lambda s: hnp.resize(X, s),
    "tile": lambda s: hnp.tile(X, s), "indices": hnp.indices, "unravel_index": lambda s: hnp.unravel_index(3, s),
    "ravel_multi_index": lambda s: hnp.ravel_multi_index((1, 2), s), "split": lambda s: hnp.split(CUBE, s, 2),
    "broadcast_shapes": lambda s: hnp.broadcast_shapes(s, (1, 3)), "pad": lambda s: hnp.pad(V, s),
    "fromfunction": lambda s: hnp.fromfunction(lambda i, j: i + j, s), "lax.full": lambda s: lax.full(s, 1.0),
    "lax.full_like": lambda s: lax.full_like(V, 1.0, shape=s), "lax.reshape": lambda s: lax.reshape(X, s),
    "lax.broadcast": lambda s: lax.broadcast(X, s), "lax.empty": lambda s: lax.empty(s, "float32"),
    "lax.broadcast_in_dim": lambda s: lax.broadcast_in_dim(V, s, (1,)), "lax.tile": lambda s: lax.tile(X, s),
    "lax.broadcasted_iota": lambda s: lax.broadcasted_iota("int32", s, 0),
    "lax.broadcast_shapes": lambda s: lax.broadcast_shapes(s, (1, 3)),
    "lax.slice": lambda s: lax.slice(X, (0, 1), s), "lax.dynamic_slice": lambda s: lax.dynamic_slice(X, (0, 0), s),
    "normal": lambda s: random.normal(KEY, s), "uniform": lambda s: random.uniform(KEY, s),
    "bits": lambda s: random.bits(KEY, s), "randint": lambda s: random.randint(KEY, s, 0, 5),
    "choice": lambda s: random.choice(KEY, 5, s), "bernoulli": lambda s: random.bernoulli(KEY, 0.5, s),
    "truncated_normal": lambda s: random.truncated_normal(KEY, -1.0, 1.0, s),
    "initializer": lambda s: nn.initializers.normal()(KEY, s),
}
FORMS = {"list": list, "range": lambda t: range(t[0], t[-1] + 1), "array": hnp.array, "NumPy array": np.array,
         "NumPy integers": lambda t: tuple(map(np.int64, t))}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("calls", "given"), [(AXES, (0, 1)), (SHAPES, (2, 3))], ids=["axes", "shapes"])
def test_every_form_of_integers_means_what_the_tuple_means(calls, given, form):
    for name, call in calls.items():
        right, found = tree.leaves(call(given)), tree.leaves(call(FORMS[form](given)))
        assert len(right) == len(found), name
        for x, y in zip(right, found):
            np.testing.assert_array_equal(x, y, err_msg=name)


def test_axes_and_sizes_that_are_traced_or_no_integers_are_refused():
    with pytest.raises(TracerIntegerConversionError, match="an axis must be known"):
        jit(lambda a: hnp.sum(X, axis=a))(np.array([0, 1]))
    with pytest.raises(BadArgument, match="an axis must be an integer"):
        hnp.expand_dims(V, [0.0, 1.0])


def test_a_scalar_array_is_one_axis():
    assert hnp.expand_dims(V, np.array(1)).shape == hnp.expand_dims(V, hnp.array(1)).shape == (3, 1)
    assert hnp.sum(X, axis=np.array(1)).shape == (2,)
