"""Gradients in references: ``vjp(...)[1].with_refs``."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.ad import DidntWant, DontWant, GradRef, GradValue
from handlax.errors import BadArgument, TreeMismatch

X = np.array([0.3, 1.1, -0.7], np.float32)
CT = np.array([1.0, -2.0, 0.5], np.float32)


def holds(ref, expected):
    np.testing.assert_allclose(np.asarray(ref[...]), expected, rtol=1e-6)


def test_a_gradient_is_added_to_its_reference():
    _, pull = hx.vjp(hnp.sin, X)
    ref = hx.new_ref(hnp.ones(3))
    assert pull.with_refs(ref)(CT) == (GradRef(),)
    holds(ref, 1 + np.cos(X) * CT)
    pull.with_refs(ref)(CT)
    holds(ref, 1 + 2 * np.cos(X) * CT)


def test_each_argument_has_an_entry():
    ref = hx.new_ref(hnp.zeros(3))
    _, pull = hx.vjp(lambda x, d: x * d["a"] + d["b"], X, {"a": X + 1, "b": 2 * X})
    first, rest = pull.with_refs(DontWant(), {"a": ref, "b": GradValue()})(CT)
    assert first == DidntWant() and rest["a"] == GradRef()
    np.testing.assert_array_equal(rest["b"], CT)
    holds(ref, X * CT)


@pytest.mark.parametrize("transform", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_references_in_a_program_are_added_to(transform):
    @transform
    def total(x, ct):
        ref = hx.new_ref(hnp.zeros(3))
        for i in range(3):
            hx.vjp(lambda x: x ** (i + 1), x)[1].with_refs(ref)(ct)
        return ref[...]

    np.testing.assert_allclose(total(X, CT), CT * (1 + 2 * X + 3 * X**2), rtol=1e-5)


FUNCTIONS = {  # of a reference, and as pairs (result, last value) of its first value
    "reads": (lambda r: r[...] ** 2, lambda x: (x**2, x)),
    "writes": (lambda r: r.__setitem__(..., hnp.sin(r[...])) or r[...] ** 2, lambda x: (hnp.sin(x) ** 2, hnp.sin(x))),
    "writes a part": (lambda r: r.__setitem__(0, r[1] * r[2]) or hnp.cos(r[...]),
                      lambda x: (hnp.cos(x.at[0].set(x[1] * x[2])), x.at[0].set(x[1] * x[2]))),
    "forgets": (lambda r: r.__setitem__(..., CT) or r[...], lambda x: (0 * x + CT, 0 * x + CT)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_of_a_reference_is_that_of_its_first_value(name):
    of_reference, of_value = FUNCTIONS[name]
    ref, last_ct = hx.new_ref(hnp.array(X)), hnp.array([0.2, 3.0, -1.0])
    y, pull = hx.vjp(of_reference, ref)
    (expected, last), plain = hx.vjp(of_value, hnp.array(X))
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    holds(ref, last)
    gradient = hx.new_ref(last_ct)
    assert pull.with_refs(gradient)(CT) == (GradRef(),)
    holds(gradient, plain((CT, last_ct))[0])
    assert pull.with_refs(DontWant())(CT) == (DidntWant(),)


def test_references_and_values_are_arguments_together():
    ref, gradient = hx.new_ref(hnp.array(X)), hx.new_ref(hnp.zeros(3))
    _, pull, aux = hx.vjp(lambda x, r: (x * r[...], "aux"), X + 1, ref, has_aux=True)
    first, second = pull.with_refs(GradValue(), gradient)(CT)
    assert aux == "aux" and second == GradRef()
    np.testing.assert_allclose(first, X * CT, rtol=1e-6)
    holds(gradient, (X + 1) * CT)


def test_a_pullback_of_references_leaves_jit():
    pull = hx.jit(lambda x: hx.vjp(lambda r: r[...] ** 2, hx.new_ref(x))[1])(X)
    gradient = hx.new_ref(hnp.zeros(3))
    pull.with_refs(gradient)(CT)
    holds(gradient, 2 * X * CT)


def test_entries_that_do_not_fit_are_refused():
    _, pull = hx.vjp(lambda x: x.sum(), X)
    for entries in ((), (None,), (DontWant(), DontWant())):
        with pytest.raises(TreeMismatch, match="with_refs takes entries of the structure"):
            pull.with_refs(*entries)
    for ref in (hx.new_ref(hnp.zeros(4)), hx.new_ref(hnp.zeros(3, "int32"))):
        with pytest.raises(BadArgument, match="requires a Ref of its type"):
            pull.with_refs(ref)
    with pytest.raises(BadArgument, match="must be a Ref, GradValue or DontWant"):
        pull.with_refs(1.0)
    _, pull = hx.vjp(lambda r, s: r[...] * s[...], hx.new_ref(2.0), hx.new_ref(3.0))
    with pytest.raises(BadArgument, match="with_refs"):
        pull(1.0)
    with pytest.raises(BadArgument, match="cannot be returned as a value"):
        pull.with_refs(GradValue(), DontWant())
    ref = hx.new_ref(0.0)
    with pytest.raises(BadArgument, match="of its own"):
        pull.with_refs(ref, ref)
