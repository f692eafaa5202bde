"""Boxes that outlive their transformation, and values that Python asks for too early."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.other_threads import in_thread

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp

TRANSFORMATIONS = {
    "jit": hx.jit,
    "grad": hx.grad,
    "vmap": hx.vmap,
    "jvp": lambda f: lambda x: hx.jvp(f, (x,), (x,)),
    "make_program": hx.make_program,
}


def leaking(name):
    """A value that a transformation of this name leaked."""
    leaked = []

    def f(x):
        leaked.append(x * 2.0)
        return hnp.sum(x)

    argument = hnp.ones((2, 3)) if name == "vmap" else hnp.ones(3)
    TRANSFORMATIONS[name](f)(argument)
    return leaked[0]


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_an_escaped_box_names_its_transformation_and_the_line_where_it_was_made(name):
    box = leaking(name)
    with pytest.raises(errors.EscapedBox) as caught:
        box + 1.0
    message = str(caught.value)
    assert f"of {name}" in message
    assert message.count("test_escaped_boxes.py") == 3  # installed, made, used
    assert float(hnp.sum(hnp.ones(3))) == 3.0


@pytest.mark.parametrize("use", [
    lambda x: lax.cond(True, lambda y: y, lambda y: -y, x),
    lambda x: lax.scan(lambda c, _: (c + 1.0, None), x, None, length=2),
    lambda x: lax.while_loop(lambda c: hnp.all(c < 3.0), lambda c: c + 1.0, x),
    lambda x: hx.jit(lambda y: y)(x),
])
def test_an_escaped_box_is_refused_by_operations_with_bodies(use):
    box = leaking("grad")
    with pytest.raises(errors.EscapedBox, match="of grad"):
        use(box)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("other", [hx.jit, hx.grad, hx.make_program])
def test_an_escaped_box_is_refused_inside_another_transformation(name, other):
    box = leaking(name)
    with pytest.raises(errors.EscapedBox):
        other(lambda x: hnp.sum(x + box))(hnp.ones(3))


def test_a_box_of_another_thread_is_refused():
    found = []

    def f(x):
        def elsewhere():
            try:
                x + 1.0
            except errors.EscapedBox as error:
                found.append(error)

        in_thread(elsewhere)
        return x

    hx.jit(f)(1.0)
    assert len(found) == 1


def test_equal_transformations_installed_twice_are_two_runs():
    assert float(hx.grad(lambda x: x * hx.grad(lambda y: x + y)(1.0))(1.0)) == 1.0
    assert float(hx.grad(lambda x: x * hx.grad(lambda y: y * x)(2.0))(3.0)) == 6.0


@pytest.mark.parametrize("transform", [hx.jit, hx.vmap])
def test_a_python_condition_needs_a_known_value(transform):
    def f(x):
        return x if x > 0 else -x

    with pytest.raises(errors.TracerBoolConversionError) as caught:
        transform(f)(hnp.ones(1))
    assert caught.value.hint is not None


def test_the_primal_of_an_eager_derivative_is_known_to_python():
    assert float(hx.grad(lambda x: x * x if x else x)(3.0)) == 6.0
    assert float(hx.grad(lambda x: x * int(x))(3.0)) == 3.0


def test_numpy_cannot_read_a_box():
    with pytest.raises(errors.TracerArrayConversionError, match="numpy"):
        hx.jit(np.sin)(1.0)


def test_an_exception_inside_a_trace_leaves_nothing_behind():
    def broken(x):
        raise ZeroDivisionError

    for transform in (hx.jit, hx.grad, hx.vmap):
        with pytest.raises(ZeroDivisionError):
            transform(broken)(hnp.ones(()) if transform is not hx.vmap else hnp.ones(2))
    assert hx.handlers() == ()
    assert float(hx.jit(lambda x: x + 1)(1.0)) == 2.0


@hx.effect(vmap="per_lane", diff="stop")
class Keep:
    def result_type(op, x):
        return None


@pytest.mark.parametrize("kind", [lambda clause: clause, hx.final])
@pytest.mark.parametrize(
    "around",
    [
        lambda f: lambda x: hx.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0],
        lambda f: lambda x: hx.lax.cond(x > 0, f, lambda x: x, x),
        hx.jit,
    ],
    ids=["scan", "cond", "jit"],
)
def test_a_box_that_escapes_from_a_clause_names_its_handler(around, kind):
    kept = []

    def keep(s, op, x):
        kept.append(x)
        return (s, x) if kind is hx.final else (s, None)

    keeping = hx.handler({Keep: kind(keep)}, **({"returns": lambda s, y: (s, y)} if kind is hx.final else {}))
    hx.handle(keeping, 0)(around(lambda x: (hx.perform(Keep(), x), x + 1.0)[1]))(1.0)
    with pytest.raises(errors.EscapedBox) as caught:
        kept[0] + 1
    message = str(caught.value)
    assert "test_escaped_boxes.py:" in message.split("installed at")[1].split(",")[0]
    assert "unknown" not in message
    assert "handler(Keep)" in message or kind is hx.final


@pytest.mark.parametrize("f", [lax.sin, lambda x: lax.add(x, x), lambda x: lax.select(True, x, x)], ids=["1", "2", "3"])
def test_an_operation_that_was_performed_on_such_values_before_names_it_too(f):
    kept = []
    hx.make_program(lambda x: kept.append(x) or x)(hnp.float32(1.0))
    f(hnp.float32(1.0))
    with pytest.raises(errors.EscapedBox, match="make_program"):
        f(*kept)
