"""jit with in_shardings and out_shardings, and calls with arrays over several devices."""


import numpy as np
import pytest
from helpers.other_threads import together

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.effects.sharding.mesh import AbstractMesh, AxisType, Mesh
from handlax.effects.sharding.named_sharding import NamedSharding, SingleDeviceSharding
from handlax.effects.sharding.partition_spec import PartitionSpec as P
from handlax.lowering.jit.dispatch import Jitted

DEVICES = hx.devices()
MESH = Mesh(np.array(DEVICES).reshape(2, 4), ("a", "b"))
X = np.arange(32, dtype="float32").reshape(8, 4)


def by(*spec):
    return NamedSharding(MESH, P(*spec))


def put(*spec):
    return hx.device_put(X, by(*spec))


@pytest.mark.parametrize("arguments", [(by("a"), None), [by("a"), None]], ids=["tuple", "list"])
def test_arguments_and_results_are_cut_as_said(arguments):
    f = hx.jit(lambda x, y: {"sum": x + y, "both": (x, y)}, in_shardings=arguments,
               out_shardings={"sum": by(None, "b"), "both": None})
    for _ in range(3):  # traced, found by plan, found again
        made = f(X, X * 2)
        assert made["sum"].sharding == by(None, "b") and made["both"][0].sharding == by("a")
        assert made["sum"].tolist() == (X * 3).tolist() and made["both"][1].tolist() == (X * 2).tolist()
    assert f._cache_size() == 1


def test_inside_of_a_program_they_are_constraints_on_the_arguments_that_have_some():
    f = hx.jit(lambda x, y: (x + y, y), in_shardings=(by("a"), None), out_shardings=(by("b"), None))
    made = hx.jit(lambda x: f(x, x + 1))(X)
    assert made[0].sharding == by("b") and np.array_equal(made[0], 2 * X + 1)


@pytest.mark.parametrize("options", [
    {"in_shardings": (by("a"), None)}, {"donate_argnums": 0}, {"in_shardings": by("a"), "donate_argnums": (0, 1)},
], ids=lambda options: ", ".join(options))
@pytest.mark.parametrize("w", [X, put("a")], ids=["uncommitted", "committed"])
def test_captured_arrays_stand_before_arguments_of_which_something_is_said(w, options):
    w = hx.jit(lambda w: w)(w)
    f = hx.jit(lambda x, y: (x + w, y * 2), **options)
    for _ in range(3):
        x, y = f(put("a"), put("a"))
        assert np.array_equal(x, 2 * X) and np.array_equal(y, 2 * X)
    assert "stablehlo.add" in f.lower(X, X).as_text()


@pytest.mark.parametrize("argument", [X, X.tolist, hnp.asarray(X), 2.0])
def test_what_is_nowhere_goes_where_it_is_said(argument):
    x = np.array(argument()) if callable(argument) else argument
    y = hx.jit(lambda x: x + 1, in_shardings=by())(x)
    assert y.sharding == by() and y.committed and np.array_equal(y, np.asarray(x) + 1)


def test_one_sharding_is_that_of_all_leaves_and_a_spec_is_about_the_mesh_in_force():
    with MESH:
        f = hx.jit(lambda t: hx.tree.map(lambda x: x * 2, t), in_shardings=P("a"), out_shardings=P("b"))
        assert {y.sharding for y in f({"x": X, "y": [X]})["y"]} == {by("b")}


def test_a_committed_argument_decides_and_must_be_cut_as_said():
    x = put("a")
    assert hx.jit(lambda x, y: x * y)(x, np.ones(4, "f")).sharding == by("a")
    assert hx.jit(lambda x: x + 1, in_shardings=by("a"))(x).sharding == by("a")
    assert hx.jit(lambda x: x + 1, in_shardings=by("a", None))(x).tolist() == (X + 1).tolist()
    with pytest.raises(errors.BadArgument, match=r"in_shardings say .* of x, which is cut by"):
        hx.jit(lambda x: x + 1, in_shardings=by("b"))(x)


def test_a_single_device_is_a_sharding_too():
    where = SingleDeviceSharding(DEVICES[2])
    y = hx.jit(lambda x: x + 1, in_shardings=where)(X)
    assert y.sharding == where and y.committed
    assert hx.jit(lambda x: x + 1, out_shardings=where)(X).devices() == {DEVICES[2]}


def test_inside_of_other_programs_shardings_are_constraints():
    inner = hx.jit(lambda x: x * 2, in_shardings=by("a"), out_shardings=by("b"))
    assert hx.jit(lambda x: inner(x + 1))(X).sharding == by("b")
    np.testing.assert_allclose(hx.grad(lambda x: hnp.sum(inner(x) ** 2))(X), 8 * X)
    assert hx.vmap(inner)(np.stack([X, X])).tolist() == np.stack([X * 2] * 2).tolist()


@pytest.mark.parametrize("spec", [P("a"), P("b", None), P(("a", "b")), P()])
def test_a_donated_array_lends_its_memory_on_every_device(spec):
    f = hx.jit(lambda x, y: x + y, donate_argnums=0)
    for _ in range(3):
        x = hx.device_put(X, NamedSharding(MESH, spec)) + 0
        places = [shard.data.unsafe_buffer_pointer() for shard in x.addressable_shards]
        y = f(x, x * 2)
        assert x.is_deleted() and y.tolist() == (X * 3).tolist() and y.sharding.is_equivalent_to(by(*spec), 2)
        assert [shard.data.unsafe_buffer_pointer() for shard in y.addressable_shards] == places


@pytest.mark.parametrize("given", [
    lambda: (0.0, 0.0), lambda: (hnp.zeros(()), hnp.zeros(())),
    lambda: (put() * 0 + 1, 0.0, 0.0), lambda: (hx.device_put(hnp.zeros(()), by()), hx.device_put(hnp.zeros(()), by())),
])
@pytest.mark.parametrize("options", [{}, {"in_shardings": by()}, {"out_shardings": by()}])
def test_equal_numbers_may_be_several_donated_arguments(given, options):
    count = len(given())
    f = hx.jit(lambda *xs: [x + 1 for x in xs], donate_argnums=tuple(range(count)), **options)
    expected = [(np.asarray(x) + 1).tolist() for x in given()]
    for _ in range(3):
        assert [y.tolist() for y in f(*given())] == expected
    assert hx.jit(lambda x: x + 0, out_shardings=by())(hnp.zeros(())).tolist() == hnp.zeros(()).tolist() == 0.0


def test_static_and_donated_and_sharded_arguments_at_once():
    f = hx.jit(lambda n, x, y: x * n + y, static_argnums=0, donate_argnums=1, in_shardings=(by("a"), by("b")),
               out_shardings=by("a"))
    for n in (2, 3, 2, 3):
        x = put("a")
        y = f(n, x, X)
        assert x.is_deleted() and y.sharding == by("a") and y.tolist() == (X * n + X).tolist()


def test_calls_are_found_by_where_their_arguments_are():
    f = hx.jit(lambda x, y: x @ y.T)
    args = [put("a"), put(None, "b"), put(), hx.device_put(X, by()), X, hnp.asarray(X)]
    expected = (X @ X.T).tolist()
    for _ in range(2):
        for x in args:
            for y in args:
                assert f(x, y).tolist() == expected
    there = hx.device_put(X, DEVICES[3])
    assert f(there, X).devices() == {DEVICES[3]} and f(X, X).devices() == {DEVICES[0]}
    assert f(there, X).committed and not f(X, X).committed
    with pytest.raises(errors.DeviceMismatch, match=r"x on .* and y on cpu:3|devices"):
        f(args[0], there)


def test_a_step_that_keeps_the_sharding_of_its_state_is_compiled_once():
    step = hx.jit(lambda s, x: hx.tree.map(lambda y: y + x, s))
    state = hx.device_put({"w": X, "b": X[0]}, {"w": by("a", None), "b": by()})
    for _ in range(5):
        state = step(state, 1.0)
    assert step._cache_size() == 1 and state["w"].tolist() == (X + 5).tolist()


def test_stages_say_how_arguments_and_results_are_cut():
    f = hx.jit(lambda x, y: (x * 2, y.sum()), out_shardings=(by("b"), None))
    compiled = f.lower(put("a"), hx.ShapeDtypeStruct((8, 4), "float32", sharding=by(None, "b"))).compile()
    assert compiled.input_shardings == ((by("a"), by(None, "b")), {})
    assert compiled.output_shardings == (by("b"), by())
    y, total = compiled(put("a"), put(None, "b"))
    assert y.sharding == by("b") and float(total) == X.sum()
    assert hx.eval_shape(f, X, X)[0].sharding == by("b")
    single = hx.jit(lambda x: x + 1).lower(X).compile()
    assert single.input_shardings == ((SingleDeviceSharding(DEVICES[0]),), {})


def test_the_mesh_that_is_set_is_where_uncommitted_arguments_go():
    with hx.configure(mesh=MESH, abstract_mesh=MESH.abstract_mesh):
        assert hx.jit(lambda x: x + 1)(X).sharding == by() and (hnp.asarray(X) + 1).sharding == by()
    assert hx.jit(lambda x: x + 1)(X).sharding == SingleDeviceSharding(DEVICES[0])


def test_captured_arrays_may_be_over_devices():
    x = put("a")
    f = hx.jit(lambda y: x * y)
    assert f(2.0).tolist() == f(2.0).tolist() == (X * 2).tolist()


def test_threads_share_one_program_over_all_devices():
    f = hx.jit(lambda x: x @ (x.T @ x) / hnp.sum(x * x))
    x = put("a")
    expected = np.asarray(f(x))

    assert together(4, lambda _: [np.allclose(f(x), expected) for _ in range(10)]) == [[True] * 10] * 4


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: hx.jit(lambda x: x, in_shardings=3), errors.BadArgument, "a sharding or a PartitionSpec"),
        (lambda: hx.jit(lambda x: x, out_shardings="a"), errors.BadArgument, "a sharding or a PartitionSpec"),
        (lambda: hx.jit(lambda x: x, in_shardings=P(P.UNCONSTRAINED)), errors.BadArgument, "every dimension"),
        (lambda: hx.jit(lambda x: x, in_shardings=P("a"))(X), errors.BadArgument, "mesh in force"),
        (lambda: hx.jit(lambda x: x, in_shardings=(by(),) * 2)(X), errors.TreeMismatch, "jit in_shardings"),
        (lambda: hx.jit(lambda x: x, out_shardings=(by(),) * 2)(X), errors.TreeMismatch, "jit out_shardings"),
        (lambda: hx.jit(lambda x: x, in_shardings=by("b", "a"))(X[:, :1]), errors.ShapeMismatch, "a multiple of 2"),
        (lambda: hx.jit(lambda x: x, out_shardings=by(None, None, "a"))(X), errors.ShapeMismatch, "at most one entry"),
        (lambda: hx.jit(lambda x: x, in_shardings=by("a"))(x=X), errors.BadArgument, "by position"),
        (lambda: hx.jit(lambda x: x, in_shardings=by("a"))(hx.device_put(X, DEVICES[3])), errors.DeviceMismatch,
         "same devices"),
        (lambda: hx.jit(lambda x: x, out_shardings=by("a"))(hx.device_put(X, DEVICES[3])), errors.DeviceMismatch,
         "same devices"),
        (lambda: hx.jit(lambda x: x, device=DEVICES[0], out_shardings=by("a")), errors.BadArgument, "must be None"),
    ],
)
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("pair", [
    lambda: (put("a"), put("a")),
    lambda: (put("a"), hnp.float32(2)),
    lambda: (put("a"), X[0].copy()),
    lambda: (hnp.asarray(X), X),
    lambda: (hx.device_put(X, DEVICES[3]), hnp.float32(2)),
    lambda: (hx.device_put(X, DEVICES[3]), X[0].copy()),
])
@pytest.mark.parametrize("of", [
    lambda **o: hx.jit(lambda x, y: x * y, **o),
    lambda **o: (lambda f: lambda x, y: f({"x": x, "y": [y]}))(hx.jit(lambda t: t["x"] * t["y"][0], **o)),
    lambda **o: (lambda f: lambda x, y: f(x, y=y))(hx.jit(lambda x, y: x * y, **o)),
    lambda **o: (lambda f: lambda x, y: f(x, y, 1))(hx.jit(lambda x, y, n: x * y * n, static_argnums=2, **o)),
    lambda **o: (lambda f: lambda x, y: f(hx.tree.freeze((x, y))))(hx.jit(lambda t: t[0] * t[1], **o)),
])
@pytest.mark.parametrize("donated", [False, True])
def test_only_the_first_call_by_place_is_slow(of, pair, donated, monkeypatch):
    slow, calls = Jitted.slow, []
    monkeypatch.setattr(Jitted, "slow", lambda self, *args: (calls.append(args), slow(self, *args))[1])
    put("a")
    f = of(donate_argnums=0) if donated else of()
    x, y = pair()
    expected, where = f(x, y), x.sharding
    for _ in range(3):
        x, y = pair()
        made = f(x, y)
        assert made.tolist() == expected.tolist() == (X * np.asarray(y)).tolist() and made.sharding == where
    assert len(calls) == 1


ABSTRACT = AbstractMesh((2, 4), ("a", "b"), (AxisType.Auto,) * 2)
TYPE = hx.ShapeDtypeStruct((8, 4), "float32")


def test_types_are_lowered_with_the_shardings_that_jit_was_told():
    f = hx.jit(lambda x: x * 2, in_shardings=by("a"))
    compiled = f.lower(TYPE).compile()
    assert compiled(X).sharding == by("a") and compiled(X).tolist() == (X * 2).tolist()
    assert hx.eval_shape(f, TYPE).shape == f.trace(TYPE).out_info.shape == (8, 4)
    with pytest.raises(errors.ShapeMismatch):
        f.lower(hx.ShapeDtypeStruct((7, 4), "float32"))
    assert hx.typeof(TYPE) == hx.typeof(hnp.asarray(X))


@pytest.mark.parametrize("lowered", [
    lambda cut: hx.jit(lambda x: x @ x.T, in_shardings=cut).lower(TYPE),
    lambda cut: hx.jit(lambda x: x @ x.T, out_shardings=cut).lower(TYPE),
    lambda cut: hx.jit(lambda x: x @ x.T).lower(hx.ShapeDtypeStruct((8, 4), "float32", sharding=cut)),
])
def test_programs_are_lowered_for_abstract_meshes_by_the_shardings_of_their_arguments(lowered):
    abstract, concrete = [lowered(NamedSharding(mesh, P("a", "b"))) for mesh in (ABSTRACT, MESH)]
    assert abstract.as_text() == concrete.as_text()
    assert '{"a"}, {"b"}' in abstract.as_text()
    with pytest.raises(errors.DeviceMismatch, match="no devices"):
        abstract.compile()
    with pytest.raises(errors.DeviceMismatch, match="same devices"):
        hx.jit(lambda x, y: x + y, in_shardings=(NamedSharding(ABSTRACT, P()), None))(X, put("a"))


def test_an_array_is_not_donated_whose_parts_fit_no_result():
    for spec, other in ((("a",), ()), (("a", "b"), ("b",)), (("a",), (None, "b"))):
        x = put(*spec)
        y = hx.jit(lambda x: x * 2, donate_argnums=0, out_shardings=by(*other))(x)
        assert y.tolist() == (X * 2).tolist() and x.tolist() == X.tolist()
    x = put("a")
    assert hx.jit(lambda x: x * 2, donate_argnums=0)(x).sharding == by("a") and x.is_deleted()


@pytest.mark.parametrize("where", [by("a"), SingleDeviceSharding(DEVICES[0])])
def test_arguments_and_results_lie_in_the_memory_that_is_asked_for(where):
    far = where.with_memory_kind("pinned_host")
    for own in (X, hx.device_put(X, far)):
        f = hx.jit(lambda x: (x * 2, x), in_shardings=far, out_shardings=(far, where))
        for _ in range(2):  # the second call takes a plan
            y, x = f(own)
            assert y.sharding.is_equivalent_to(far, 2) and x.sharding.is_equivalent_to(where, 2)
            assert y.tolist() == (X * 2).tolist() and x.tolist() == X.tolist()
    assert f.lower(X).as_text().count('mhlo.memory_kind = "pinned_host"') == 2
