"""extend.core: the state of tracing, and types with and without a mapped axis."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.core import trace_state_clean
from handlax.extend import core as extend_core
from handlax.extend.core import get_opaque_trace_state, mapped_aval, unmapped_aval

TRANSFORMS = [
    lambda f: hx.jit(f)(1.0), lambda f: hx.grad(f)(1.0), lambda f: hx.vmap(f)(hnp.ones(2)),
    lambda f: hx.jvp(f, (1.0,), (1.0,)), lambda f: hx.linearize(f, 1.0), lambda f: hx.make_jaxpr(f)(1.0),
    lambda f: hx.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2), lambda f: hx.eval_shape(f, 1.0),
]


@hx.effect
class Level:
    def result_type(op):
        return hx.typeof(1.0)


reader = hx.handler({Level: lambda op: hnp.float32(2.0)})


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_state_is_that_of_the_innermost_transformation(transform):
    outside, seen = get_opaque_trace_state(), []

    def f(x):
        seen.append((get_opaque_trace_state(), get_opaque_trace_state(), trace_state_clean()))
        here = seen[-1][0]
        return hx.handle(reader)(lambda x: seen.append((get_opaque_trace_state(), here, trace_state_clean())) or x)(x)

    transform(f)
    assert len(seen) >= 2
    for one, two, clean in seen:
        assert one == two != outside and not clean
    assert get_opaque_trace_state() == outside


def test_outside_of_transformations_all_is_clean():
    outside = get_opaque_trace_state()
    assert trace_state_clean() and hash(outside) == hash(get_opaque_trace_state())
    assert hx.handle(reader)(trace_state_clean)()
    with hx.handle(reader):
        assert trace_state_clean() and get_opaque_trace_state() == outside


FORWARDING = [
    lambda f: hx.named_call(f, name="scope")(), lambda f: hx.named_scope("scope")(f)(),
    lambda f: hx.ensure_compile_time_eval()(f)(), lambda f: hx.handle(reader)(f)(), lambda f: hx.debug_nans(True)(f)(),
    lambda f: hx.checking_leaks()(f)(), lambda f: hx.enable_x64(True)(f)(),
    lambda f: hx.default_matmul_precision("highest")(f)(),
]


@pytest.mark.parametrize("block", FORWARDING)
def test_what_makes_no_values_of_its_own_leaves_the_state(block):
    def check(x):
        outside = get_opaque_trace_state(), trace_state_clean()
        assert block(lambda: (get_opaque_trace_state(), trace_state_clean())) == outside
        return x

    check(1.0)
    for transform in TRANSFORMS:
        transform(check)


def test_states_of_two_installations_differ_also_after_they_have_ended():
    states = []
    for _ in range(2):
        hx.vmap(lambda x: states.append(get_opaque_trace_state()) or x)(hnp.ones(2))
    first, second = states
    assert first != second and first == states[0]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, None])
@pytest.mark.parametrize("x", [hnp.ones((2, 3)), hnp.ones((4, 4), "int8")])
def test_the_type_of_a_lane_is_without_the_axis_that_mapping_adds(axis, x):
    t = hx.typeof(x)
    mapped = unmapped_aval(5, axis, t)
    assert mapped_aval(5, axis, mapped) == t
    if axis is not None:
        assert mapped == hx.typeof(hnp.stack([x] * 5, axis))


def test_weak_types_stay_weak():
    lanes = unmapped_aval(2, 0, hx.typeof(1.0))
    assert lanes.weak_type and mapped_aval(2, 0, lanes).weak_type


@pytest.mark.parametrize(("call", "error"), [
    (lambda t: mapped_aval(5, 0, t), errors.ShapeMismatch),
    (lambda t: mapped_aval(2, 2, t), ValueError),
    (lambda t: unmapped_aval(2, 4, t), ValueError),
])
def test_what_does_not_fit_is_refused(call, error):
    with pytest.raises(error):
        call(hx.typeof(np.ones((2, 3))))


def test_what_is_in_force_is_told():
    def state(x):
        seen.append((
            extend_core.unsafe_am_i_under_a_jit_DO_NOT_USE(), extend_core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
            extend_core.unsafe_get_axis_names_DO_NOT_USE(), extend_core.nonempty_axis_env_DO_NOT_USE(),
        ))
        return x

    seen = []
    state(1.0), hx.jit(state)(1.0), hx.vmap(state)(hnp.ones(2)), hx.grad(state)(1.0)
    hx.jit(hx.vmap(hx.vmap(state, axis_name="j"), axis_name="i"))(hnp.ones((2, 2)))
    assert seen == [(False, False, [], False), (True, False, [], False), (False, True, [], False),
                    (False, False, [], False), (True, True, ["j", "i"], True)]


def test_a_known_value_is_forced_and_a_traced_one_refused():
    assert extend_core.concrete_or_error(None, "a") == "a" and extend_core.concrete_or_error(int, hnp.float32(2)) == 2
    assert hx.vmap(lambda x: x * extend_core.concrete_or_error(float, hnp.float32(2)))(hnp.ones(2)).tolist() == [2, 2]
    for transform in (hx.jit, hx.grad):
        with pytest.raises(errors.ConcretizationTypeError, match=r"a known value is needed, got(.|\n)*the size"):
            transform(lambda x: extend_core.concrete_or_error(int, x, "the size") * x)(2.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int32", "bool", "uint4"])
def test_tangents_have_the_dtype_of_inexact_values(dtype):
    expected = dtype if dtype in ("float32", "bfloat16", "complex64") else hx.float0
    assert extend_core.primal_dtype_to_tangent_dtype(dtype) == expected
