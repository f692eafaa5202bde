"""A function that its user partitions: its values are its body's, and each device executes what partition says."""

import gc
import re
import threading
import weakref
from functools import partial

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.operations.foundations.foreign_call import PARTITIONED_CALL
from handlax.experimental.custom_partitioning import BATCHING, SdyShardingRule, custom_partitioning
from handlax.lowering.clients.platforms import ANSWERS
from handlax.sharding import AxisType, NamedSharding, P

DEVICES = hx.devices("cpu")
MESH = hx.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2, devices=DEVICES)
EXPLICIT = hx.make_mesh((4, 2), ("a", "b"), (AxisType.Explicit,) * 2, devices=DEVICES)
X = np.arange(128, dtype="float32").reshape(16, 8) % 11
Y = np.arange(32, dtype="float32").reshape(8, 4) % 7
COLLECTIVES = re.compile(r" (all-\w+|reduce-scatter|collective-permute)\(")


def named(*entries, mesh=MESH):
    return NamedSharding(mesh, P(*entries))


def put(x, *entries, mesh=MESH):
    return hx.device_put(x, named(*entries, mesh=mesh))


def is_partitioned(f, *xs):
    return PARTITIONED_CALL in hx.jit(f).lower(*xs).as_text()


def collectives(f, *xs):
    return COLLECTIVES.findall(hx.jit(f).lower(*xs).compile().as_text())


def elementwise(f, rule="... -> ..."):
    """``f`` of one array, which each device applies to its parts."""
    partitioned = custom_partitioning(f)
    partitioned.def_partition(
        lambda mesh, args, result: (mesh, f, args[0].sharding, (args[0].sharding,)), sharding_rule=rule)
    return partitioned


@custom_partitioning
def spectra(x):
    return hnp.fft.fft(x)


@partial(spectra.def_partition, sharding_rule="... i -> ... i")
def of_whole_rows(mesh, args, result):
    rows = named(*args[0].sharding.spec[:-1], None)
    return mesh, hnp.fft.fft, rows, (rows,)


@custom_partitioning
def product(x, y):
    return x @ y


def axes(entry):
    return entry if isinstance(entry, tuple) else () if entry is None else (entry,)


@partial(product.def_partition, sharding_rule="i j, j k -> i k", reduction_factors=("j",))
def summed(mesh, args, result):
    rows, columns = result.sharding.spec
    inner = args[0].sharding.spec[1]
    if {*axes(inner)} & {*axes(rows), *axes(columns)}:
        inner = None
    f = lambda x, y: lax.psum(x @ y, inner) if inner else x @ y
    return mesh, f, named(rows, columns), (named(rows, inner), named(inner, columns))


@pytest.mark.parametrize("cut", [("a",), ("a", "b"), (None, "b"), (("b", "a"),), ()])
def test_rows_are_partitioned_and_gathered_if_they_are_cut(cut):
    x = put(X.astype("complex64"), *cut)
    y = hx.jit(spectra)(x)
    np.testing.assert_allclose(y, np.fft.fft(X), atol=1e-4)
    assert y.sharding.spec == P(*cut)
    moved = collectives(spectra, x)
    assert moved == ["all-gather"] if len(cut) == 2 else moved == []


def test_without_the_rule_the_compiler_gathers_and_with_it_it_does_not():
    stacked = lambda f: lambda x: f(lax.sin(x)).real
    x = put(X, "a")
    assert is_partitioned(stacked(spectra), x) and not collectives(stacked(spectra), x)


@pytest.mark.parametrize(("x_cut", "y_cut"), [
    (("a", "b"), ("b",)), (("b", "a"), ("a", "b")), ((None, ("a", "b")), ()), ((), (None, "a")), (("a",), ("a",)),
])
def test_parts_meet_in_collectives_over_the_axes_of_the_mesh(x_cut, y_cut):
    x, y = put(X, *x_cut), put(Y, *y_cut)
    f = hx.jit(lambda x, y: (product(x, y), product(x + 1, 2 * y) @ y.T))
    for _ in range(3):
        for made, wanted in zip(f(x, y), (X @ Y, (X + 1) @ (2 * Y) @ Y.T)):
            np.testing.assert_array_equal(made, wanted)


def test_the_reduction_is_the_only_collective():
    assert collectives(product, put(X, None, "a"), put(Y, "a")) == ["all-reduce"]


@pytest.mark.parametrize("transformed", [
    lambda f: lambda x, y: lax.scan(lambda c, _: (c + f(x, y), None), hnp.zeros((16, 4)), None, 3)[0],
    lambda f: lambda x, y: lax.cond(x[0, 0] == 0, f, lambda x, y: x[:, :4], x, y),
    lambda f: lambda x, y: hx.jit(f)(x, y) + 1, lambda f: hx.checkpoint(f),
    lambda f: lambda x, y: hx.value_and_grad(lambda x: f(x, y).sum())(x)[1],
    lambda f: lambda x, y: hx.jvp(f, (x, y), (x, y)),
    lambda f: lambda x, y: hx.vmap(f, (0, None))(hnp.stack([x, x]), y),
    lambda f: lambda x, y: hx.hessian(lambda y: (f(x, y) ** 2).sum())(y),
])
def test_transformations_make_of_it_what_they_make_of_its_body(transformed):
    x, y = put(X, "a", "b"), put(Y, "b")
    made, wanted = hx.jit(transformed(product))(x, y), transformed(lambda x, y: x @ y)(X, Y)
    hx.tree.map(np.testing.assert_array_equal, made, wanted)


def test_loops_and_custom_derivatives_keep_it_and_what_transforms_it_does_not():
    x, y = put(X, "a", "b"), put(Y, "b")
    kept = hx.custom_vjp(product)
    kept.defvjp(lambda x, y: (product(x, y), (x, y)), lambda r, ct: (product(ct, r[1].T), r[0].T @ ct))
    value_and_grad = lambda x, y: hx.value_and_grad(lambda x: kept(x, y).sum())(x)
    assert is_partitioned(value_and_grad, x, y)
    np.testing.assert_array_equal(hx.jit(value_and_grad)(x, y)[1], np.broadcast_to(Y.sum(1), X.shape))
    assert is_partitioned(lambda x, y: lax.fori_loop(0, 2, lambda _, c: c + product(x, y), product(x, y)), x, y)
    assert not is_partitioned(hx.vmap(product, (0, None)), np.stack([X, X]), y)
    assert not is_partitioned(hx.shard_map(product, mesh=MESH, in_specs=(P("a"), P()), out_specs=P("a")), x, y)


def test_a_handler_of_what_the_body_performs_is_in_force():
    double = hx.handler({hx.operations.Sin: lambda op, x: 2 * hx.perform(op, x)})
    sine, x = elementwise(lax.sin), put(X, "a")
    f = hx.handle(double)(sine)
    np.testing.assert_allclose(hx.jit(f)(x), 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(f(x), 2 * np.sin(X), rtol=1e-6)
    assert is_partitioned(sine, x) and not is_partitioned(f, x)


def test_custom_rules_inside_of_the_body_leave_it_partitioned():
    asked, x = [], put(X, "a", "b")
    square = hx.custom_jvp(lambda x: asked.append(x.shape) or x * x)
    square.defjvp(lambda primals, tangents: (square(*primals), 3 * tangents[0]))
    partitioned = elementwise(lambda x: square(x))
    y = hx.jit(partitioned)(x)
    np.testing.assert_array_equal(y, X * X)
    assert asked == [(16, 8), (4, 4)], "the body, and the part of a device"
    np.testing.assert_array_equal(hx.jit(hx.grad(lambda x: partitioned(x).sum()))(x), np.full_like(X, 3))


def test_on_one_device_eagerly_and_in_shard_map_it_is_the_body():
    asked = []
    f = custom_partitioning(lambda x: x + 1)
    f.def_partition(lambda *args: asked.append(args), sharding_rule="... -> ...")
    np.testing.assert_array_equal(f(X), X + 1)
    np.testing.assert_array_equal(f(put(X, "a")), X + 1)
    np.testing.assert_array_equal(hx.jit(f)(X), X + 1)
    cut = hx.shard_map(f, mesh=MESH, in_specs=P("a"), out_specs=P("a"))
    np.testing.assert_array_equal(hx.jit(cut)(put(X, "a")), X + 1)
    assert asked == []


def test_exported_it_is_the_body():
    exported = hx.export.export(hx.jit(product))(put(X, "a"), put(Y))
    assert PARTITIONED_CALL not in exported.mlir_module()
    again = hx.export.deserialize(exported.serialize())
    np.testing.assert_array_equal(again.call(put(X, "a"), put(Y)), X @ Y)


def test_static_arguments_come_before_the_mesh_in_the_order_of_their_positions():
    seen = []

    def partition(times, plus, mesh, args, result):
        seen.append((times, plus))
        rows = args[0].sharding
        return mesh, lambda x: times * x + plus, rows, (rows,)

    f = custom_partitioning(lambda x, plus, times=2: times * x + plus, static_argnums=(2, 1))
    f.def_partition(partition, sharding_rule=lambda times, plus, mesh, args, results: (
        f"{' '.join('ijk'[: len(args[0].shape)])} -> i j", {"need_replication_factors": ("j",)}))
    y = hx.jit(lambda x: f(x, 1))(put(X, "a"))
    np.testing.assert_array_equal(y, 2 * X + 1)
    assert y.sharding.spec == P("a") and seen == [(2, 1)]
    np.testing.assert_array_equal(f(X, plus=3), 2 * X + 3)


def test_arguments_and_results_are_trees():
    def f(pair):
        return {"sum": pair[0] + pair[1], "row": pair[0][0]}

    def partition(mesh, args, results):
        assert hx.tree.structure(args) == hx.tree.structure(((0, 0),))
        rows = results["sum"].sharding
        row = named(rows.spec[1])
        whole = named(None, rows.spec[1])
        return mesh, f, {"sum": whole, "row": row}, ((whole, whole),)

    partitioned = custom_partitioning(f)
    partitioned.def_partition(partition, sharding_rule="i j, i j -> j, i j", need_replication_factors=("i",))
    made = hx.jit(partitioned)((put(X, None, "a"), put(X, "b", "a")))
    np.testing.assert_array_equal(made["sum"], 2 * X)
    np.testing.assert_array_equal(made["row"], X[0])
    assert made["row"].sharding.spec == P("a")


def test_products_of_factors_are_partitioned_by_the_major_one():
    @custom_partitioning
    def f(x, y):
        return x.reshape(-1) + y

    f.def_partition(
        lambda mesh, args, result: (
            mesh, lambda x, y: x.reshape(-1) + y, result.sharding, tuple(x.sharding for x in args)),
        sharding_rule="(i k) j, (i k j) -> (i k j)", i=4, k=2, need_replication_factors=("k", "j"))
    y = hx.jit(f)(put(Y, "a"), put(Y.ravel(), "a"))
    np.testing.assert_array_equal(y, 2 * Y.ravel())
    assert y.sharding.spec == P("a")


def test_random_keys_have_the_dimensions_of_their_shape():
    draw = lambda keys: hx.vmap(lambda key: hx.random.uniform(key, (3,)))(keys)
    partitioned = custom_partitioning(draw)
    partitioned.def_partition(
        lambda mesh, args, result: (mesh, draw, named(*args[0].sharding.spec, None), (args[0].sharding,)),
        sharding_rule="i -> i j", need_replication_factors=("j",))
    keys = hx.random.split(hx.random.key(0), 8)
    made = hx.jit(partitioned)(put(keys, "a"))
    np.testing.assert_array_equal(made, draw(keys))
    assert made.sharding.spec == P("a")


def test_dimensions_that_do_not_divide_are_offered_whole():
    offered = []

    def partition(mesh, args, result):
        offered.append(args[0].sharding.spec)
        return mesh, lax.neg, args[0].sharding, (args[0].sharding,)

    f = custom_partitioning(lax.neg)
    f.def_partition(partition, sharding_rule="i j -> i j")
    padded = lambda x: f(lax.with_sharding_constraint(x[:7], named("a", "b")))
    np.testing.assert_array_equal(hx.jit(padded)(put(X, "a", "b")), -X[:7])
    assert offered == [P(None, "b")]


def test_without_a_rule_results_are_whole():
    f = custom_partitioning(lax.neg)
    f.def_partition(lambda mesh, args, result: (mesh, lax.neg, result.sharding, (result.sharding,)))
    y = hx.jit(f)(put(X, "a"))
    np.testing.assert_array_equal(y, -X)
    assert y.sharding.is_fully_replicated


def test_along_explicit_axes_the_rule_gives_the_types_of_results():
    types = []

    def f(x, y):
        z = product(x, y)
        types.append(str(hx.typeof(z)))
        return z

    z = hx.jit(f)(put(X, "a", "b", mesh=EXPLICIT), put(Y, "b", mesh=EXPLICIT))
    np.testing.assert_array_equal(z, X @ Y)
    assert types == ["f32[16@a,4]"] and z.sharding.spec == P("a", None)
    dims = ((BATCHING, "i"),)
    sine = elementwise(lax.sin, SdyShardingRule(dims, dims, need_replication_factors=("i",)))
    assert hx.eval_shape(sine, put(X, "a", mesh=EXPLICIT)).sharding.spec == P("a", None)
    with pytest.raises(errors.ShardingTypeError, match="must be whole, got"):
        hx.eval_shape(sine, put(X, None, "a", mesh=EXPLICIT))


def test_two_threads_compile_at_once():
    """Each has answers of its own, though the calls have one number in both texts."""
    results, meeting = {}, threading.Barrier(2, timeout=20)

    def work(scale):
        def partition(mesh, args, result):
            meeting.wait()
            return mesh, lambda x: scale * x, args[0].sharding, (args[0].sharding,)

        f = custom_partitioning(lambda x: scale * x)
        f.def_partition(partition, sharding_rule="i j -> i j")
        results[scale] = np.asarray(hx.jit(f)(put(X, "a")))

    threads = [threading.Thread(target=work, args=(scale,)) for scale in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for scale in (2, 3):
        np.testing.assert_array_equal(results[scale], scale * X)


def test_what_partition_holds_is_kept_by_its_users_alone():
    data = np.full(8, 2.0, "float32")
    held = weakref.ref(data)

    def partition(mesh, args, result, data=data):
        return mesh, lambda x: x * data[0], args[0].sharding, (args[0].sharding,)

    f = custom_partitioning(lambda x: 2 * x)
    f.def_partition(partition, sharding_rule="i j -> i j")
    np.testing.assert_array_equal(hx.jit(f)(put(X, "a")), 2 * X)
    del f, partition, data
    gc.collect()
    assert held() is None


def test_settings_in_force_hold_for_the_function_of_a_part():
    def partition(mesh, args, result):
        return mesh, lambda x: x + hnp.ones(8), args[0].sharding, (args[0].sharding,)

    f = custom_partitioning(lambda x: x + hnp.ones(8))
    f.def_partition(partition, sharding_rule="i j -> i j", need_replication_factors=("j",))
    with hx.configure(default_float="float64"):
        assert hx.jit(f)(put(X.astype("float64"), "a")).dtype == "float64"


def kept(mesh, args, result):
    return mesh, lambda x: x, result.sharding, (args[0].sharding,)


TRACED = []
MISTAKES = {
    "raises": (lambda *_: 1 / 0, ZeroDivisionError, "division by zero"),
    "three": (lambda mesh, args, result: kept(mesh, args, result)[:3], errors.BadArgument, "must return the mesh, "),
    "no function": (lambda m, a, r: (m, 3, r.sharding, (r.sharding,)), errors.NotAFunction, "partition"),
    "a spec": (lambda m, a, r: (m, lax.sin, P("a"), (r.sharding,)), errors.BadArgument,
               "a NamedSharding for each of the results, .*got"),
    "a list": (lambda m, a, r: (m, lax.sin, r.sharding, [r.sharding]), errors.BadArgument, "each of the arguments"),
    "two": (lambda m, a, r: (m, lax.sin, r.sharding, (r.sharding,) * 2), errors.BadArgument, "arguments, .*got"),
    "shape": (lambda m, a, r: (m, lambda x: x[:1], r.sharding, (r.sharding,)), errors.ShapeMismatch,
              r"the parts of the results, f32\[4,8\], got f32\[1,8\]"),
    "count": (lambda m, a, r: (m, lambda x: (x, x), r.sharding, (r.sharding,)), errors.ShapeMismatch, "got f32"),
    "no axis": (lambda m, a, r: (m, lambda x: lax.psum(x, "c"), r.sharding, (r.sharding,)), errors.UnboundAxis, "'c'"),
    "uneven": (lambda m, a, r: (m, lambda x: x, named(("a", "b"), None), (named(None, ("a", "b")),)),
               errors.ShapeMismatch, "got f32"),
    "devices": (lambda m, a, r: (hx.make_mesh((2,), "a", devices=DEVICES[:2]), lax.sin, r.sharding, (r.sharding,)),
                errors.DeviceMismatch, "in their order"),
    "host": (lambda m, a, r: (m, lambda x: hx.pure_callback(np.sin, x, x), r.sharding, (r.sharding,)),
             errors.CannotCross, "must not call the host, got pure_callback"),
    "effect": (lambda m, a, r: (m, lambda x: (hx.tell(x.sum()), x)[1], r.sharding, (r.sharding,)), errors.CannotCross,
               "must handle its effects inside, got tell"),
    "traced": (lambda m, a, r: (m, lambda x: x + TRACED[-1], r.sharding, (r.sharding,)), errors.EscapedBox, "jit"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_partition_are_errors_and_leave_nothing_behind(mistake):
    partition, kind, text = MISTAKES[mistake]
    f = custom_partitioning(lax.sin)
    f.def_partition(partition, sharding_rule="i j -> i j")

    def use(x):
        TRACED.append(x.sum())
        return f(x)

    with pytest.raises(kind, match=text) as caught:
        hx.jit(use)(put(X, "a"))
    if kind is not ZeroDivisionError:
        assert "at test_custom_partitioning.py:" in str(caught.value)
    assert not ANSWERS
    f.def_partition(lambda mesh, args, result: (mesh, lax.sin, result.sharding, (args[0].sharding,)),
                    sharding_rule="i j -> i j")
    np.testing.assert_allclose(hx.jit(lambda x: f(x))(put(X, "a")), np.sin(X), rtol=1e-6)


@pytest.mark.parametrize(("define", "kind", "text"), [
    (lambda f: None, errors.MissingUserRule, "def_partition"),
    (lambda f: f.def_partition(kept, lambda *_: None), NotImplementedError, "a sharding_rule is needed"),
    (lambda f: f.def_partition(kept, propagate_user_sharding=lambda *_: None), NotImplementedError, "sharding_rule"),
    (lambda f: f.def_partition(kept, sharding_rule="i -> i"), errors.ShapeMismatch, r"must name each dimension"),
    (lambda f: f.def_partition(kept, sharding_rule="i j, j -> i j"), errors.BadArgument, "each operand, 1, got 2"),
    (lambda f: f.def_partition(kept, sharding_rule=lambda *_: 3), errors.BadArgument, "got 3"),
    (lambda f: f.def_partition(kept, sharding_rule=3), errors.BadArgument, "got 3"),
    (lambda f: f.def_partition(kept, sharding_rule="i j -> i j", need_replication_factors=("k",)),
     errors.BadArgument, "need_replication_factors.*'k'"),
    (lambda f: f.def_partition(kept, sharding_rule=lambda *_: "i j -> i j", k=2), errors.BadArgument, "k belong"),
    (lambda f: f.def_partition(3), errors.NotAFunction, "def_partition"),
])
def test_what_is_defined_wrongly_is_refused(define, kind, text):
    def used():
        f = custom_partitioning(lax.neg)
        define(f)
        hx.jit(f)(put(X, "a"))

    with pytest.raises(kind, match=text):
        used()


def test_a_function_without_arguments_is_divided():
    f = custom_partitioning(lambda: hnp.arange(8.0) * 0 + 3)
    part = lambda sharding: lambda: hnp.full(sharding.shard_shape((8,)), 3.0)
    f.def_partition(
        lambda mesh, args, result: (mesh, part(result.sharding), result.sharding, ()), sharding_rule="-> i")
    np.testing.assert_array_equal(hx.jit(lambda: f(), out_shardings=named("a"))(), np.full(8, 3.0))


def test_traced_values_from_around_are_refused():
    def f(x):
        partitioned = elementwise(lambda y: y + x)
        return partitioned(x)

    with pytest.raises(errors.EscapedBox, match="arguments alone"):
        hx.jit(f)(put(X, "a"))


def test_methods_are_functions_of_their_object():
    class Model:
        scale = 3.0

        @partial(custom_partitioning, static_argnums=(0,))
        def times(self, x):
            return self.scale * x

        times.def_partition(
            lambda self, mesh, args, result: (
                mesh, lambda x: self.scale * x, result.sharding, (args[0].sharding,)), sharding_rule="... -> ...")

    np.testing.assert_array_equal(hx.jit(Model().times)(put(X, "a")), 3 * X)


def test_programs_show_the_users_function_and_the_rule():
    text = str(hx.make_program(spectra)(X))
    assert "=?\"of_whole_rows, sharding_rule=SdyShardingRule((('…0', 'i'),), (('…0', 'i'),), {})\"" in text
    by_function = custom_partitioning(hnp.sin)
    by_function.def_partition(of_whole_rows, sharding_rule=is_partitioned)
    assert "=?'of_whole_rows, sharding_rule=is_partitioned'" in str(hx.make_program(by_function)(X))
