"""Where values lie: the types of a program, its values, and the memories of its arguments and results."""

import copy
import pickle
import re

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.ad_checkpoint import checkpoint_name
from handlax.checkpoint_policies import offload_dot_with_no_batch_dims, save_and_offload_only_these_names
from handlax.memory import Space
from handlax.sharding import SingleDeviceSharding

X = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
NEAR = SingleDeviceSharding(hx.devices()[0])
NAMED = save_and_offload_only_these_names(
    names_which_can_be_saved=[], names_which_can_be_offloaded=["a"], offload_src="device", offload_dst="pinned_host"
)


def far(x=X):
    return hx.device_put(x, Space.Host)


def to(space):
    return lambda x: hx.device_put(x, space)


def kind(x):
    return x.sharding.memory_kind


def test_a_type_says_where_its_value_lies():
    x = far()
    assert str(hx.typeof(x)) == "f32<host>[2,3]" and hx.typeof(x).memory_space is Space.Host
    assert kind(x) == "pinned_host" and x.tolist() == X.tolist()
    assert hx.typeof(to(Space.Device)(x)) is hx.typeof(hnp.asarray(X)) and to(Space.Host)(x) is x
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.copy(), *x):
        assert kind(again) == "pinned_host" and hx.typeof(again).memory_space is Space.Host


def test_operations_compute_in_the_memory_of_the_device():
    for f in (lambda x: x * 2, hx.jit(lambda x: x * 2), hx.jit(lambda x: to(Space.Device)(x) * 2)):
        y = f(far())
        assert kind(y) == "device" and y.tolist() == (X * 2).tolist() and str(hx.typeof(y)) == "f32[2,3]"


def test_a_program_moves_values_and_says_so():
    def f(x):
        return to(Space.Host)(x + 1), x, hx.device_put(x, NEAR)

    program = hx.make_program(f)(far())
    assert [str(t) for t in program.out_types] == ["f32<host>[2,3]", "f32<host>[2,3]", "f32[2,3]"]
    assert type(program).parse(str(program)) == program and "to_memory[space=" in str(program)
    results = hx.jit(f)(far())
    assert [*map(kind, results)] == [*map(kind, program(far()))] == ["pinned_host", "pinned_host", "device"]
    text = hx.jit(f).lower(far()).as_text()
    assert text.count('mhlo.memory_kind = "pinned_host"') == 3
    assert re.findall(r'_xla_buffer_placement = "(\w+)"', text) == ["device", "pinned_host", "device"]


@pytest.mark.parametrize("jit", [hx.jit, lambda f: f], ids=["jit", "eager"])
def test_transformations_give_the_values_without_memories(jit):
    def f(x, to=to):
        near = to(Space.Device)(x)
        return hnp.sum(to(Space.Host)(hnp.sin(near) * x) ** 2)

    def plain(x):
        return f(x, lambda space: lambda x: x)

    x, dx = far(), hnp.cos(X)
    np.testing.assert_allclose(jit(hx.grad(f))(x), hx.grad(plain)(X), rtol=1e-6)
    np.testing.assert_allclose(jit(lambda x: hx.jvp(f, (x,), (dx,)))(x), hx.jvp(plain, (X,), (dx,)), rtol=1e-6)
    np.testing.assert_allclose(jit(hx.vmap(f))(x), hx.vmap(plain)(X), rtol=1e-6)
    np.testing.assert_allclose(jit(hx.hessian(f))(x), hx.hessian(plain)(X), rtol=1e-5)
    assert kind(hx.grad(f)(x)) == "device"


def test_a_loop_takes_slices_from_the_host_and_stacks_them_there():
    def step(c, w):
        return c + to(Space.Device)(w), to(Space.Host)(c)

    total, sums = hx.jit(lambda ws: lax.scan(step, hnp.zeros(3), ws))(far())
    assert kind(sums) == "pinned_host" and sums.tolist() == [[0, 0, 0], X[0].tolist()]
    assert kind(total) == "device" and total.tolist() == X.sum(0).tolist()


def test_a_carry_or_a_branch_does_not_change_its_memory():
    x = far()
    with pytest.raises(errors.StateTypeError, match=r"got f32<host>\[2,3\] at the start") as raised:
        lax.scan(lambda c, _: (c * 2, None), x, None, length=2)
    assert "hx.memory.Space.Host" in raised.value.hint
    with pytest.raises(errors.StateTypeError, match="all branches must give the same types"):
        hx.jit(lambda c: lax.cond(c, lambda: x * 2, lambda: x))(True)
    y = hx.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: to(Space.Host)(c * 2), x))(x)
    assert kind(y) == "pinned_host" and y.tolist() == (X * 8).tolist()


@pytest.mark.parametrize("policy", [NAMED, offload_dot_with_no_batch_dims("device", "pinned_host")])
def test_residuals_wait_in_the_memory_of_the_host(policy):
    w = hnp.eye(3) * 0.5

    def layer(x):
        return hnp.sin(checkpoint_name(hnp.cos(x) @ w, "a"))

    def loss(f):
        return lambda x: hnp.sum(lax.scan(lambda x, _: (f(x), None), f(x), None, length=2)[0])

    offloaded = hx.jit(hx.grad(loss(hx.checkpoint(layer, policy=policy))))
    np.testing.assert_allclose(offloaded(X), hx.grad(loss(layer))(X), rtol=1e-6)
    moves = re.findall(r'_xla_buffer_placement = "(\w+)"', offloaded.lower(X).as_text())
    assert moves == ["pinned_host", "device"]  # the same functions within the loop and before it


def test_donated_memory_of_the_host_is_that_of_a_result():
    step = hx.jit(lambda m, g: to(Space.Host)(0.9 * to(Space.Device)(m) + g), donate_argnums=0)
    state = far()
    for _ in range(3):
        state, old = step(state, X), state
        assert kind(state) == "pinned_host" and old.is_deleted()
    np.testing.assert_allclose(state, X * (0.9**3 + 0.9**2 + 0.9 + 1), rtol=1e-6)


def test_a_space_is_a_place():
    for put in (lambda: hx.device_put(X, Space.Any), lambda: hx.jit(to(Space.Any))(X)):
        with pytest.raises(errors.BadArgument, match=r"Space\.Any is no memory"):
            put()


def test_the_text_of_a_space_is_its_name_and_parses():
    program = hx.make_program(lambda x: hx.device_put(hx.device_put(x, Space.Host), Space.Device))(hnp.ones(3))
    text = str(program)
    assert "to_memory[space=Host]" in text and "to_memory[space=Device]" in text
    assert hx.Program.parse(text) == program
