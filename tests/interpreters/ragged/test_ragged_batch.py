"""Bodies and transformations within lanes of different lengths: each equals the loop over lanes."""

import dataclasses
import functools
import operator
import pickle

import numpy as np
import pytest
from helpers.ragged_lanes import R, law_of_lanes

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.base.stack import STACK
from handlax.effects.core.operation import operation
from handlax.effects.operations.elementwise.transcendental import Sin
from handlax.effects.operations.foundations.elementwise_factory import Elementwise
from handlax.effects.operations.reductions.cumulative import Cumsum
from handlax.effects.programs.operation_names import every_operation
from handlax.effects.programs.program import interpret
from handlax.interpreters.ragged.ragged_batch import RAGGED

softmax = hx.nn.softmax

ROWS = hnp.cos(hnp.arange(15.0)).reshape(5, 3)
KNOWN, VALUES = hx.Ragged(ROWS, (2, 3)), hx.Ragged(ROWS, hnp.array([2, 0, 3]), 4)


def within(f, out_axes=R):
    """Lanes of other lengths within a lane, with known lengths and others: ``f`` of rows of both."""

    def lane(x):
        each = hx.vmap(lambda rows: f(x, rows), R, out_axes)
        ys = [each(KNOWN), each(VALUES)]
        return [y.data if out_axes is R else y for y in ys]

    return lane


@hx.custom_vjp
def scaled(x, w):
    return hnp.sin(x) * w


scaled.defvjp(
    lambda x, w: (scaled(x, w), (hnp.cos(x), w, hnp.sin(x))),
    lambda r, ct: (2 * ct * r[0] * r[1], (ct * r[2]).sum() * r[1]),
)


def captured(x):
    """A function of what all lanes share that reads rows without use."""
    f = hx.custom_vjp(lambda w: ((x @ w).sum(), w * w)[1])
    f.defvjp(lambda w: (w * w, w), lambda w, ct: (3 * ct * w,))
    return f


# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
CASES = {
    "cond of the lane": (lambda x, s: lax.cond(s > 0, lambda: x * 2, lambda: hnp.sin(x)), "rows number", R),
    "cond of the length": (lambda x: lax.cond(x.shape[0] > 1, lambda: x.sum(0), lambda: hnp.ones(3)), "rows", 0),
    "jit": (lambda x: hx.jit(lambda y: softmax(y, 0) * y.shape[1])(x) + 1, "rows", R),
    "length in jit": (lambda x: hx.jit(lambda y: y * y.shape[0])(x), "rows", R),
    "its length alone in jit": (lambda x, w: hx.jit(lambda w: hnp.ones((x.shape[0], 3)) @ w)(w), "rows shared", R),
    "its length alone in a checkpoint": (
        lambda x, s: hx.checkpoint(lambda s: s * x.shape[0] + hnp.arange(x.shape[0]).sum())(s), "rows number", 0),
    "custom_vjp": (lambda x, w: scaled(x, w[0]), "rows shared", R),
    "custom_vjp of two ragged axes": (lambda x, s: scaled(x @ x.T, s).sum(1), "rows number", R),
    "a rule that returns what all share": (lambda x, w: captured(x)(w), "rows shared", 0),
    "grad": (lambda x: hx.grad(lambda y: (softmax(y, 0) * hnp.cos(y)).sum())(x), "rows", R),
    "grad of what all share": (
        lambda x, w: hx.grad(lambda w: (softmax(x @ w, 0) * hnp.cos(x)).sum())(w), "rows shared", 0),
    "jvp": (lambda x: hx.jvp(lambda y: softmax(y @ y.T, 1) @ y, (x,), (hnp.cos(x),))[1], "rows", R),
    "vmap of columns": (lambda x: hx.vmap(lambda c: softmax(c) * c.sum(), in_axes=1, out_axes=1)(x), "rows", R),
    "vmap of rows": (lambda x: hx.vmap(lambda row: softmax(row) * row.sum())(x), "rows", R),
    "checkpoint": (lambda x: hx.checkpoint(lambda y: hnp.sin(y) * y.sum(0))(x), "rows", R),
    "lanes within lanes": (within(lambda x, y: softmax(y @ x.T, 1) @ x), "rows", 0),
    "lanes within lanes, of the lane": (within(lambda x, y: (softmax(x @ y.T, 0) @ y).sum(0), 0), "rows", 0),
    "lanes within lanes, along them": (within(lambda x, y: hnp.sort(hnp.cumsum(y @ x.T, 0), 1) @ x), "rows", 0),
    "lanes within lanes, places": (
        within(lambda x, y: y * (hnp.arange(y.shape[0])[:, None] * hnp.arange(x.shape[0])).sum(1, keepdims=True)),
        "rows", 0),
    "lanes within lanes, gradient": (within(lambda x, y: hx.grad(lambda y: hnp.sin(y @ x.T).sum())(y)), "rows", 0),
    "lanes within lanes, loop": (
        within(lambda x, y: lax.scan(lambda c, r: (c + (x @ r).sum(), r * c), 0.1, y)[1]), "rows", 0),
    "lanes of the lane": (
        lambda x, m: hx.vmap(lambda y: y.sum() + x.sum(0), R)(hx.Ragged(m, hnp.array([2, 1]))), "rows matrix", 0),
    "lengths of the lane": (
        lambda x, m, s: hx.vmap(lambda y: softmax(y @ y.T) @ y + x.sum(), R, R)(
            hx.Ragged(m, hnp.where(s > 0, hnp.array([2, 1]), hnp.array([0, 3])), 3)).data,
        "rows matrix number", 0),
    "custom_jvp": (lambda x: hx.nn.relu(x) + hx.nn.logsumexp(x, axis=1, keepdims=True), "rows", R),
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES, inner_loops=["lanes within lanes, loop"])


def test_types_name_the_length_print_and_parse():
    programs = []

    def lane(x):
        programs.append(hx.make_program(lambda x: hnp.cos(x).sum(0) + x.shape[0])(x))
        return x.sum(0)

    hx.vmap(lane, R)(hx.Ragged(hnp.ones((4, 2)), (3, 1)))
    (program,) = programs
    assert program.in_types[0].shape[1] == 2 and str(program.in_types[0]) == "f32[n0,2]"
    assert "size_of[size=n0]" in str(program)
    assert hx.Program.parse(str(program), program.constants) == program


@pytest.mark.parametrize("body", [
    lambda x: lax.scan(lambda c, y: (c + y, y), x.sum(0), x)[1],
    lambda x: hx.grad(lambda y: (y @ y.T).sum())(x) * x.shape[0],
    lambda x: hnp.concatenate([x, x, hnp.ones((1, 2))]).sum(0),
])
def test_programs_of_a_lane_print_parse_pickle_and_run(body):
    x = hx.Ragged(hnp.arange(8.0).reshape(4, 2), (3, 1))

    def lane(row):
        program = hx.make_program(body)(row)
        again = hx.Program.parse(str(program), program.constants)
        assert again == program == pickle.loads(pickle.dumps(program)) and str(again) == str(program)
        return interpret(again, [row])[0].sum()

    assert hnp.allclose(hx.vmap(lane, R)(x), hnp.array([body(row).sum() for row in x.to_list()]))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("lengths", [(3, 1), np.array([3, 1])], ids=["known", "values"])
def test_a_failed_run_leaves_nothing_behind_and_what_is_kept_is_found(lengths, compiled):
    x, before = hx.Ragged(hnp.ones((4, 2)), lengths), STACK.get()
    run = hx.jit if compiled else lambda f: f

    def failing(row):
        lax.scan(lambda c, y: (c + y, c), row.sum(0), row)
        raise KeyError("a user's")

    refused = lambda row: hnp.einsum("nd,md->ndm", row, row).reshape(-1)
    for f, error in ((failing, KeyError), (refused, hx.errors.CannotCross)):
        with pytest.raises(error):
            run(lambda x, f=f: hx.vmap(f, R, R)(x))(x)
        assert STACK.get() is before
    assert np.array_equal(run(lambda x: hx.vmap(lambda row: row.sum(), R)(x))(x), [6, 2])
    kept: list[object] = []
    with hx.checking_leaks(), pytest.raises(hx.errors.Leak, match=r"f32\[n0,2\]"):
        hx.vmap(lambda row: (kept.append(row + 1), row.sum())[1], R)(x)


def test_a_vmap_around_ragged_lanes():
    x = hnp.arange(24.0).reshape(2, 4, 3)
    f = lambda rows: hx.vmap(lambda y: hnp.flip(y, 0) * y.sum(), R, R)(hx.Ragged(rows, (3, 1))).data
    both = hx.vmap(f)(x)
    for i in range(2):
        assert hnp.allclose(both[i], f(x[i]))


def test_lanes_within_lanes_have_lengths_of_their_own():
    x = hx.Ragged(hnp.arange(8.0), (3, 1, 4))

    def lane(row):
        inner = hx.Ragged(hnp.arange(3.0), (1, 2))
        return hx.vmap(lambda y: y.sum(), R)(inner) * row.sum()

    assert hnp.allclose(hx.vmap(lane, R)(x), hnp.outer(hnp.array([3.0, 3.0, 22.0]), hnp.array([0.0, 3.0])))


@functools.lru_cache
def twice(n):
    return 2 * n


@dataclasses.dataclass(frozen=True)
class Size:
    rows: object


# what Python, and code that is no part of the package, make of lengths by comparing and hashing them
COMPARED = {
    "equal to a number": lambda n, m: n == 3,
    "not equal": lambda n, m: n != m,
    "called by the package": lambda n, m: hx.tree.map(lambda k: k == m, [n])[0],
    "in a loop's body": lambda n, m: lax.fori_loop(0, 2, lambda i, c: c + (n == 3), 0),
    "by the standard library": lambda n, m: functools.reduce(operator.eq, [n, m]),
    "by a partial function": lambda n, m: functools.partial(operator.eq, 3)(n),
    "fields of a dataclass": lambda n, m: (Size(n) == Size(n)) * 1,
    "a cached function": lambda n, m: twice(n) + twice(m) - twice(n),
    "keys of a dict": lambda n, m: {n: 1, m: 2, n + 1: 3}[m + 0] + (m in {m: 1}),
    "members of a set": lambda n, m: len({n, m, n + 1, 1 + n}) + 0 * n if type(n) is not int else 3,
    "found in a shape": lambda n, m: [n, m].index(n) + 0 * n,
    "greater": lambda n, m: (n > m) | (n >= 4),
    "the larger": lambda n, m: max(n, 0) + min(n + 1, n),
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", COMPARED)
def test_lengths_compare_by_value_for_the_user_and_hash_by_structure(name, known):
    f = COMPARED[name]
    pairs = [(3, 2), (1, 1), (4, 5)]
    x, y = [hx.Ragged(hnp.zeros(8), tuple(n) if known else np.array(n), 5) for n in zip(*pairs)]
    mapped = hx.vmap(lambda x, y: f(x.shape[0], y.shape[0]), (R, R))
    wanted = {"members of a set": [3] * 3, "keys of a dict": [3] * 3}.get(name)
    y = (mapped if known else hx.jit(mapped))(x, y)
    assert y.tolist() == (wanted or [f(n, m) for n, m in pairs])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("f", [
    lambda n: +n, lambda n: ~n, lambda n: n & 1, lambda n: 5 & n, lambda n: n | 1, lambda n: 8 | n, lambda n: n ^ n - 1,
    lambda n: 1 ^ n, lambda n: n << 2, lambda n: 1 << n, lambda n: n >> 1, lambda n: 64 >> n,
])
def test_lengths_have_the_operators_of_integers(f, known):
    lengths = (3, 1, 4, 0)
    x = hx.Ragged(hnp.ones(8), lengths if known else hnp.array(lengths))
    y = hx.vmap(lambda r: hnp.asarray(f(r.shape[0])), in_axes=R)(x)
    assert y.tolist() == [f(n) for n in lengths]


@pytest.mark.parametrize(("f", "error", "words"), [
    (lambda x: len(x), hx.errors.TracerIntegerConversionError, "length of a lane"),
    (lambda x: list(x), hx.errors.TracerIntegerConversionError, "lax.scan"),
    (lambda x: list(range(x.shape[0])), hx.errors.TracerIntegerConversionError, "Python loop"),
    (lambda x: np.zeros(x.shape[0]), TypeError, "n0"),
    (lambda x: x * (3 in x.shape[:1]), hx.errors.TracerBoolConversionError, "Python condition"),
    (lambda x: x * (x.shape == (3, 3)), hx.errors.TracerBoolConversionError, "Python condition"),
    (lambda x: hx.vmap(hnp.sum, R)(hx.Ragged(x, (1, 2))), hx.errors.CannotCross, "counted by integers"),
    (lambda x: hx.vmap(lambda y: hnp.concatenate([x, y]).sum(), R)(KNOWN), hx.errors.CannotCross, "lanes around them"),
    (lambda x: x if x.shape[0] == 3 else 2 * x, hx.errors.TracerBoolConversionError, "Python condition"),
    (lambda x: x + hnp.ones((5, 1)), hx.errors.ShapeMismatch, "n0"),
    (lambda x: x[: x.shape[0] - 3], hx.errors.BadIndex, "from one end"),
    (lambda x: hnp.polyval(x[:, 0], 2.0), hx.errors.TracerBoolConversionError, "n0"),
    (lambda x: hnp.unique(x, size=2), hx.errors.BadIndex, "n0"),
    (lambda x: hnp.pad(x, ((1, 1), (0, 0)), mode="wrap"), hx.errors.TracerIntegerConversionError, "known integer"),
    (lambda x: hnp.pad(x, ((1, 1), (0, 0)), mode="reflect"), hx.errors.TracerBoolConversionError, "n0"),
    (lambda x: hnp.resize(x, (2, 3)), hx.errors.TracerBoolConversionError, "n0"),
    (lambda x: x.reshape(-1, 2, 3), hx.errors.ShapeMismatch, "does not divide"),
    (lambda x: hnp.insert(x, [0, -1], 2.0, axis=0), hx.errors.BadArgument, "one end of a lane"),
    (lambda x: hnp.einsum("nd,md->ndm", x, x).reshape(-1), hx.errors.CannotCross, "rows of"),
    (lambda x: lax.linalg.cholesky(x @ x.T).sum(), hx.errors.MissingRule, "known lengths"),
    (lambda x: lax.psum(x, "i"), hx.errors.CannotCross, "different types"),
])
def test_what_is_not_the_same_for_every_length_is_refused(f, error, words):
    x = hx.Ragged(hnp.ones((4, 3)), hnp.array([3, 1]), 3)
    with pytest.raises(error, match=words):
        hx.jit(lambda x: hx.vmap(f, R, 0, axis_name="i")(x))(x)


def test_where_lengths_are_known_lanes_of_one_length_are_computed_together():
    x = hx.Ragged(hnp.arange(8.0), (3, 2, 3))
    assert hnp.allclose(hx.vmap(lambda x: lax.top_k(x, 2)[0], R)(x), hnp.array([[2.0, 1.0], [4.0, 3.0], [7.0, 6.0]]))


@pytest.mark.parametrize("longest", [4, 200], ids=["padded", "one lane after the other"])
def test_another_vector_of_lengths_of_the_same_total_compiles_nothing(longest):
    mapped = hx.vmap(lambda x: softmax(x @ x.T) @ x + hnp.tanh(x), R, R)
    f = hx.jit(hx.grad(lambda x, n: mapped(hx.Ragged(x, n, longest)).data.sum()))
    x = hnp.ones((8, 3))
    f(x, hnp.array([3, 1, 4]))
    before = {name: entry.misses for name, entry in hx.cache_info().items()}
    for lengths in ([4, 4, 0], [1, 3, 2], [0, 0, 0]):
        f(x, hnp.array(lengths))
    after = {name: entry.misses for name, entry in hx.cache_info().items()}
    assert f._cache_size() == 1 and [after[name] - before[name] for name in ("trace", "compile")] == [0, 0]


KINDS_OF_LENGTHS = pytest.mark.parametrize("known", [True, False], ids=["known", "values"])


def on_rows(f, rows, known):
    """``f`` of lanes of 3, 1 and 4 of these rows, whose lengths are known, or values of a program."""
    if known:
        return f(hx.Ragged(rows, (3, 1, 4))).data
    return hx.jit(lambda rows, n: f(hx.Ragged(rows, n)).data)(rows, hnp.array([3, 1, 4]))


@KINDS_OF_LENGTHS
@pytest.mark.parametrize("kind", [Sin, Elementwise], ids=lambda kind: kind.__name__)
def test_a_ragged_rule_of_a_scope_is_in_force(kind, known):
    def mine(op, run, types, x):
        mark, parts = run.split(x)
        return run.box(mark, [2 * part for part in parts])

    sines, rows = hx.vmap(hnp.sin, R, R), hnp.arange(8.0)
    with hx.rules(ragged={kind: mine}):
        assert (on_rows(sines, rows, known) == 2 * rows).all()
        assert f"{mine.__code__.co_firstlineno}  (in force in this scope)" in hx.explain_rules(Sin)
    assert RAGGED.find(Sin) is RAGGED.find(Elementwise)
    np.testing.assert_allclose(on_rows(sines, rows, known), hnp.sin(rows), rtol=1e-6)


@KINDS_OF_LENGTHS
def test_a_batch_rule_of_a_scope_is_in_force_in_ragged_lanes(known):
    rows = hnp.arange(8.0)
    with hx.rules(batch={Sin: lambda op, dims, x: (3 * x, dims[0])}):
        assert (on_rows(hx.vmap(hnp.sin, R, R), rows, known) == 3 * rows).all()
    sums = hx.vmap(lax.cumsum, R, R)
    with hx.rules(batch={Cumsum: lambda op, dims, x: (3 * x, dims[0])}):
        if known:
            assert (on_rows(sums, rows, known) == 3 * rows).all()
        else:
            with pytest.raises(hx.errors.MissingRule, match="the batch rule of this scope is for lanes of one length"):
                on_rows(sums, rows, known)


def test_an_operation_without_a_rule_for_ragged_lanes_is_told_so():
    @operation
    class Unruled:
        def result_type(op, x):
            return x

        def evaluate(op, x):
            return x + 1

        def batch(op, dims, x):
            return hx.perform(op, x), dims[0]

    each = hx.vmap(lambda x: hx.perform(Unruled(), x), R, R)
    rows = hnp.arange(8.0)
    assert (on_rows(each, rows, True) == rows + 1).all()
    with pytest.raises(hx.errors.MissingRule, match=r"no rule for lanes of different lengths.*f32\[n0\]") as caught:
        on_rows(each, rows, False)
    assert "hx.columns.ragged.rule(Unruled)" in caught.value.hint


def test_every_operation_on_arrays_has_a_rule_for_ragged_lanes():
    """But collectives, which have none in lanes of different types, and constraints of places and memories."""
    RAGGED.complete()
    missing = {kind for kind in every_operation() if not kind.bodied and not RAGGED.has(kind)}
    missing = {kind for kind in missing if kind.__module__.startswith("handlax.effects.operations.")}
    where = {kind.__module__.removeprefix("handlax.effects.operations.") for kind in missing}
    places = {f"foundations.{name}" for name in ("layout_constraint", "put_on", "sharding_constraint", "to_memory")}
    assert where == {"collectives.collective", "collectives.host_local"} | places


@KINDS_OF_LENGTHS
def test_special_functions_are_those_of_each_row(known):
    rows = hnp.linspace(0.5, 3.0, 8)
    functions = lax.lgamma, lax.digamma, lambda x: lax.igamma(x, x + 1), lambda x: lax.betainc(x, x, x / 4)
    for f in functions:
        np.testing.assert_allclose(on_rows(hx.vmap(f, R, R), rows, known), f(rows), rtol=1e-5)


def test_sum_leaves_spare_rows_out():
    """It makes no copies in their place; who needs them makes them once."""
    rows = hnp.concatenate([ROWS, hnp.full((2, 3), hnp.nan)])

    def total(f):
        return lambda rows, n: hx.vmap(f, R)(hx.Ragged(rows, n, 4)).sum()

    def selections(f):
        program = hx.make_jaxpr(total(f))(rows, VALUES.segment_lengths)
        return [t.shape for op, t in zip(program.ops, program.types) if op.name == "select_n"]

    value, gradient = hx.jit(hx.value_and_grad(total(lambda x: x.sum(0))))(rows, VALUES.segment_lengths)
    assert hnp.allclose(value, ROWS.sum(), atol=1e-5)
    assert hnp.array_equal(gradient, (hnp.arange(7) < 5)[:, None] * hnp.ones(3))
    assert (7, 3) not in selections(lambda x: x.sum(0))
    assert selections(lambda x: (x * x).sum() + (x * 2).sum() + x.sum()).count((7, 3)) == 1


@pytest.mark.parametrize("transform", [lambda f: f, hx.jit])
def test_lanes_of_one_length_may_be_none_around_ragged_ones(transform):
    inner = hx.vmap(lambda y: hnp.cumsum(y) - y.mean(), R, R)
    f = hx.vmap(lambda rows, lengths: inner(hx.Ragged(rows, lengths, 3)).data)
    assert transform(f)(hnp.zeros((0, 4)), hnp.zeros((0, 2), "int32")).shape == (0, 4)
