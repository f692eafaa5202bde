"""shard_map: against the same function of whole arrays, and the program on devices against its evaluation by NumPy."""

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.experimental import shard_map as experimental
from handlax.sharding import AbstractMesh, AxisType, Mesh, P

MESH = Mesh(np.array(hx.devices("cpu")).reshape(2, 4), ("a", "b"))
EXPLICIT = hx.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
BOTH = ("a", "b")
RANDOM = np.random.RandomState(0)
X, W, V = [RANDOM.randn(*shape).astype(np.float32) for shape in ((8, 8), (8, 3), (8,))]
ENTRIES = (None, "a", "b", BOTH, ("b", "a"))


def over(f, in_specs, out_specs, **options):
    return hx.shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options)


def on_host(f, *args):
    """The function by the rules ``evaluate`` alone: axes of the mesh are dimensions of NumPy arrays."""
    with hx.disable_jit():
        return f(*args)


def close(actual, expected):
    for y, z in zip(hx.tree.leaves(actual), hx.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=1e-4, atol=1e-5)


def check(f, expected, *args):
    """``f`` on the devices, jitted, and by NumPy gives what is expected."""
    for run in (hx.jit(f), lambda *xs: on_host(f, *xs)):
        close(run(*args), expected)


@pytest.mark.parametrize(
    "spec", [P(*pair) for pair in itertools.product(ENTRIES, repeat=2) if len({*P(*pair).axes}) == len(P(*pair).axes)]
)
def test_pieces_go_to_the_positions_that_the_spec_names(spec):
    check(over(lambda x: x, spec, spec), X, X)
    names = spec.axes or ("a",)

    def numbered(x):
        return x * 0 + lax.axis_index(names)

    out = spec if spec.axes else P("a")
    whole = X if spec.axes else np.concatenate([X, X])
    mine = hx.NamedSharding(MESH, out)
    expected = np.zeros_like(whole)
    for device, index in mine.devices_indices_map(whole.shape).items():
        place = dict(zip(BOTH, np.argwhere(MESH.devices == device)[0]))
        sizes = [MESH.shape[name] for name in names]
        expected[index] = np.ravel_multi_index([place[name] for name in names], sizes)
    check(over(numbered, spec, out), expected, X)


def whole(x):
    """The rows of lanes of ``P("a", "b")`` pieces: a[2, 4, 4, 2]."""
    return np.asarray(x).reshape(2, 4, 4, 2).transpose(0, 2, 1, 3)


def pieces(rows):
    a, b, n, m = rows.shape
    return rows.transpose(0, 2, 1, 3).reshape(a * n, b * m)


COLLECTIVES = {
    "psum b": (lambda x: lax.psum(x, "b"), P("a"), lambda r: r.sum(1).reshape(8, 2)),
    "psum ab": (lambda x: lax.psum(x, BOTH), P(), lambda r: r.sum((0, 1))),
    "pmax a": (lambda x: lax.pmax(x, "a"), P(None, "b"), lambda r: np.moveaxis(r.max(0), 0, 1).reshape(4, 8)),
    "pmin ba": (lambda x: lax.pmin(x, ("b", "a")), P(), lambda r: r.min((0, 1))),
    "pmean": (lambda x: lax.pmean(x, "b"), P("a"), lambda r: r.mean(1).reshape(8, 2)),
    "pprod": (lambda x: lax.pprod(x, "b"), P("a"), lambda r: r.prod(1).reshape(8, 2)),
    "pargmax": (lambda x: lax.pargmax(x, "b"), P("a"), lambda r: r.argmax(1).reshape(8, 2)),
    "constant": (lambda x: x * lax.psum(1, BOTH), P(*BOTH), lambda r: pieces(8 * r)),
    "equal on all": (lambda x: lax.psum(hnp.ones(2), "b") + 0 * lax.psum(x, BOTH)[0], P(), lambda r: np.full(2, 4.0)),
    "gather": (
        lambda x: lax.all_gather(x, "b", axis=1, tiled=True), P(*BOTH),
        lambda r: np.tile(r.transpose(0, 2, 1, 3).reshape(8, 8), (1, 4)),
    ),
    "scatter": (
        lambda x: lax.psum_scatter(x, "b", scatter_dimension=0)[None], P(*BOTH),
        lambda r: r.sum(1).reshape(2, 8),
    ),
    "exchange": (
        lambda x: lax.all_to_all(x, "b", 0, 0), P(*BOTH), lambda r: pieces(r.transpose(0, 2, 1, 3)),
    ),
    "ring": (
        lambda x: lax.ppermute(x, "b", [(i, (i + 1) % 4) for i in range(4)]), P(*BOTH),
        lambda r: pieces(np.roll(r, 1, 1)),
    ),
    "some": (
        lambda x: lax.ppermute(x, ("b", "a"), [(0, 5), (3, 0)]), P(*BOTH),
        lambda r: pieces(np.array([[r[1, 1] if (i, j) == (0, 0) else r[0, 0] if (i, j) == (1, 2) else 0 * r[0, 0]
                                    for j in range(4)] for i in range(2)])),
    ),
    "broadcast": (lambda x: lax.pbroadcast(x, "b", 2), P(*BOTH), lambda r: pieces(r[:, [2, 2, 2, 2]])),
    "shuffle": (lambda x: lax.pshuffle(x, "b", [3, 1, 0, 2]), P(*BOTH), lambda r: pieces(r[:, [3, 1, 0, 2]])),
    "groups": (
        lambda x: lax.psum(x, "b", axis_index_groups=[[0, 3], [1], [2]]), P(*BOTH),
        lambda r: pieces(np.stack([r[:, 0] + r[:, 3], r[:, 1], r[:, 2], r[:, 0] + r[:, 3]], 1)),
    ),
    "prefixes": (lambda x: lax.pcumsum(x, "b"), P(*BOTH), lambda r: pieces(r.cumsum(1))),
    "gather at": (
        lambda x: lax.pgather(x, (lax.axis_index("b") + 1) % 4, "b"), P(*BOTH), lambda r: pieces(np.roll(r, -1, 1)),
    ),
    "position in a group": (
        lambda x: 0 * x + lax.axis_index("b", axis_index_groups=[[2, 0], [1, 3]]), P(*BOTH),
        lambda r: pieces(np.broadcast_to(np.array([1, 0, 0, 1])[None, :, None, None], r.shape)),
    ),
    "booleans": (lambda x: lax.pmax(x > 1, "b"), P("a"), lambda r: (r > 1).any(1).reshape(8, 2)),
    "counts": (lambda x: lax.psum(x > 0, "b"), P("a"), lambda r: (r > 0).sum(1).reshape(8, 2)),
    "complex": (lambda x: lax.psum(x * 1j, "b"), P("a"), lambda r: 1j * r.sum(1).reshape(8, 2)),
    "half": (
        lambda x: lax.psum(hnp.round(x).astype(hnp.bfloat16), "b").astype(hnp.float32), P("a"),
        lambda r: np.round(r).sum(1).reshape(8, 2),
    ),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name):
    f, out, expected = COLLECTIVES[name]
    check(over(f, P(*BOTH), out), expected(whole(X)), X)


def loss(w, x):
    return lax.pmean(hnp.mean(hnp.tanh(x @ w) ** 2), BOTH)


def whole_loss(w, x):
    return hnp.mean(hnp.tanh(x @ w) ** 2)


SHARDED_LOSS = over(loss, (P(), P(BOTH)), P())
UNTRACKED_LOSS = over(loss, (P(), P(BOTH)), P(), check_vma=False)


@pytest.mark.each_choice
@pytest.mark.parametrize("sharded", [SHARDED_LOSS, UNTRACKED_LOSS], ids=["tracked", "untracked"])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        lambda f: hx.grad(f, (0, 1)),
        lambda f: lambda w, x: hx.jvp(f, (w, x), (w + 1, 2 * x)),
        lambda f: lambda w, x: hx.linearize(f, w, x)[1](w, x),
        lambda f: hx.vmap(f, (1, None)),
        lambda f: lambda w, x: hx.vmap(hx.grad(f, (0, 1)), (None, 1))(w, hnp.stack([x, x + 1, 2 * x], 1)),
        lambda f: hx.grad(hx.checkpoint(f)),
        lambda f: lambda w, x: hx.hessian(lambda v: f(v[:, None], x))(w[:, 0]),
        lambda f: lambda w, x: hx.grad(lambda c: f(w * c, x) + c)(2.0),
    ],
)
def test_transformations_see_the_function_of_whole_arrays(sharded, transform):
    with hx.disable_jit():
        expected = transform(whole_loss)(W, X)
    for run in (transform(sharded), hx.jit(transform(sharded))):
        close(run(W, X), expected)
    close(on_host(transform(sharded), W, X), expected)


def mixed(w):
    """Of a value that all devices share: uses that vary, uses that do not, and sums between them."""
    y = hnp.tanh(w)
    return lambda x: hnp.sum(y) * 1.5 + hnp.sum(x @ y) + lax.psum(hnp.sum(x @ y), "b") ** 2 * hnp.sum(y)


def whole_mixed(w, rows):
    """The sum over all devices of what each one's own loss is, of which one counts what they share."""
    y = hnp.tanh(w)
    parts = hnp.stack([hnp.sum(x @ y) for x in rows]).reshape(2, 4)
    return hnp.sum(hnp.sum(y) * 1.5 + parts + hnp.sum(parts, 1, keepdims=True) ** 2 * hnp.sum(y))


def test_a_derivative_inside_of_a_value_that_all_share_is_the_sum_of_what_each_contributes():
    inside = over(lambda w, x: hx.grad(lambda w: mixed(w)(x))(w), (P(), P(BOTH)), P())
    check(inside, hx.grad(whole_mixed)(W, X.reshape(8, 1, 8)), W, X)


def test_without_types_a_derivative_inside_is_each_device_s_own():
    def own(w, x):
        return hx.grad(lambda w: hnp.sum(hnp.tanh(x @ w)))(w)[None]

    each = over(own, (P(), P(BOTH)), P(BOTH), check_vma=False)
    check(each, np.concatenate([own(W, x) for x in X[:, None]]), W, X)


@pytest.mark.parametrize("around", [lambda f: f, hx.jit])
def test_without_types_the_first_device_s_result_counts(around):
    y = around(over(lambda x: 2 * x, P(BOTH), P(), check_vma=False))(X)
    np.testing.assert_array_equal(y, 2 * X[:1])
    np.testing.assert_array_equal(y.addressable_shards[7].data, 2 * X[7:])


@pytest.mark.parametrize(
    "name", ["gather", "scatter", "exchange", "ring", "broadcast", "groups", "prefixes", "pprod", "pmean"]
)
def test_adjoints_of_collectives(name):
    f, out, _ = COLLECTIVES[name]
    sharded = over(f, P(*BOTH), out)
    y, pull = hx.vjp(sharded, X)
    ct = RANDOM.randn(*y.shape).astype(np.float32)
    dx = RANDOM.randn(*X.shape).astype(np.float32)
    dy = hx.jvp(sharded, (X,), (dx,))[1]
    np.testing.assert_allclose(np.vdot(ct, dy), np.vdot(pull(ct)[0], dx), rtol=1e-3)
    close(on_host(lambda: hx.vjp(sharded, X)[1](ct)), pull(ct))


def scanned(w, x):
    def step(c, r):
        return hnp.tanh(c + r @ w), hnp.sum(c)

    c, ys = lax.scan(step, hnp.zeros(3), x)
    return hnp.sum(c) + hnp.sum(ys)


def branched(w, x):
    return hnp.sum(lax.cond(hnp.sum(x) > 0, lambda w: x @ w, lambda w: w[:1] * 2.0, w))


def iterated(w, x):
    return hnp.sum(lax.while_loop(lambda c: hnp.sum(c) < 3, lambda c: c + hnp.abs(w[0]) + 1, hnp.sum(x) * w[1] * 0))


@pytest.mark.each_choice
@pytest.mark.parametrize("f", [scanned, branched, iterated], ids=lambda f: f.__name__)
@pytest.mark.parametrize("tracked", [True, False])
def test_control_flow_differs_from_device_to_device(f, tracked):
    rows = [x[None] for x in X]
    total = over(lambda w, x: lax.psum(f(w, x), BOTH), (P(), P(BOTH)), P(), check_vma=tracked)
    check(total, sum([f(W, x) for x in rows]), W, X)
    if f is not iterated:
        expected = hx.grad(lambda w: sum([f(w, x) for x in rows]))(W)
        check(hx.grad(total), expected, W, X)
        if tracked:
            check(over(lambda w, x: hx.grad(f)(w, x), (P(), P(BOTH)), P()), expected, W, X)


def test_collectives_in_loops_and_branches_that_all_devices_execute_alike():
    def f(x):
        c = lax.fori_loop(0, 3, lambda i, c: c + lax.ppermute(c, "b", [(j, (j + 1) % 4) for j in range(4)]), x)
        alike = lax.pmax(hnp.sum(x), BOTH) > -1e9
        return lax.cond(alike, lambda c: lax.psum(c, "a"), lambda c: lax.psum(c * 0, "a"), c)

    rows = whole(X)
    for _ in range(3):
        rows = rows + np.roll(rows, 1, 1)
    check(over(f, P(*BOTH), P(None, "b")), np.moveaxis(rows.sum(0), 0, 1).reshape(4, 8), X)


def test_custom_rules_use_the_axes():
    @hx.custom_vjp
    def total(x):
        return lax.psum(x, "b")

    total.defvjp(lambda x: (lax.psum(x, "b"), None), lambda _, ct: (3 * lax.pcast(ct, "b", to="varying"),))

    def f(w, x):
        _, ys = lax.scan(lambda c, r: (c, total(hnp.sum(r @ w))), 0.0, x)
        return lax.psum(hnp.sum(ys), "a")

    check(hx.grad(over(f, (P(), P(BOTH)), P())), 3 * np.repeat(X.sum(0)[:, None], 3, 1), W, X)


def test_a_mesh_within_a_mesh_and_axes_left_to_the_compiler():
    def outer(x):
        inner = hx.shard_map(
            lambda y: lax.psum(y, "b") + lax.axis_index("b"), mesh=MESH, in_specs=P(None, "b"), out_specs=P(None, "b"),
            axis_names={"b"},
        )
        return inner(x) * (1 + lax.axis_index("a"))

    nested = over(outer, P("a"), P("a"), axis_names={"a"})
    sums = np.repeat(X.reshape(8, 4, 2).sum(1)[:, None], 4, 1) + np.arange(4)[None, :, None]
    expected = sums.reshape(8, 8) * np.repeat([1, 2], 4)[:, None]
    check(nested, expected, X)
    partial = over(lambda w, x: lax.psum(hnp.sum(hnp.tanh(x @ w)) * (1 + lax.axis_index("a")), "a"), (P(), P("a")), P(),
                   axis_names={"a"})
    weights = np.repeat([1, 2], 4)[:, None]
    check(hx.grad(partial), hx.grad(lambda w: hnp.sum(hnp.tanh(X @ w) * weights))(W), W, X)


def test_axes_that_xla_cannot_merge_are_refused():
    mesh = Mesh(np.array(hx.devices("cpu")).reshape(2, 2, 2), ("a", "b", "c"))

    def nested(outer, inner):
        f = hx.shard_map(lambda x: lax.psum(x, inner), mesh=mesh, in_specs=P(inner), out_specs=P(), axis_names={inner})
        return hx.shard_map(f, mesh=mesh, in_specs=P(None, outer), out_specs=P(None, outer), axis_names={outer})

    check(nested("a", "b"), X[:4] + X[4:], X)
    with pytest.raises(errors.BadArgument, match="those of the outer shard_map before those of the inner one"):
        nested("b", "a")(X)


def test_inside_its_mesh_is_in_force_with_the_axes_that_are_left():
    seen = []

    def inner(x):
        seen.append(hx.sharding.get_abstract_mesh())
        return hx.shard_map(lambda y: lax.psum(y, "b") * lax.axis_index("a"), in_specs=P(None, "b"), out_specs=P())(x)

    check(over(inner, P("a"), P("a"), axis_names={"a"}), X.reshape(8, 4, 2).sum(1) * np.repeat([0, 1], 4)[:, None], X)
    assert {mesh.manual_axes for mesh in seen} == {("a",)}
    assert {mesh.auto_axes for mesh in seen} == {("b",)}
    assert hx.sharding.get_abstract_mesh().empty
    constrained = over(lambda x: lax.with_sharding_constraint(x, P(None, "b")) * 2, P("a"), P("a"), axis_names={"a"})
    check(constrained, 2 * X, X)
    every = over(lambda x: hx.shard_map(lambda y: 2 * y, in_specs=P(), out_specs=P())(x), P(BOTH), P(BOTH))
    check(every, 2 * X, X)


def test_an_argument_without_a_spec_is_handed_on_as_it_is():
    sign = object()

    def f(words, x, n):
        assert words["sign"] is sign and type(n) is int
        return x * np.ones(n, np.float32)

    check(lambda x: over(f, ({"sign": None}, P("a"), None), P("a"))({"sign": sign}, x, 8), X, X)


def test_a_function_without_results():
    seen = []
    hx.shard_map(lambda x: seen.append(x.shape) or (), mesh=MESH, in_specs=P("a"), out_specs=())(np.arange(4.0))
    assert hx.jit(hx.shard_map(lambda x: {}, mesh=MESH, in_specs=P("a"), out_specs=P()))(np.arange(4.0)) == {}
    assert seen == [(2,)]


def test_vmap_inside_and_outside():
    inside = over(hx.vmap(lambda r: r - lax.pmean(r, ("b", "i")), axis_name="i"), P(*BOTH), P(*BOTH))
    rows = whole(X)
    check(inside, pieces(rows - rows.mean((1, 2), keepdims=True)), X)
    outside = hx.vmap(over(lambda x: lax.psum(x, "a"), P(*BOTH), P(None, "b")), in_axes=1, out_axes=2)
    many = np.stack([X, 2 * X, 3 * X], 1)
    single = np.moveaxis(rows.sum(0), 0, 1).reshape(4, 8)
    check(outside, np.stack([single, 2 * single, 3 * single], 2), many)


def test_types_tell_along_which_axes_values_vary():
    seen = []

    def f(x, y):
        seen.extend([hx.typeof(v).vma for v in (x, y, x * y, lax.psum(x * y, "a"), lax.axis_index("b"), hnp.ones(3))])
        return x * y

    over(f, (P("a"), P(None, "b")), P(*BOTH))(X[:, :2], X[:4])
    assert seen == [{"a"}, {"b"}, {"a", "b"}, {"b"}, {"b"}, set()]


def test_programs_print_and_parse():
    program = hx.make_program(hx.grad(SHARDED_LOSS))(W, X)
    body = next(op for op in program.ops if op.name == "shard_map").bodies[0]
    assert "{a:2,b:4}" in str(body)
    assert hx.parse_program(str(body), body.constants).unwrap() == body
    hx.typecheck(program)


def test_one_message_for_one_sum():
    text = hx.jit(hx.grad(SHARDED_LOSS)).lower(W, X).compile().as_text()
    assert text.count(" all-reduce(") == 1
    assert not any(word in text for word in ("all-gather(", "all-to-all(", "collective-permute("))


def test_random_keys_and_trees():
    keys = over(lambda k: hx.random.normal(hx.random.fold_in(k, lax.axis_index("b")), (2,)), P(), P("b"))
    key = hx.random.key(0)
    check(keys, np.concatenate([hx.random.normal(hx.random.fold_in(key, i), (2,)) for i in range(4)]), key)
    tree = over(lambda t: {"s": lax.psum(t["u"], "a"), "d": t["v"][0] * 2}, ({"u": P("a"), "v": P("b")},), P())
    with pytest.raises(errors.BadArgument, match=r"got f32.*without 'b'"):
        tree({"u": X, "v": (X,)})
    tree = over(lambda t: {"s": lax.psum(t["u"], "a"), "d": t["v"][0] * 2}, ({"u": P("a"), "v": P("b")},),
                {"s": P(), "d": P("b")})
    check(tree, {"d": 2 * X, "s": X[:4] + X[4:]}, {"u": X, "v": (X,)})


def test_the_mesh_in_force_and_abstract_meshes():
    f = hx.shard_map(lambda x: lax.psum(x, "b"), in_specs=P(None, "b"), out_specs=P())
    with pytest.raises(errors.BadArgument, match="a mesh must be given or in force"):
        f(X)
    with hx.set_mesh(MESH):
        close(f(X), X.reshape(8, 4, 2).sum(1))
    traced = hx.shard_map(
        lambda x: lax.psum(x, "b"), mesh=AbstractMesh((2, 4), BOTH), in_specs=P(None, "b"), out_specs=P()
    )
    assert hx.eval_shape(traced, X).shape == (8, 2)


@hx.effect
class Pulse:
    def result_type(op):
        return None


@hx.custom_jvp
def meets_in_its_rule(x):
    return x * 2


meets_in_its_rule.defjvp(lambda primals, tangents: (primals[0] * 2, lax.psum(tangents[0], "a") + 0 * primals[0]))


@pytest.mark.parametrize(
    ("f", "specs", "error", "message"),
    [
        (lambda x: x, (P("c"), P()), errors.BadArgument, r"in_specs must name axes of \['a', 'b'\], got 'c'"),
        (lambda x: x, (P("a", "a"), P()), errors.BadArgument, "a spec must name an axis once"),
        (lambda x: x, (P(None, None, "a"), P()), errors.BadArgument, "at most one entry for each dimension"),
        (lambda x: x, (P("a"), P()), errors.BadArgument, "every axis along which a result varies, got .* without 'a'"),
        (lambda x: x[:3], (P(), P("b")), None, None),
        (
            lambda x: over(lambda y: y, P("a"), P("a"), axis_names={"a"})(x),
            (P("a"), P("a")), errors.BadArgument, "other than those of the shard_map around it, got 'a' again",
        ),
        (lambda x: over(lambda y: y, P("a"), P())(x), (P(), P()), errors.BadArgument, r"must name axes of \[\], got"),
        (
            lambda x: hx.shard_map(lambda y: y, mesh=hx.make_mesh((8,), ("c",)), in_specs=P(), out_specs=P())(x),
            (P(), P()), errors.BadArgument, "the mesh must be that of the shard_map around it",
        ),
        (
            lambda x: lax.with_sharding_constraint(x, P("b")), (P("a"), P("a")), errors.BadArgument,
            "inside of shard_map over 'b' a value has no parts along it",
        ),
        (lambda x: lax.psum(x, "c"), (P(), P()), errors.UnboundAxis, "in scope are 'a' of size 2, 'b' of size 4"),
        (lambda x: hx.perform(Pulse()) or x, (P(), P()), errors.CannotCross, "every device would perform pulse"),
        (
            lambda x: lax.cond(hnp.sum(x) > 0, lambda x: lax.psum(x, "b"), lambda x: lax.psum(x, "b"), x),
            (P("b"), P()), errors.CannotCross, "choose by a value that varies along b",
        ),
        (
            lambda x: lax.while_loop(lambda c: hnp.sum(c) < 0, lambda c: lax.psum(c, "a") * 1, x),
            (P(BOTH), P(BOTH)), errors.CannotCross, "choose by a value that varies along a",
        ),
        (
            lambda x: hx.jvp(lambda x: lax.cond(lax.axis_index("a") > 0, meets_in_its_rule, lambda x: x, x), [x], [x]),
            (P("a"), P("a")), errors.CannotCross, "varies along a, and meet along a inside",
        ),
    ],
)
def test_what_cannot_be_is_refused(f, specs, error, message):
    sharded = over(f, *specs)
    if error is None:
        assert sharded(X).shape == (12, 8)
        return
    with pytest.raises(error, match=message):
        sharded(X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.psum(x, "b") + 0 * x,
        lambda x: lax.all_gather(x, "b", axis=1, tiled=True)[:, :2],
        lambda x: lax.psum_scatter(hnp.tile(x, (1, 4)), "b", scatter_dimension=1, tiled=True),
        lambda x: lax.all_to_all(x, "b", 0, 0, tiled=True),
        lambda x: hx.vmap(lambda row: lax.ppermute(row, "i", [(0, 1), (1, 0)]), axis_name="i")(x[:2]).sum() + x,
        lambda x: lax.ppermute(x, "b", [(0, 1), (1, 2), (2, 0)]),
        lambda x: hx.jit(lambda x: lax.pshuffle(x, "b", [1, 0, 3, 2]))(x) + lax.psum(x, "b"),
        lambda x: hx.grad(lambda y: (lax.ppermute(y, "b", [(0, 1), (1, 2)]) * x).sum())(x),
        lambda x: lax.while_loop(
            lambda c: c[0] < 2 + lax.axis_index("a"), lambda c: (c[0] + 1, lax.ppermute(c[1], "b", [(0, 1), (3, 2)])),
            (0, x))[1],
    ],
    ids=["psum", "all_gather", "psum_scatter", "all_to_all", "ppermute of a mapped axis", "ppermute",
         "pshuffle in a call", "a derivative of ppermute", "a loop of each group"],
)
def test_collectives_between_devices_that_choose_alike(f):
    chosen = over(lambda x: lax.cond(lax.axis_index("a") > 0, lambda x: f(f(x)), f, x), P("a", "b"), P("a", "b"))(X)
    once, twice = (over(g, P("a", "b"), P("a", "b"))(X) for g in (f, lambda x: f(f(x))))
    close(chosen, np.concatenate([once[:4], twice[4:]]))


def test_sizes_that_do_not_divide():
    with pytest.raises(errors.ShapeMismatch, match="dimension 0 must be a multiple of 4, divided over 'b' of size 4"):
        over(lambda x: x, P("b"), P("b"))(X[:6])


def test_the_call_of_the_experimental_module():
    shard_map = experimental.shard_map
    close(shard_map(lambda x: lax.psum(x, "b"), MESH, P(None, "b"), P())(X), X.reshape(8, 4, 2).sum(1))
    own = shard_map(lambda x: x * lax.axis_index("a"), MESH, P("a"), P("a"), check_rep=False, auto={"b"})
    close(hx.jit(own)(X), X * np.repeat([0, 1], 4)[:, None])


def test_specs_of_arrays_that_lie_on_the_mesh():
    total = hx.shard_map(lambda x: lax.psum(x, "b"), mesh=MESH, out_specs=P())
    x = hx.device_put(X, hx.NamedSharding(MESH, P(None, "b")))
    close(total(x), X.reshape(8, 4, 2).sum(1))
    with pytest.raises(errors.BadArgument, match="without in_specs an argument must lie on the mesh"):
        total(X)
    with pytest.raises(TypeError, match="while it is traced"):
        hx.jit(total)(x)


@pytest.mark.parametrize(("spec", "own", "shape"), [
    (P("a", "b"), P("a"), (4, 8)), (P(BOTH), P("a"), (4, 8)), (P("b", "a"), P(None, "a"), (8, 4)),
])
def test_specs_of_arrays_are_about_the_axes_that_the_function_sees(spec, own, shape):
    def f(x):
        assert x.shape == shape
        return 2 * x

    x = hx.device_put(X, hx.NamedSharding(MESH, spec))
    close(hx.shard_map(f, mesh=MESH, out_specs=own, axis_names={"a"})(x), 2 * X)


@pytest.mark.parametrize("around", [
    hx.jit,
    lambda f: hx.jit(hx.jit(f)),
    lambda f: lambda x: hx.jit(f).lower(x).compile()(x),
    lambda f: lambda x: hx.jvp(hx.jit(f), (x,), (x,))[1],
    lambda f: lambda x: x * hx.grad(lambda x: f(x).sum())(x),
    lambda f: hx.jit(lambda x: x * hx.grad(lambda x: f(x).sum())(x)),
])
def test_traced_functions_know_how_arguments_lie_on_explicit_axes(around):
    for spec, shape in ((P("a", "b"), (4, 2)), (P(None, BOTH), (8, 1)), (P(), (8, 8))):
        seen = []
        f = around(hx.shard_map(lambda x: seen.append(x.shape) or 2 * x, mesh=EXPLICIT, out_specs=spec))
        close(f(hx.device_put(X, hx.NamedSharding(EXPLICIT, spec))), 2 * X)
        assert {*seen} == {shape}


def test_a_function_is_traced_for_each_way_in_which_arguments_lie_on_explicit_axes():
    for mesh, count in ((EXPLICIT, 2), (MESH, 1)):
        traced = []
        f = hx.jit(lambda x: traced.append(x.shape) or x + 1)
        for spec in (P("a"), P("b"), P("a"), P("b")):
            close(f(hx.device_put(X, hx.NamedSharding(mesh, spec))), X + 1)
        assert len(traced) == count


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("around", [lambda f: f, hx.jit])
def test_devices_write_their_pieces_of_references(around, check_vma):
    def f(cut, whole, x):
        cut[...] += x * whole[0]
        return cut[...].sum(keepdims=True)

    steps = around(over(f, (P("a"), P(), P("a")), P("a"), check_vma=check_vma))
    cut, whole = hx.new_ref(hnp.zeros(8)), hx.new_ref(hnp.full(3, 2.0))
    for k in (1, 2):
        close(steps(cut, whole, V), 2 * k * V.reshape(2, 4).sum(1))
        close(cut[...], 2 * k * V)
    close(whole[...], np.full(3, 2.0))


def test_references_to_arrays_on_explicit_axes_need_no_specs():
    def f(ref):
        ref[...] += lax.axis_index("a")

    ref = hx.new_ref(hx.device_put(V, hx.NamedSharding(EXPLICIT, P("a"))))
    for step in (f, hx.jit(f)):
        assert hx.shard_map(step, mesh=EXPLICIT, out_specs=None)(ref) is None
    hx.jit(hx.shard_map(f, mesh=EXPLICIT, out_specs=None))(ref)
    close(ref[...], V + 3 * np.repeat([0, 1], 4))


def test_the_derivative_through_a_reference_that_devices_write():
    def squared(ref):
        ref[...] = ref[...] ** 2

    def loss(x):
        ref = hx.new_ref(x)
        over(squared, P("a"), None)(ref)
        return ref[...].sum()

    close(hx.jit(hx.grad(loss))(V), 2 * V)


@pytest.mark.parametrize("check_vma", [True, False])
def test_what_all_devices_gather_is_the_same_on_each(check_vma):
    def f(x):
        rows = lax.all_gather(x, "a", tiled=True, to="invarying")
        columns = lax.all_gather(x, "b", axis=1, tiled=True, to="invarying")
        if check_vma:
            assert (hx.typeof(rows).vma, hx.typeof(columns).vma) == ({"b"}, {"a"})
        return rows, columns, lax.all_gather(rows, "b", axis=1, tiled=True, to="invarying")

    g = over(f, P("a", "b"), (P(None, "b"), P("a"), P()), check_vma=check_vma)
    check(g, (X, X, X), X)
    weighted = lambda x: sum([(hnp.sin(y) * (k + 1)).sum() for k, y in enumerate(g(x))])
    close(hx.jit(hx.grad(weighted))(X), 6 * np.cos(X))
    with pytest.raises(errors.BadArgument, match=r"to must be .*, got 'other'"):
        over(lambda x: lax.all_gather(x, "a", to="other"), P("a"), P("a"))(X)
