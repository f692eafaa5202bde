"""Mistakes in control flow: what must hold, where the user stands, the remedy; and the next correct call works."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.testing import faults

x = hnp.arange(3.0)
same = lambda c, x: (c, x)

CARRIES = {
    "dtype": (
        lambda: lax.scan(lambda c, x: ({"n": c["n"].astype(int)}, x), {"n": hnp.float32(0)}, x),
        errors.StateTypeError, TypeError, "scan: the carry must keep its type, got f32[] at the start and i32[] after "
        "the body at ['n'].", "start from a value of type i32[]",
    ),
    "shape": (
        lambda: lax.scan(lambda c, x: ({"a": [c["a"][0], hnp.stack([x, x])]}, x), {"a": [0.0, 1.0]}, x),
        errors.StateTypeError, TypeError, "got f32[]~ at the start and f32[2] after the body at ['a'][1]",
        "cannot change the shape",
    ),
    "structure": (
        lambda: lax.scan(lambda c, x: ({"a": (c["a"], x)}, x), {"a": 0.0}, x),
        errors.TreeMismatch, ValueError, "got a leaf at the start and a tuple of 2 after the body at ['a']",
        "the same tree",
    ),
    "keys": (
        lambda: lax.scan(lambda c, x: ({"b": c["a"]}, x), {"a": 0.0}, x),
        errors.TreeMismatch, ValueError, "a dict with keys ['a'] at the start and a dict with keys ['b']", "same tree",
    ),
    "nothing": (
        lambda: lax.scan(lambda c, x: (None, x), 0.0, x), errors.TreeMismatch, ValueError, "a leaf at the start and "
        "None", "None is an empty one",
    ),
    "no pair": (
        lambda: lax.scan(lambda c, x: c, 0.0, x), errors.TreeMismatch, ValueError, "(carry, y), got f32[]~",
        "(carry, None)",
    ),
    "three": (
        lambda: lax.scan(lambda c, x: (c, c, c), 0.0, x), errors.TreeMismatch, ValueError, "got a tuple of 3", "None",
    ),
    "of while_loop": (
        lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1][:2]), (0, x)), errors.StateTypeError,
        TypeError, "while_loop: the carry must keep its type, got f32[3] at the start and f32[2]", "shape",
    ),
    "structure of while_loop": (
        lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: [*c], (0, x)), errors.TreeMismatch, ValueError,
        "got a tuple of 2 at the start and a list of 2", "same tree",
    ),
    "of fori_loop": (
        lambda: lax.fori_loop(0, 3, lambda i, c: {"y": c["y"][:1]}, {"y": x}), errors.StateTypeError, TypeError,
        "fori_loop: the carry must keep its type, got f32[3] at the start and f32[1] after the body at ['y']", "shape",
    ),
    "of fori_loop with computed bounds": (
        lambda: hx.jit(lambda n: lax.fori_loop(0, n, lambda i, c: {"y": (c["y"],)}, {"y": x}))(3), errors.TreeMismatch,
        ValueError, "fori_loop: the carry must keep its structure, got a leaf at the start and a tuple of 1 after the "
        "body at ['y']", "same tree",
    ),
}

OPERANDS = {
    "lengths": (
        lambda: lax.scan(same, 0.0, {"p": x, "q": hnp.ones(4)}), errors.ShapeMismatch, ValueError,
        "leading sizes must agree, got 3 and 4 at ['q']", "slice",
    ),
    "length": (lambda: lax.scan(same, 0.0, x, length=4), errors.ShapeMismatch, ValueError, "got 4 and 3", "length"),
    "scalar": (
        lambda: lax.scan(same, 0.0, (x, 1.0)), errors.ShapeMismatch, ValueError, "leading axis, got f32[]~ at [1]",
        "by closure",
    ),
    "nothing to go over": (lambda: lax.scan(same, 0.0), errors.BadArgument, ValueError, "xs or length", "length=n"),
    "computed length": (
        lambda: hx.jit(lambda n: lax.scan(same, 0.0, None, n))(3), errors.TracerIntegerConversionError, TypeError,
        "known while tracing, got i32[]~", "static_argnums",
    ),
    "negative length": (lambda: lax.scan(same, 0.0, None, -1), errors.BadArgument, ValueError, "got -1", ""),
    "unroll": (lambda: lax.scan(same, 0.0, x, unroll=-1), errors.BadArgument, ValueError, "not negative", ""),
    "unroll of text": (lambda: lax.scan(same, 0.0, x, unroll="a"), errors.BadArgument, ValueError, "got 'a'", ""),
    "unroll with computed bounds": (
        lambda: hx.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 1.0, unroll=2))(3), errors.BadArgument,
        ValueError, "known while tracing", "Python integers",
    ),
    "float bounds": (
        lambda: lax.fori_loop(0, 3.0, lambda i, c: c, 1.0), errors.DTypeMismatch, TypeError, "i32[]~ and f32[]~", "",
    ),
    "bounds of two dtypes": (
        lambda: lax.fori_loop(hnp.int32(0), hnp.int16(3), lambda i, c: c, 1.0), errors.DTypeMismatch, TypeError,
        "one dtype, got i32[] and i16[]", "",
    ),
    "max_steps": (
        lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0, max_steps=0), errors.BadArgument, ValueError,
        "max_steps must be a positive integer, got 0", "",
    ),
    "max_steps and checkpoints": (
        lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0, max_steps=3, checkpoints=2), errors.BadArgument,
        ValueError, "not both", "",
    ),
    "batch_size": (lambda: lax.map(lambda x: x, x, batch_size=0), errors.BadArgument, ValueError, "got 0", ""),
    "no array": (lambda: lax.scan(same, "a", x), errors.NotAnArray, TypeError, "str 'a'", ""),
    "no array in a body": (lambda: lax.scan(lambda c, x: (c, "a"), 0.0, x), errors.NotAnArray, TypeError, "'a'", ""),
}

BRANCHES = {
    "types": (
        lambda: lax.cond(True, lambda x: {"a": x, "b": (1, x)}, lambda x: {"a": x, "b": (1, x.astype(int))}, x),
        errors.StateTypeError, TypeError, "got f32[3] from <lambda> and i32[3] from <lambda> at ['b'][1]", "astype",
    ),
    "shapes": (
        lambda: lax.cond(True, lambda x: x, lambda x: x[0], x), errors.StateTypeError, TypeError,
        "got f32[3] from <lambda> and f32[] from <lambda>", "broadcast",
    ),
    "structures": (
        lambda: lax.cond(True, lambda x: {"y": (x, x)}, lambda x: {"y": x}, x), errors.TreeMismatch, ValueError,
        "got a tuple of 2 from <lambda> and a leaf from <lambda> at ['y']", "same tree",
    ),
    "nothing": (
        lambda: lax.cond(True, lambda x: None, hnp.sin, x), errors.TreeMismatch, ValueError,
        "got None from <lambda> and a leaf from sin",
        "None is an empty one",
    ),
    "types of three": (
        lambda: lax.switch(0, [lambda: hnp.int32(1), lambda: hnp.int32(1), lambda: hnp.float32(1)]),
        errors.StateTypeError, TypeError, "the same types, got i32[] from <lambda> and f32[] from <lambda>",
        "astype",
    ),
    "a predicate of many": (
        lambda: lax.cond(x > 0, lambda x: x, lambda x: x, x), errors.ShapeMismatch, ValueError,
        "cond: the predicate must be a scalar, got bool[3]", "where()",
    ),
    "a complex predicate": (
        lambda: lax.cond(1j, lambda: 1, lambda: 2), errors.DTypeMismatch, TypeError, "got c64[]~", "",
    ),
    "no branch": (lambda: lax.switch(0, []), errors.BadArgument, ValueError, "got none", ""),
    "a function for branches": (lambda: lax.switch(0, same), errors.BadArgument, ValueError, "sequence", "[f, g]"),
    "a float index": (
        lambda: lax.switch(0.5, [lambda: 1, lambda: 2]), errors.DTypeMismatch, TypeError, "integer, got f32[]~", "",
    ),
    "an index of many": (
        lambda: lax.switch(x.astype(int), [lambda: 1, lambda: 2]), errors.ShapeMismatch, ValueError, "i32[3]", "",
    ),
    "a float test": (
        lambda: lax.while_loop(lambda c: c, lambda c: c - 1, 3.0), errors.DTypeMismatch, TypeError,
        "the test must give a bool, got f32[]~", "x != 0",
    ),
    "a test of many": (
        lambda: lax.while_loop(lambda c: c < 1, lambda c: c - 1, x), errors.ShapeMismatch, ValueError,
        "must give a scalar, got bool[3]", ".any()",
    ),
    "two tests": (
        lambda: lax.while_loop(lambda c: (c < 1, c < 2), lambda c: c - 1, 0.0), errors.TreeMismatch, ValueError,
        "one bool, got a tuple of 2", "&",
    ),
}

FUNCTIONS = {
    name: (mistake, errors.NotAFunction, TypeError, f"{name.split()[0]}: a function is needed", "")
    for name, mistake in {
        "scan": lambda: lax.scan(3, 0.0, x),
        "cond of the true": lambda: lax.cond(True, x, same),
        "cond of the false": lambda: lax.cond(True, same, x),
        "switch": lambda: lax.switch(0, [lambda: 1, 2]),
        "while_loop of the test": lambda: lax.while_loop(1, lambda c: c, 0),
        "while_loop of the body": lambda: lax.while_loop(lambda c: c, 1, 0),
        "fori_loop": lambda: lax.fori_loop(0, 3, 0, x),
        "map": lambda: lax.map(3, x),
    }.items()
}

TRACING = {
    "if in a scan": (
        lambda: lax.scan(lambda c, x: (c + 1 if x > 0 else c, x), 0.0, x), errors.TracerBoolConversionError, TypeError,
        "a Python condition needs a known value", "if: hx.lax.cond, hx.numpy.where",
    ),
    "if in a branch": (
        lambda: lax.cond(True, lambda x: x if x[0] > 0 else -x, lambda x: x, x), errors.TracerBoolConversionError,
        TypeError, "known value, got bool[]", "where",
    ),
    "if in a test": (
        lambda: lax.while_loop(lambda c: bool(c < 3), lambda c: c * 2, 1.0), errors.TracerBoolConversionError,
        TypeError, "known value", "while: hx.lax.while_loop",
    ),
    "a list at a counter": (
        lambda: lax.fori_loop(0, 3, lambda i, c: c + [1, 2, 3][i], 1), errors.TracerIntegerConversionError, TypeError,
        "known integer", "dynamic_slice",
    ),
    "reverse mode of a while loop": (
        lambda: hx.grad(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * 2, x))(1.0),
        errors.NotDifferentiable, TypeError, "a loop of unknown length", "max_steps=, or checkpoints=",
    ),
    "reverse mode with computed bounds": (
        lambda: hx.grad(hx.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 2, x)))(1.0, 3),
        errors.NotDifferentiable, TypeError, "a loop of unknown length", "constant bounds",
    ),
    "a value kept from a body": (lambda: _kept() + 1, errors.EscapedBox, RuntimeError, "escaped box", "return values"),
}


def _kept():
    found = []
    lax.scan(lambda c, x: (found.append(c), (c, x))[1], 0.0, x)
    return found[0]


TABLES = {
    "carry": CARRIES, "operand": OPERANDS, "branch": BRANCHES, "function": FUNCTIONS, "tracing": TRACING,
}
CASES = [pytest.param(*case, id=f"{table}: {name}") for table, cases in TABLES.items() for name, case in cases.items()]


@pytest.mark.parametrize(("mistake", "kind", "builtin", "said", "remedy"), CASES)
def test_a_mistake_in_control_flow_has_its_lines_and_harms_nothing(mistake, kind, builtin, said, remedy):
    with faults.whole(), pytest.raises(errors.HandlaxError) as caught:
        mistake()
    error = caught.value
    assert type(error) is kind
    assert isinstance(error, builtin)
    first, place, *hint = str(error).split("\n")
    assert said in first
    assert place.startswith("  at test_control_flow.py:")
    assert len(hint) <= 1
    if remedy:
        assert remedy in hint[0]


def test_an_exception_in_a_body_comes_out_as_it_is():
    class Mine(Exception):
        pass

    def body(*_):
        raise Mine

    for call in (
        lambda: lax.scan(body, 0.0, x),
        lambda: lax.cond(True, body, lambda x: x, x),
        lambda: lax.while_loop(lambda c: c < 3, body, 0),
        lambda: lax.while_loop(body, lambda c: c, 0),
        lambda: hx.jit(hx.grad(lambda x: lax.fori_loop(0, 3, body, x)))(1.0),
    ):
        with faults.whole(), pytest.raises(Mine):
            call()


def test_a_weak_carry_takes_the_type_that_the_body_gives():
    total, seen = lax.scan(lambda c, n: (c + n, c), 0, hnp.arange(4, dtype="int16"))
    assert (total.dtype, total.weak_type, seen.dtype) == (np.int16, False, np.int16)
    assert lax.fori_loop(0, 2, lambda i, c: c + hnp.float64(0.5), 0.0).dtype == np.float64
    assert lax.while_loop(lambda c: c < 3, lambda c: c + hnp.float16(1), 0).dtype == np.float16


def test_a_scan_of_nothing_gives_its_carry_and_empty_stacks():
    for n in (1, 3, True):
        carry, ys = lax.scan(lambda c, x: (c + x, (c, x > 0)), 1.0, x[:0], unroll=n)
        assert float(carry) == 1.0
        assert [(y.shape, y.dtype) for y in ys] == [((0,), np.float32), ((0,), np.bool_)]


def test_unroll_may_exceed_the_length():
    for reverse in (False, True):
        once, often = [lax.scan(lambda c, x: (c * 2 + x, c), 1.0, x, None, reverse, n) for n in (1, 10)]
        np.testing.assert_array_equal(once[1], often[1])
        assert float(once[0]) == float(often[0])


@pytest.mark.parametrize("run", [lambda f: f, hx.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(("index", "wanted"), [(-7, 0), (0, 0), (1, 1), (2, 2), (3, 2), (2**31 - 1, 2)])
def test_an_index_outside_means_the_nearest_branch(run, index, wanted):
    assert int(run(lambda i: lax.switch(i, [lambda k=k: k for k in range(3)]))(index)) == wanted


def test_an_unsigned_index_beyond_the_signed_means_the_last_branch():
    assert int(lax.switch(np.uint32(2**32 - 1), [lambda: 0, lambda: 1])) == 1
    assert int(lax.switch(np.int8(-128), [lambda: 0, lambda: 1])) == 0


def test_branches_take_and_give_trees_and_nothing():
    f = lambda p: lax.cond(p, lambda t: ({"y": t["x"]}, None), lambda t: ({"y": -t["x"]}, None), {"x": x, "n": None})
    for p, sign in ((True, 1), (False, -1)):
        made, nothing = f(p)
        assert nothing is None
        np.testing.assert_array_equal(made["y"], sign * np.arange(3))
    assert int(lax.cond(True, lambda _: 1, lambda _: 2, None)) == 1
    assert int(lax.cond(False, lambda _: 1, lambda _: 2, operand=None)) == 2


def test_bounds_may_be_computed():
    f = lambda n, m: lax.fori_loop(n, m, lambda i, c: c + i, 0)
    assert int(hx.jit(f)(2, 5)) == int(f(2, 5)) == 9
    assert int(hx.jit(f)(5, 2)) == 0
    np.testing.assert_array_equal(hx.vmap(f, (None, 0))(0, hnp.arange(5)), [0, 0, 1, 3, 6])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 9])
def test_a_map_in_batches_is_the_map(size):
    xs = hnp.arange(7.0)
    np.testing.assert_array_equal(lax.map(lambda x: x * x, xs, batch_size=size), lax.map(lambda x: x * x, xs))


def unknown(x, *_):
    return x if x > 0 else -x


CALLERS = {
    "scan": lambda: lax.scan(unknown, 0.0, x),
    "while_loop": lambda: lax.while_loop(lambda c: True, unknown, 0.0),
    "fori_loop": lambda: lax.fori_loop(0, 3, lambda i, c: unknown(c), 0.0),
    "cond": lambda: lax.cond(hnp.array(True), unknown, unknown, 1.0),
    "switch": lambda: lax.switch(hnp.int32(1), [unknown, unknown], 1.0),
    "reduce": lambda: lax.reduce(x, 0.0, unknown, (0,)),
    "composite": lambda: lax.composite(unknown, "my.name")(1.0),
    "custom_root": lambda: lax.custom_root(unknown, 1.0, lambda f, x: x, lambda g, y: y),
    "custom_linear_solve": lambda: lax.custom_linear_solve(unknown, 1.0, lambda matvec, b: b),
    "linear_transpose": lambda: hx.linear_transpose(unknown, 1.0)(1.0),
    "make_program": lambda: hx.make_program(unknown)(1.0),
    "effects_of": lambda: hx.effects_of(unknown)(1.0),
    "closure_convert": lambda: hx.closure_convert(unknown, 1.0),
}


@pytest.mark.parametrize("caller", CALLERS)
def test_a_message_names_the_function_that_recorded_the_body(caller):
    with pytest.raises(errors.TracerBoolConversionError) as caught:
        CALLERS[caller]()
    what, where, _ = str(caught.value).split("\n")
    assert f"got bool[] under {caller}," in what and where.endswith(f", under {caller}")


def test_a_value_kept_from_an_eager_body_is_that_of_the_loop():
    kept = []
    lax.scan(lambda c, x: (c, kept.append(x)), 0.0, x)
    with pytest.raises(errors.EscapedBox, match=r"a value f32\[\] of scan, installed at .*, which has ended"):
        kept[0] + 1.0
