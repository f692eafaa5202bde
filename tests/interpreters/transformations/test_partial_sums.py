"""Partial sums: values and gradients are those of the program without shardings, and sums are made where they are read.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax import P, lax
from handlax import numpy as hnp
from handlax.errors import BadArgument, ShardingTypeError, StateTypeError
from handlax.sharding import AxisType, NamedSharding

CPUS = hx.devices("cpu")
MESH = hx.make_mesh((2, 4), ("a", "b"), devices=CPUS)
MESHES = {
    "2": hx.make_mesh((2,), ("a",), devices=CPUS[:2]), "4": hx.make_mesh((4,), ("a",), devices=CPUS[:4]),
    "2x2": hx.make_mesh((2, 2), ("a", "b"), devices=CPUS[:4]),
}
RNG = np.random.default_rng(0)
M, N = RNG.standard_normal((8, 4)).astype("f"), RNG.standard_normal((4, 8)).astype("f")
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


def put(x, *spec, **sums):
    return hx.device_put(x, P(*spec, **sums))


def resharded(x, *spec, **sums):
    return hx.reshard(hnp.asarray(x), P(*spec, **sums))


def communicates(f, *xs):
    text = hx.jit(f).lower(*xs).compile().as_text()
    return [name for name in COLLECTIVES if f" {name}(" in text or f" {name}-start(" in text]


def close(x, y):
    x, y = np.asarray(x), np.asarray(y)
    np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-5 * max(1.0, np.abs(y).max()))


LINEAR = {
    "add": lambda u: u + u, "sub": lambda u: u - 3 * u, "neg": lambda u: -u, "transpose": lambda u: u.T,
    "scale": lambda u: 2.5 * u / 4.0, "number": lambda u: u + 1.5, "reverse": lambda u: u[::-1],
    "reshape": lambda u: u.reshape(u.shape[1], u.shape[0]), "join": lambda u: hnp.concatenate([u[:4], u[4:]]),
    "where": lambda u: hnp.where(np.arange(64).reshape(8, 8) % 3 > 0, u, 0.0), "cumulate": lambda u: hnp.cumsum(u, 1),
    "pad": lambda u: hnp.pad(u, ((1, 1), (0, 0)))[1:-1], "convert": lambda u: u.astype("float64").astype("float32"),
    "scan": lambda u: lax.scan(lambda c, _: (c + c, None), u, None, length=2)[0],
    "loop": lambda u: lax.fori_loop(0, 2, lambda i, c: c * 0.5, u),
    "cond": lambda u: lax.cond(u.shape[0] > 3, lambda: u, lambda: -u),
    "jit": hx.jit(lambda u: u + u.T), "vmap": lambda u: hx.vmap(lambda r: r + 2 * r)(u),
    "checkpoint": hx.checkpoint(lambda u: u * 3.0), "sum": lambda u: u + hnp.broadcast_to(u.sum(0), (8, 8)),
    "set": lambda u: u.at[0].set(1.0), "set rows": lambda u: u.at[:6].set(hnp.asarray(M[:6].repeat(2, 1))),
    "set element": lambda u: u.at[1, 2].set(u[0, 0]), "add rows": lambda u: u.at[hnp.array([1, 1])].add(u[:2]),
    "number of sums": lambda u: u + (u.sum(initial=1.0) * 2 - u.mean()) / 3, "element": lambda u: u * 0 + (1 - u[0, 0]),
    "update": lambda u: lax.dynamic_update_slice(u, -u[:2, :3], (1, 2)), "roll": lambda u: hnp.roll(u, 3, 0),
}


@settings(max_examples=12, deadline=None)
@given(st.sampled_from([*MESHES]), st.lists(st.sampled_from([*LINEAR]), max_size=3), st.booleans(), st.booleans())
def test_values_and_gradients_are_those_of_whole_sums(mesh, steps, cut, jitted):
    def loss(w, x, product, sums):
        u = product(x, w)
        for name in steps:
            u = LINEAR[name](u)
        y = sums(u)
        return (hnp.sin(y) * y).sum()

    product = lambda x, w: hnp.einsum("ij,jk->ik", x, w, out_sharding=P(unreduced={"a"}))
    sums = lambda u: hx.reshard(u, P("a" if cut else None))
    wanted = hx.value_and_grad(lambda w, x: loss(w, x, hnp.dot, lambda y: y), (0, 1))(hnp.asarray(N), hnp.asarray(M))
    with hx.set_mesh(MESHES[mesh]):
        f = hx.value_and_grad(lambda w, x: loss(w, x, product, sums), (0, 1))
        found = (hx.jit(f) if jitted else f)(put(N, "a"), put(M, None, "a"))
    for y, z in zip(hx.tree.leaves(found), hx.tree.leaves(wanted), strict=True):
        close(y, z)


NEEDS_WHOLE_ROWS = {"pad", "jit", "set rows", "add rows", "update"}


@pytest.mark.parametrize("spec", [P(unreduced={"a"}), P("b", unreduced={"a"}), P(unreduced={"a", "b"})], ids=str)
@pytest.mark.parametrize("name", LINEAR)
def test_eager_calls_are_those_of_compiled_programs(name, spec):
    f = LINEAR[name]
    with hx.set_mesh(MESH):
        u = 0.5 * hx.reshard(hnp.dot(put(M, None, "a"), put(N, "a"), out_sharding=P(unreduced={"a"})), spec)
    if "b" in spec and name in NEEDS_WHOLE_ROWS:
        for g in (f, hx.jit(f)):
            with pytest.raises(ShardingTypeError, match=r"cut (alike|along|twice)"):
                g(u)
        return
    made = hx.jit(f)(u)
    y, dy = hx.jvp(f, (u,), (u,))
    assert f(u).type == made.type == y.type == dy.type
    whole = hnp.asarray(M @ N * 0.5)
    for found, wanted in ((f(u), f(whole)), (made, f(whole)), (y, f(whole)), (dy, hx.jvp(f, (whole,), (whole,))[1])):
        close(found, wanted)


@pytest.mark.parametrize("jitted", [False, True])
def test_a_sum_that_no_device_has_is_divided_where_the_others_are(jitted):
    u, stated = hx.device_put(M, NamedSharding(MESH, P(unreduced={"a"}))), NamedSharding(
        MESH.abstract_mesh, P(unreduced={"a"}))
    for x in (hx.reshard(hnp.asarray(M), stated), hnp.asarray(M, out_sharding=stated)):
        for f, args in ((lambda u: u + x, (u,)), (lambda u, x: u + x, (u, x))):
            y = (hx.jit(f) if jitted else f)(*args)
            close(y, 2 * M)
            assert y.addressable_shards[-1].data.tolist() == (0 * M).tolist()


OF_REDUCED = {
    "product": lambda w, x: hnp.tanh(x @ w), "twice": lambda w, x: hnp.tanh(x @ (w * w)) @ w.T,
    "elementwise": lambda w, x: x @ hx.nn.softmax(hnp.where(w > 0, hnp.sin(w), 2 * w)),
    "indexing": lambda w, x: x @ w[hnp.array([0, 2, 1, 3])], "scan": lambda w, x: lax.scan(
        lambda c, _: (hnp.tanh(c @ w @ w.T), None), x, None, length=2)[0],
    "checkpoint": hx.checkpoint(lambda w, x: hnp.sin(x @ w)),
    "vmap": lambda w, x: hx.vmap(lambda r: hnp.sin(r @ w))(x), "extremes": lambda w, x: (x @ w) * w.max(0).sum(),
    "updates": lambda w, x: x @ w.at[0].set(w[1]), "sorts": lambda w, x: x @ hnp.sort(w, 1),
    "norm": lambda w, x: x @ w / hnp.linalg.norm(w) + w[0, 0] ** 3,
    "shard_map": lambda w, x: x @ w if w.type.cut is None else hx.shard_map(
        lambda w, x: x @ w, out_specs=P("a"))(w, x),
}


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", OF_REDUCED)
def test_the_cotangent_of_a_reduced_value_is_unreduced(name, mesh):
    loss = lambda w, x: (OF_REDUCED[name](w, x) ** 2).sum()
    with hx.set_mesh(MESHES[mesh]):
        w = put(N, reduced={"a"})
        value, ct = hx.jit(hx.value_and_grad(loss))(w, put(M, "a"))
        assert str(w.type) == "f32[4,8]{R:a}" and str(ct.type) == "f32[4,8]{U:a}"
        total = hx.reshard(ct, P())
    wanted, gradient = hx.value_and_grad(loss)(hnp.asarray(N), hnp.asarray(M))
    close(value, wanted)
    close(total, gradient)


OF_NUMBERS = {
    "arithmetic": lambda r, s: 2 * r + s * r - 1 / r + r**2 - r**s, "analysis": lambda r, s: hnp.tanh(r) * hnp.sqrt(r),
    "choices": lambda r, s: hnp.where(r > s, r, s) + abs(r) * hnp.maximum(s, 0.3), "clip": lambda r, s: r.clip(0, s),
    "cond": lambda r, s: lax.cond(r > s, lambda: r * s, lambda: r + s),
    "scan": lambda r, s: lax.scan(lambda c, _: (c * r + s, None), r, None, length=2)[0],
    "special functions": lambda r, s: lax.erf(r) * hx.nn.softplus(r),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_whole_number_is_reduced_beside_reduced_ones(name, jitted):
    f, values = OF_NUMBERS[name], (hnp.float32(0.7), hnp.float32(0.4))
    with hx.set_mesh(MESH):
        r, s = put(values[0], reduced={"a"}), put(values[1])
        hessian = lambda r, s: hx.jvp(hx.grad(f, (0, 1)), (r, s), (r, s))
        first, second = (hx.jit(hessian) if jitted else hessian)(r, s)
        assert str(f(r, s).type) == "f32[]{R:a}"
        assert [str(x.type) for x in (*first, *second)] == ["f32[]{U:a}", "f32[]"] * 2
    wanted = hx.jvp(hx.grad(f, (0, 1)), values, values)
    for x, y in zip((*first, *second), (*wanted[0], *wanted[1]), strict=True):
        close(x, y)


def test_duals_by_every_transformation():
    with hx.set_mesh(MESH):
        u, r = resharded(M, unreduced={"a"}), resharded(M, reduced={"a"})
        tell = lambda x: str(x.type)
        assert [*map(tell, hx.jvp(lambda u: -u, (u,), (u,)))] == ["f32[8,4]{U:a}"] * 2
        y, back = hx.vjp(lambda u: u + u, u)
        assert tell(y) == "f32[8,4]{U:a}" and tell(back(r)[0]) == "f32[8,4]{R:a}"
        assert tell(hx.linear_transpose(lambda w: w + w, r)(u)[0]) == "f32[8,4]{U:a}"
        assert tell(hx.linearize(lambda w: hnp.sin(w), r)[1](r)) == "f32[8,4]{R:a}"
        g = hx.jit(hx.grad(lambda u: (hx.reshard(u, P()) ** 2).sum()))(u)
        assert tell(g) == "f32[8,4]{R:a}"
        close(g, 2 * M)


def test_sums_are_made_where_they_are_read():
    product = lambda x, w: hnp.einsum("ij,jk->ik", x, w, out_sharding=P(unreduced={"a"}))
    with hx.set_mesh(MESH):
        x, w, rows, shared = put(M, None, "a"), put(N, "a"), put(M, "a"), put(N, reduced={"a"})
        assert not communicates(product, x, w)
        assert not communicates(lambda x, w: (product(x, w) + product(x, w)).T * 2, x, w)
        assert communicates(lambda x, w: hx.reshard(product(x, w), P()), x, w) == ["all-reduce"]
        assert not communicates(lambda x: lax.reduce_sum(x, (0,), out_sharding=P(unreduced={"a"})), rows)
        assert not communicates(hx.grad(lambda w, x: hnp.tanh(x @ w).sum()), shared, rows)
        assert communicates(hx.grad(lambda w, x: hnp.tanh(x @ w).sum()), put(N), rows) == ["all-reduce"]
        layer = lambda c, w: (hnp.tanh(c @ w @ w.T), None)
        deep = hx.grad(lambda ws, x: lax.scan(layer, x, ws)[0].sum())
        assert not communicates(deep, put(np.stack([N, N]), reduced={"a"}), rows)


def test_every_device_has_a_part_of_its_own():
    product = hx.jit(lambda x, w: hnp.einsum("ij,jk->ik", x, w, out_sharding=P(unreduced={"a"})))
    with hx.set_mesh(MESH):
        u = product(put(M, None, "a"), put(N, "a"))
        assert u.sharding.spec == P(None, None, unreduced={"a"}) and not u.is_fully_replicated
        for k, shard in enumerate(u.addressable_shards):
            half = slice(0, 2) if k < 4 else slice(2, 4)
            assert shard.data.type.cut is None
            close(shard.data, M[:, half] @ N[half])
        close(u, M @ N)  # what is read is the sum
        close(pickle.loads(pickle.dumps(u)), M @ N)
        close(hx.device_put(u, P("a")), M @ N)
        close(hx.device_put(u, CPUS[0]), M @ N)
        close(hx.jit(lambda x: hx.reshard(u, P()) + x)(1.0), M @ N + 1)
        close(hx.jit(lambda u: u + u, donate_argnums=0)(u + u), 4 * (M @ N))


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
def test_parts_lie_in_the_memory_of_the_host(jitted):
    there = NamedSharding(MESH, P(unreduced={"a"}), memory_kind="pinned_host")
    to_host = lambda u: hx.device_put(u, there)
    doubled = lambda u: hx.device_put(u, NamedSharding(MESH, P(unreduced={"a"}))) * 2
    with hx.set_mesh(MESH):
        u = resharded(M, unreduced={"a"})
        v = (hx.jit(to_host) if jitted else to_host)(u)
        assert str(v.type) == "f32<host>[8,4]{U:a}" and v.sharding.memory_kind == "pinned_host"
        close(v, M)
        close((hx.jit(doubled) if jitted else doubled)(v), 2 * M)
        close(hx.jit(lambda v: lax.fori_loop(0, 2, lambda i, v: v, v))(v), M)


@pytest.mark.parametrize(("before", "after"), [
    (P(), P(unreduced={"a"})), (P("a"), P(unreduced={"a"})), (P("b"), P("b", unreduced={"a"})),
    (P(reduced={"a"}), P(unreduced={"a"})), (P(unreduced={"a"}), P(unreduced={"a", "b"})),
    (P(unreduced={"a", "b"}), P(unreduced={"b"})), (P(unreduced={"a"}), P(unreduced={"b"})),
    (P(unreduced={"a", "b"}), P(("a", "b"))), (P(unreduced={"a"}), P(reduced={"a", "b"})),
    (P(None, "b", unreduced={"a"}), P("b", unreduced={"a"})),
])
def test_reshard_is_the_identity(before, after):
    with hx.set_mesh(MESH):
        x = hx.device_put(M, before)
        for put_there in (lambda x: hx.reshard(x, after), hx.jit(lambda x: hx.reshard(x, after)),
                          lambda x: hx.device_put(x, after), hx.jit(lambda x: x, out_shardings=after)):
            y = put_there(x)
            assert y.type.sharding.spec == after.update([*after, None, None][:2])
            assert y.sharding.spec.unreduced == after.unreduced
            close(y, M)


def test_parts_are_made_on_each_device():
    sharding = NamedSharding(MESH, P("b", unreduced={"a"}))
    whole = NamedSharding(MESH, P(unreduced={"a", "b"}))
    for where in (sharding, whole):
        u = hx.make_array_from_callback((8, 4), where, lambda index: M[index])
        close(u, M * (8 if where is whole else 2))
        v = hx.device_put(M, where)
        close(v, M)
        assert len([x for x in v.addressable_shards if np.asarray(x.data).any()]) == (1 if where is whole else 4)


def test_programs_are_printed_and_read():
    with hx.set_mesh(MESH):
        u, r = (hx.ShapeDtypeStruct((8, 4), "float32", sharding=NamedSharding(MESH, P("b", **sums)))
                for sums in ({"unreduced": {"a"}}, {"reduced": {"a"}}))
        program = hx.make_program(lambda u, r: (hx.reshard(u * r, P()), u.T))(u, r)
    assert "a: f32[8@b,4]{U:a}, b: f32[8@b,4]{R:a}" in str(program) and "{R:a}) -> (f32[8,4], " in str(program)
    assert hx.parse_program(str(program)).unwrap() == program == pickle.loads(pickle.dumps(program))
    two = NamedSharding(hx.make_mesh((4,), ("c",), devices=CPUS[:4]), P(unreduced={"c"}))
    both = hx.make_program(lambda u, v: (u + u, v + v))(u, hx.ShapeDtypeStruct((8,), "float32", sharding=two))
    assert "f32[8]{U:1:c}" in str(both) and hx.parse_program(str(both)).unwrap() == both


@pytest.mark.parametrize(("f", "found"), [
    (lambda u, r, x: u * u, "mul: it must be linear in partial sums"),
    (lambda u, r, x: hnp.sin(u), "sin: it must be linear"), (lambda u, r, x: u > 0, "gt: it must be linear"),
    (lambda u, r, x: u + x, "add: it must be linear"), (lambda u, r, x: 2 / u, "div: it must be linear"),
    (lambda u, r, x: u.astype("int32"), "convert_element_type: it must"), (lambda u, r, x: u.max(0), "reduce_max"),
    (lambda u, r, x: u * x, "mul: what meets partial sums or reduced values"),
    (lambda u, r, x: r * x, "mul: what meets partial sums or reduced values"),
    (lambda u, r, x: r + hx.reshard(x, P("a")), "add: what meets"),
    (lambda u, r, x: u + hx.reshard(u, P(unreduced={"b"})), "all of them along the same axes"),
])
def test_what_would_communicate_is_an_error_with_its_remedy(f, found):
    with hx.set_mesh(MESH), pytest.raises(ShardingTypeError, match=found) as raised:
        hx.jit(f)(resharded(M, unreduced={"a"}), resharded(M, reduced={"a"}), put(M))
    assert "hx.reshard" in raised.value.hint


@pytest.mark.parametrize("x", [np.array([True, False]), hx.random.key(0)], ids=["bool", "key"])
def test_partial_sums_are_of_numbers(x):
    sharding = NamedSharding(MESH, P(unreduced={"a"}))
    for f in (lambda: hx.device_put(x, sharding), lambda: hx.jit(lambda: hx.reshard(hnp.asarray(x), sharding))(),
              lambda: hx.jit(lambda x: x, out_shardings=sharding)(x)):
        with pytest.raises(ShardingTypeError, match="partial sums must be of numbers, got") as error:
            f()
        assert "unreduced" in error.value.hint


def test_booleans_and_keys_are_reduced_and_have_no_cotangent():
    with hx.set_mesh(MESH):
        w, mask, key = put(M[0], reduced={"a"}), put(M[0] > 0, reduced={"a"}), put(hx.random.key(0), reduced={"a"})
        loss = lambda w, mask, key: (hnp.where(mask, w, 0.0) * hx.random.normal(key, (4,))).sum()
        for g in (hx.grad(loss, (0, 1), allow_int=True), hx.jit(hx.grad(loss, (0, 1), allow_int=True))):
            of_w, of_mask = g(w, mask, key)
            assert str(of_w.type) == "f32[4]{U:a}" and of_mask.dtype == hx.dtypes.float0
            close(of_w, np.where(M[0] > 0, hx.random.normal(hx.random.key(0), (4,)), 0.0))


def test_carries_and_arguments_are_of_one_type():
    with hx.set_mesh(MESH):
        u, whole = resharded(M, unreduced={"a"}), put(M)
        with pytest.raises(StateTypeError, match="U:a"):
            lax.scan(lambda c, _: (u, None), hnp.zeros((8, 4)), None, length=2)
        with pytest.raises(ShardingTypeError, match="in_shardings: what is unreduced"):
            hx.jit(lambda x: x, in_shardings=P(unreduced={"a"}))(whole)
        with pytest.raises(BadArgument, match="cut by"):
            hx.jit(lambda x: x, in_shardings=P())(u)
        with pytest.raises(ShardingTypeError, match="in_specs must be as"):
            hx.shard_map(lambda x: x, in_specs=P(unreduced={"a"}), out_specs=P())(whole)
        with pytest.raises(ShardingTypeError, match="in_specs must be as"):
            hx.shard_map(lambda x: x, in_specs=P(), out_specs=P())(u)
        with pytest.raises(BadArgument, match="what becomes unreduced must vary, got f"):
            hx.shard_map(lambda x: lax.pcast(x, "a", to="unreduced"), in_specs=P(), out_specs=P(unreduced={"a"}))(whole)
    automatic = hx.make_mesh((2,), ("a",), (AxisType.Auto,), devices=CPUS[:2])
    with pytest.raises(BadArgument, match="the compiler sums"):
        NamedSharding(automatic, P(reduced={"a"}))


def test_shard_map_takes_and_gives_parts():
    with hx.set_mesh(MESH):
        x, w, v = put(M, None, "a"), put(N, "a"), put(np.arange(8.0, dtype="f"), "a")
        product = hx.shard_map(lambda x, w: lax.pcast(x @ w, "a", to="unreduced"), out_specs=P(unreduced={"a"}))
        u = hx.jit(product)(x, w)
        assert str(u.type) == "f32[8,8]{U:a}" and not communicates(product, x, w)
        close(u, M @ N)
        total = hx.shard_map(lambda u: lax.psum(u, "a"), in_specs=P(unreduced={"a"}), out_specs=P())
        close(hx.jit(total)(u), M @ N)
        gradient = hx.jit(hx.grad(lambda u: (total(u) ** 2).sum()))(u)
        assert str(gradient.type) == "f32[8,8]{R:a}"
        close(gradient, 2 * M @ N)
        gather = hx.shard_map(lambda v: lax.all_gather(v, "a", tiled=True, to="reduced"), out_specs=P(reduced={"a"}))
        r = hx.jit(gather)(v)
        assert str(r.type) == "f32[8]{R:a}" and r.tolist() == v.tolist()
        back = hx.jit(hx.grad(lambda v: (gather(v) ** 2).sum()))(v)
        assert str(back.type) == "f32[8@a]" and back.tolist() == (2 * v).tolist()
        each = hx.shard_map(lambda r: 3 * r, out_specs=P("a"))
        assert each(r).tolist() == [*(3 * v).tolist()] * 2 and not communicates(each, r)
        ct = hx.grad(lambda r: each(r).sum())(r)
        assert str(ct.type) == "f32[8]{U:a}" and ct.tolist() == [6.0] * 8


# Within shard_map, each device has its summand

ADDS_A_NUMBER = {"number", "where", "pad", "set", "number of sums", "element", "set rows"}


def summands(x, to="unreduced"):
    return lax.pcast(x, "a", to=to)


def on_devices(f, *specs, out=None):
    return hx.shard_map(f, in_specs=specs, out_specs=out)


@pytest.mark.parametrize("name", LINEAR)
def test_linear_operations_take_summands_unless_they_add_a_number(name):
    f = lambda x, w: lax.psum(LINEAR[name](summands(x @ w)), "a")
    with hx.set_mesh(MESH):
        x, w = put(M, None, "a"), put(N, "a")
        mapped = on_devices(f, P(None, "a"), P("a"))
        if name in ADDS_A_NUMBER:
            with pytest.raises(ShardingTypeError, match="must be linear in its summands along 'a'"):
                mapped(x, w)
            return
        wanted = lambda x, w: LINEAR[name](hnp.asarray(x) @ w)
        close(hx.jit(mapped)(x, w), wanted(M, N))
        loss = lambda f: lambda x, w: hnp.sum(hnp.sin(f(x, w)))
        for y, z in zip(hx.jit(hx.grad(loss(mapped), (0, 1)))(x, w), hx.grad(loss(wanted), (0, 1))(M, N)):
            close(y, z)


def _beside(s):
    """What becomes of summands ``u`` and a value ``s``, whole, or a reduced copy."""
    return lambda u, r: (s(r) * u, s(r) @ hnp.ones((8, 8), "f") @ u, -s(r) * u / 2.0)


@pytest.mark.parametrize("to", ["unreduced", "reduced", "whole"])
@pytest.mark.parametrize("jitted", [True, False])
def test_whole_values_and_reduced_copies_stand_beside_summands(to, jitted):
    state = {"whole": lambda r: r, "reduced": lambda r: summands(r, "reduced"), "unreduced": None}[to]

    def f(x, w, r):
        u = summands(x @ w)
        ys = _beside(state)(u, r) if state else (r[0, 0] * u, u + u)
        assert {str(hx.typeof(y)) for y in ys} == {"f32[8,8]{U:a}"}
        return sum([lax.psum(y, "a") for y in ys])

    def wanted(x, w, r):
        u = x @ w
        return sum(_beside(lambda r: r)(u, r) if state else (r[0, 0] * u, u + u))

    with hx.set_mesh(MESH):
        args = put(M, None, "a"), put(N, "a"), put(M @ N)
        mapped = on_devices(f, P(None, "a"), P("a"), P())
        loss = lambda f: lambda *xs: hnp.sum(hnp.sin(f(*xs)))
        grad = hx.grad(loss(mapped), (0, 1, 2))
        close(mapped(*args), wanted(M, N, M @ N))
        cotangents = (hx.jit(grad) if jitted else grad)(*args)
        for y, z, given in zip(cotangents, hx.grad(loss(wanted), (0, 1, 2))(M, N, M @ N), args):
            assert y.type is given.type
            close(y, z)


def test_reduced_copies_vary_beside_values_that_do_and_their_cotangents_are_summands():
    def f(x, r):
        assert [str(hx.typeof(y)) for y in (r, 2.0 * r, r * r, r[:, :2] * x)] == [
            "f32[8,4]{R:a}", "f32[8,4]{R:a}", "f32[8,4]{R:a}", "f32[8,2]{a:2}"]
        ct = hx.grad(lambda r: hnp.sum(hnp.sin(r)))(r)
        assert str(hx.typeof(ct)) == "f32[8,4]{U:a}"
        return lax.psum(hnp.sin(r[:, :2]) * x, "a") + lax.psum(lax.pcast(r, "a", to="varying")[:, :2], "a")

    with hx.set_mesh(MESH):
        x, r = put(M, None, "a"), put(M, reduced={"a"})
        mapped = on_devices(f, P(None, "a"), P(reduced={"a"}))
        y, back = hx.jit(hx.value_and_grad(lambda *xs: hnp.sum(mapped(*xs)), (0, 1)))(x, r)
        wanted = lambda x, r: hnp.sum(hnp.sin(r[:, :2]) * (x[:, :2] + x[:, 2:]) + 2 * r[:, :2])
        z, both = hx.value_and_grad(wanted, (0, 1))(M, M)
        assert [str(ct.type) for ct in back] == ["f32[8,4@a]", "f32[8,4]{U:a}"]
        close(y, z)
        for ct, whole in zip(back, both):
            close(ct, whole)


def test_maps_inside_and_programs_of_summands():
    def f(x):
        u = summands(x)
        whole = hx.shard_map(lambda u: 2.0 * u, in_specs=P("b"), out_specs=P("b"), axis_names={"b"})(u)
        assert str(hx.typeof(whole)) == "f32[8@b,2]{U:a}" and hx.typeof(hx.reshard(whole, P())) is hx.typeof(u)
        with pytest.raises(ShardingTypeError, match="partial sums of must be summed before"):
            hnp.einsum("ij,jk->ik", u, u.T * 0, out_sharding=P(unreduced={"b"}))
        return lax.psum(hx.reshard(whole, P()), "a"), lax.psum_scatter(u, "a", tiled=True)

    with hx.set_mesh(MESH):
        x = put(M, None, "a")
        mapped = hx.shard_map(f, out_specs=(P(), P("a")), axis_names={"a"})
        y, parts = hx.jit(mapped)(x)
        close(y, 2 * (M[:, :2] + M[:, 2:]))
        close(parts, M[:, :2] + M[:, 2:])
        program = hx.make_program(mapped)(x)
        assert "{a:2,U:a}" in str(program) and hx.parse_program(str(program)).unwrap() == program
        assert pickle.loads(pickle.dumps(program)) == program


@pytest.mark.parametrize(("f", "spec", "error", "message"), [
    (lambda x: hnp.sin(summands(x)), P(unreduced={"a"}), ShardingTypeError, "sin: it must be linear in its summands"),
    (lambda x: summands(x) * x, P(unreduced={"a"}), ShardingTypeError, "other operands equal on all devices"),
    (lambda x: summands(x) + x.sum(), P(unreduced={"a"}), ShardingTypeError, "add: it must be linear"),
    (lambda x: lax.cond(x[0, 0] > 0, hnp.negative, lambda u: u, summands(x)), P(unreduced={"a"}), ShardingTypeError,
     "cond: devices that take summands or give copies along a must choose alike"),
    (lambda x: lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] * 2), (x[0, 0], summands(x)))[1],
     P(unreduced={"a"}), ShardingTypeError, "while_loop: devices that take summands or give copies along a must"),
    (lambda x: lax.cond(x[0, 0] > 0, hnp.negative, lambda w: w, summands(lax.psum(x, "a"), "reduced")),
     P(reduced={"a"}), ShardingTypeError, "cond: devices that take summands or give copies along a must choose alike"),
    (lambda x: summands(x.astype("int32")).astype("float32"), P(unreduced={"a"}), ShardingTypeError,
     "convert_element_type: it must be linear in its summands"),
    (lambda x: lax.all_gather(summands(x), "a"), P("a"), ShardingTypeError, "all_gather: along its axes an operand"),
    (lambda x: lax.pmax(summands(x), "a"), P(), ShardingTypeError, "pmax: along its axes an operand must vary"),
    (lambda x: lax.psum(summands(x), "a", axis_index_groups=[[0], [1]]), P("a"), ShardingTypeError, "psum: along"),
    (lambda x: lax.psum(summands(lax.psum(x, "a"), "reduced"), "a"), P(), ShardingTypeError, "psum: along its axes"),
    (lambda x: summands(x, "reduced"), P(), BadArgument, "becomes reduced must be the same on all devices"),
    (lambda x: summands(summands(x), "varying"), P("a"), BadArgument, "becomes varying must be no partial sum"),
    (lambda x: summands(x > 0), P(unreduced={"a"}), BadArgument, "pcast: partial sums must be of numbers, got bool"),
    (lambda x: x > 0, P(unreduced={"a"}), BadArgument, "out_specs must be as the type of a result states"),
    (summands, P(), BadArgument, "got P() for f32[8,2]{U:a}"),
    (summands, P("a"), BadArgument, "got P('a',) for f32[8,2]{U:a}"),
    (lambda x: x, P(reduced={"a"}), BadArgument, "got P(reduced={'a'}) for f32[8,2]{a:2}"),
    (lambda x: lax.psum(x, "a"), P(unreduced={"a"}), BadArgument, "got P(unreduced={'a'}) for f32[8,2]."),
])
def test_what_summands_and_copies_are_not_is_refused(f, spec, error, message):
    with hx.set_mesh(MESH), pytest.raises(error) as raised:
        on_devices(f, P(None, "a"), out=spec)(put(M, None, "a"))
    assert message in str(raised.value) and raised.value.hint


def test_devices_that_choose_differently_read_copies_and_give_summands():
    with hx.set_mesh(MESH):
        def chosen(x, w):
            return lax.cond(x[0, 0] > 0, lambda w: w * w * x, lambda w: w + 0 * x, summands(w, "reduced"))

        mapped = hx.shard_map(chosen, in_specs=(P(None, "a"), P()), out_specs=P(None, "a"), axis_names={"a"})
        x = np.ones((8, 4), np.float32)
        x[:, 2:] = -1
        w = np.arange(16, dtype=np.float32).reshape(8, 2)
        close(hx.grad(lambda w: mapped(put(x, None, "a"), w).sum())(w), 2 * w + 1)


def test_booleans_are_refused_on_automatic_axes_too():
    mesh = hx.make_mesh((2,), ("a",), (AxisType.Auto,), devices=CPUS[:2])
    with hx.set_mesh(mesh), pytest.raises(BadArgument, match="partial sums must be of numbers, got bool"):
        on_devices(lambda x: summands(x > 0), P("a"), out=P(unreduced={"a"}))(M)


def test_results_of_partial_sums_are_whole():
    with hx.set_mesh(MESHES["2"]):
        total = on_devices(lambda u: lax.psum(u, "a"), P(unreduced={"a"}))
        y = hx.jit(total)(resharded(M, unreduced={"a"}))
        assert y.sharding.spec == P(None, None)
        for shard in y.addressable_shards:
            close(shard.data, M)


def test_what_is_put_as_partial_sums_stays_on_the_devices_that_have_it():
    with hx.set_mesh(MESH):
        x = put(M, "b", "a")
        u = hx.device_put(x, P("b", unreduced={"a"}))
        assert str(u.type) == "f32[8@b,4]{U:a}"
        for before, after in zip(x.addressable_shards, u.addressable_shards, strict=True):
            own = np.zeros((8, 4), "float32")
            own[before.index] = before.data
            np.testing.assert_array_equal(after.data, own[after.index])
        close(hx.reshard(u, P()), M)
