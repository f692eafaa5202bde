"""The laws hold for an operation that is made in a function, which no module has under its name."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.operations import random_bits
from handlax.testing import OPERATION_LAWS, LawFails, check_operation
from handlax.testing.operation_laws import LANE_COUNT
from handlax.testing.strategies import Domain, Operands


def law_named(name):
    return next(law for law in OPERATION_LAWS if law.name == name)


def doubling():
    @hx.operation
    class Doubled:
        def result_type(op, x):
            return x

        def evaluate(op, x):
            return 2 * x

        def batch(op, dims, x):
            return hx.perform(op, x), dims[0]

        def jvp(op, primals, tangents):
            return hx.perform(op, *primals), hx.perform(op, *tangents)

        def transpose(op, ct, x):
            return hx.perform(op, ct)

        sharding_rule = hx.sharding.alike

        def decompose(op, x):
            return x + x

        def lower(op, emit, x):
            return emit.binary("add", x, x)

        def ragged(op, run, types, x):
            mark, parts = run.split(x)
            return run.box(mark, [hx.perform(op, part) for part in parts])

    return Doubled()


@pytest.mark.parametrize("law", OPERATION_LAWS, ids=lambda law: law.name)
def test_an_operation_that_is_made_in_a_function_is_checked(law):
    dtype = "float16" if "halves" in law.needs else "float64"
    law.check(doubling(), [[np.array([0.5, -2.0, 3.0], dtype)], [np.ones((2, 3), dtype)]])


NUMBERS = itertools.count()


def square(name="", **cells):
    """The operation x^2, with other cells; each has a name of its own, since programs are parsed by names."""
    own = {
        "dtypes": hx.dtypes.FLOATING,
        "result_type": lambda op, x: x,
        "evaluate": lambda op, x: x * x,
        "batch": lambda op, dims, x: (hx.perform(op, x), dims[0]),
        "jvp": lambda op, primals, tangents: (hx.perform(op, *primals), 2 * primals[0] * tangents[0]),
        "sharding_rule": hx.sharding.alike,
        "decompose": lambda op, x: x * x,
        "exempt": {"transpose": "it is not linear"},
    }
    return hx.operation(type(name or f"Square{next(NUMBERS)}", (), {**own, **cells}))()


F32, F16, I32 = map(np.dtype, ("float32", "float16", "int32"))


def signs_changed(op, x):
    """The square, and the operand, where it is an integer, has another sign."""
    y = x * x
    x *= x.dtype.type(1 if x.dtype.kind == "f" else -1)
    return y


def first_lane(op, dims, x):
    return (hx.perform(op, hnp.broadcast_to(x[:1], x.shape)), 0) if dims == (0,) else (hx.perform(op, x), dims[0])


def linear(**cells):
    """The operation 2 x, with other cells."""
    own = {
        "evaluate": lambda op, x: x + x,
        "decompose": lambda op, x: x + x,
        "jvp": lambda op, primals, tangents: (hx.perform(op, *primals), hx.perform(op, *tangents)),
        "transpose": lambda op, ct, x: hx.perform(op, ct),
        "exempt": {},
    }
    return square(**{**own, **cells})


def product_rule(factor):
    """The derivative of a product, dx factor(y) + x dy."""

    def jvp(op, primals, tangents):
        (x, y), (dx, dy) = primals, [hnp.zeros_like(x) if dx is None else dx for x, dx in zip(primals, tangents)]
        return hx.perform(op, x, y), dx * factor(y) + x * dy

    return jvp


def product(**cells):
    """The operation x y, with other cells."""
    own = {
        "result_type": lambda op, x, y: x,
        "evaluate": lambda op, x, y: x * y,
        "batch": lambda op, dims, x, y: (hx.perform(op, along(x, dims[0], y), along(y, dims[1], x)), 0),
        "decompose": lambda op, x, y: x * y,
        "jvp": product_rule(lambda y: y),
    }
    return square(**{**own, **cells})


def changing():
    """The square, and another number where an integer operand is the last one again."""
    last = []

    def evaluate(op, x):
        again = x.dtype == I32 and last[-1:] == [x.tobytes()]
        last.append(x.tobytes())
        return x * x + x.dtype.type(again)

    return evaluate


def namesakes():
    """Two operations of one name; the text of a program has the later one."""
    return [square(name="Namesake") for _ in range(2)]


ALTERED = linear(decompose=lambda op, x: 3 * x)  # another function where it is compiled


# For each law an operation for which it fails alone.
WRONG = {
    "typing": square(dtypes=hx.dtypes.FLOATING | {I32}, evaluate=signs_changed),
    "compiled": square(lower=lambda op, emit, x: emit.binary("add" if x.type.dtype == F16 else "multiply", x, x)),
    "decomposition": square(
        lower=lambda op, emit, x: emit.binary("multiply", x, x), decompose=lambda op, x: x * x + (x.dtype == F16)),
    "finite_differences": square(
        jvp=lambda op, primals, tangents: (hx.perform(op, *primals), primals[0] * tangents[0])),
    "narrow_derivatives": square(
        jvp=lambda op, primals, tangents: (
            hx.perform(op, *primals), (3 if primals[0].dtype == F16 else 2) * primals[0] * tangents[0])),
    "tangent_types": linear(  # a tangent of another dtype is refused where the rule returns it
        transpose=lambda op, ct, x: hx.perform(op, ct).astype(F32 if ct.dtype == F16 else ct.dtype)),
    "adjoint": linear(transpose=lambda op, ct, x: 3 * ct),
    "symmetric": product(jvp=product_rule(hx.lax.stop_gradient)),
    "vmap": square(batch=first_lane),
    "ragged": square(ragged=lambda op, run, types, x: x),
    "commutes": square(
        jvp=lambda op, primals, tangents: (hx.perform(op, *primals), hx.perform(ALTERED, primals[0]) * tangents[0])),
    "partial_eval": square(dtypes=hx.dtypes.FLOATING | {I32}, evaluate=changing()),
    "sharding": square(sharding_rule=lambda op, xs, ys: hx.sharding.ShardingRule(["i"], ["ij"])),
    "text": namesakes()[0],
}


def failing(op, operands):
    """The names of the laws that fail for an operation, each of them checked alone."""
    found = []
    for law in OPERATION_LAWS:
        try:
            check_operation(op, operands, laws=[law])
        except LawFails:
            found.append(law.name)
    return found


def test_each_law_has_an_operation_for_which_it_fails():
    assert [*WRONG] == [law.name for law in OPERATION_LAWS]


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_by_its_law_alone(name):
    op = WRONG[name]
    arity = 2 if name == "symmetric" else 1
    dtypes = ("float64", "float32", "float16", "int32", "int32", "int32")
    even = [1.5] if name == "sharding" else []  # two devices cut no three elements
    draws = [[np.array([0.5, -1.0, 2.0 + k, *even], dtype)] * arity for k, dtype in enumerate(dtypes)]
    assert failing(op, [x for x in draws if x[0].dtype in op.dtypes]) == [name]


def test_a_rule_whose_result_is_another_is_found():
    """Though the derivative is right."""
    wrong = square(jvp=lambda op, primals, tangents: (2 * hx.perform(op, *primals), 2 * primals[0] * tangents[0]))
    assert failing(wrong, [[np.array([0.5, -1.0, 2.0])]]) == ["finite_differences"]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_operands_that_are_given_are_mapped_along_each_dimension(axis):
    def batch(op, dims, x):
        return hx.perform(op, x[::-1] if dims == (axis,) else x), dims[0]

    assert failing(square(batch=batch), [[np.arange(6.0).reshape(2, 3)]]) == ["vmap"]


def test_a_batching_rule_that_gives_too_many_lanes_is_found():
    def batch(op, dims, x):
        return hx.perform(op, hnp.concatenate([x, x], dims[0])), dims[0]

    assert "vmap" in failing(square(batch=batch), [[np.array([0.5, -1.0, 2.0])]])


def test_a_right_operation_passes():
    report = check_operation(square())
    assert set(report.left_out) == {"adjoint", "ragged"} and not report.unchecked
    assert len(report.held) + len(report.left_out) == len(OPERATION_LAWS)


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_with_operands_that_are_drawn(name):
    law = law_named(name)
    with pytest.raises(LawFails, match=re.escape(f"it is not so that {law.sentence}")):
        check_operation(WRONG[name], laws=[law])


DIFFERENCES = [law_named("finite_differences")]


def test_a_wrong_derivative_of_an_operation_of_32_bits_alone_is_found():
    """Whether it says so by its dtypes or by the type of its result."""
    def only_32_bits(op, x):
        if x.dtype != F32:
            raise hx.errors.DTypeMismatch("square: the operand must be float32.")
        return x

    cells = ({"dtypes": frozenset([F32])}, {"dtypes": None, "result_type": only_32_bits})
    for of_32_bits in cells:
        assert check_operation(square(**of_32_bits), laws=DIFFERENCES, examples=1).held
        wrong = {"jvp": lambda op, primals, tangents: (hx.perform(op, *primals), 7 * primals[0] * tangents[0])}
        with pytest.raises(LawFails, match="the difference quotient of it"):
            check_operation(square(**of_32_bits, **wrong), laws=DIFFERENCES, examples=1)


def test_a_wrong_derivative_beside_an_integer_operand_is_found():
    """Of an operation whose declared dtypes are those of the other operand."""
    power = product(
        evaluate=lambda op, x, n: np.asarray(x ** n.astype(x.dtype)), decompose=lambda op, x, n: x ** n.astype(x.dtype),
        jvp=lambda op, primals, tangents: (hx.perform(op, *primals), 7 * tangents[0]))
    for dtype in ("float64", "float32"):
        with pytest.raises(LawFails, match="the difference quotient of it"):
            check_operation(power, [[np.array([0.5, 2.0], dtype), np.int32([2, 3])]])


def test_laws_of_derivatives_are_left_out_of_an_operation_whose_results_have_none():
    positive = square(
        result_type=lambda op, x: hx.ArrayType(x.shape, bool), evaluate=lambda op, x: x > 0,
        decompose=lambda op, x: x > 0,
        jvp=lambda op, primals, tangents: (hx.perform(op, *primals), hx.zeros_tangent(primals[0])))
    report = check_operation(positive, laws=DIFFERENCES)
    assert report.left_out == {"finite_differences": "no result is real or complex"}


def test_a_product_is_checked_of_matrices_that_are_not_square():
    class Product:
        def result_type(op, x, y):
            if len(x.shape) != 2 or len(y.shape) != 2 or x.shape[1] != y.shape[0] or x.dtype != y.dtype:
                raise hx.errors.ShapeMismatch("product: matrices of one dtype must be given.")
            return hx.ArrayType((x.shape[0], x.shape[1]), x.dtype)

        def evaluate(op, x, y):
            return np.matmul(x, y)

        exempt = dict.fromkeys([law.name for law in OPERATION_LAWS if law.name != "typing"], "only its type is asked")

    with pytest.raises(LawFails, match="result_type"):
        check_operation(hx.operation(Product)())


def test_operands_are_drawn_from_the_domains_that_are_given():
    seen = set()

    class Root:
        dtypes = hx.dtypes.FLOATING

        def result_type(op, x):
            return x

        def evaluate(op, x):
            assert not x.size or x.min() >= 0.5
            seen.add((x.dtype.name, x.shape))
            return np.sqrt(x)

        exempt = dict.fromkeys([law.name for law in OPERATION_LAWS if law.name != "typing"], "only its type is asked")

    root = hx.operation(Root)()
    positive = Operands(root, (Domain(0.5, 2.0),), shapes=(((3,),), ((2, 2),)), dtypes=frozenset([np.dtype("float32")]))
    check_operation(positive)
    assert seen == {("float32", (3,)), ("float32", (2, 2))}
    seen.clear()
    check_operation(Operands(root, (Domain(0.5, 2.0),)))
    assert {dtype for dtype, _ in seen} == {dtype.name for dtype in Root.dtypes} and {()} < {shape for _, shape in seen}
    with pytest.raises(LawFails):
        check_operation(root)


def test_operands_must_be_given_where_none_are_found():
    class Nothing:
        def result_type(op, x):
            raise hx.errors.ShapeMismatch("nothing: no operand is right.")

        def evaluate(op, x):
            return x

    with pytest.raises(hx.errors.BadArgument, match="accepts none of the operands that are tried"):
        check_operation(hx.operation(Nothing)())
    with pytest.raises(hx.errors.BadArgument, match="there must be a draw of operands"):
        check_operation(square(), operands=[])


def test_a_failure_shows_the_operation_its_fields_the_operands_and_both_values():
    @hx.operation
    class Scaled:
        by: float
        dtypes = hx.dtypes.FLOATING
        exempt = {"transpose": "it is not asked"}

        def result_type(op, x):
            return x

        def evaluate(op, x):
            return op.by * x

        def batch(op, dims, x):
            return hx.perform(op, x), dims[0]

        def jvp(op, primals, tangents):
            return hx.perform(op, *primals), op.by * tangents[0]

        def decompose(op, x):
            return -op.by * x

    with pytest.raises(LawFails) as caught:
        check_operation(Scaled(2.0), operands=[[np.array([0.5, -1.0, 3.0])]])
    file = os.path.relpath(__file__)
    assert re.sub(rf"({re.escape(file)}):\d+", r"\1:N", str(caught.value)).splitlines() == [
        "Scaled(by=2.0): it is not so that evaluate by NumPy equals what is compiled by lower or decompose.",
        "  Scaled(by=2.0) compiled, against NumPy: 1 of 1 elements differ",
        "  got      [-2.]",
        "  expected [2.]",
        "  first at [0]: got -2.0, expected 2.0",
        "of Scaled(by=2.0)",
        f"evaluate: {file}:N",
        f"decompose: {file}:N",
        "operand 0: f64[1] [1.]",
        "Found with seed=0.",
    ]


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_a_batching_rule_that_takes_an_operand_of_rank_0_of_one_lane_is_found(dtype):
    def batch(op, dims, x, i):
        return hx.perform(op, along(x, dims[0], i), i if dims[1] is None else i[0]), 0

    def scalar_type(op, x, i):
        if i.shape or i.dtype != dtype:
            raise hx.errors.ShapeMismatch(f"scaled: the factor must be a scalar of {dtype}.")
        return x

    wrong = product(
        result_type=scalar_type, evaluate=lambda op, x, i: x * x.dtype.type(i), batch=batch,
        decompose=lambda op, x, i: x * i.astype(x.dtype))
    laws = [law_named("vmap")]
    domains = (Domain(), Domain(1, 4, dtype=dtype))
    with pytest.raises(LawFails, match="vmap, which calls batch, equals the loop over lanes"):
        check_operation(Operands(wrong, domains, shapes=(((3,), ()),)), laws=laws, examples=1)
    draws = [[np.ones(3), np.asarray(i, dtype)] for i in (1, 0, 2)]
    with pytest.raises(LawFails, match="vmap, which calls batch, equals the loop over lanes"):
        check_operation(wrong, draws, laws=laws)


def keyed(**cells):
    """Random uint32 numbers as of a key: words of the key, times a number."""
    own = {
        "result_type": lambda op, key, n: key_type(key, n),
        "evaluate": lambda op, key, n: np.asarray(key[..., 1] * n),
        "batch": lambda op, dims, key, n: (hx.perform(op, along(key, dims[0], n), along(n, dims[1], key)), 0),
        "decompose": lambda op, key, n: hx.random.key_data(key)[..., 1] * n,
    }
    return hx.operation(type("Keyed", (), {**own, **cells}))()


def key_type(key, n):
    if not hnp.issubdtype(key.dtype, hx.dtypes.prng_key) or n.dtype != "uint32" or key.shape != n.shape:
        raise hx.errors.DTypeMismatch(f"keyed: a key and a uint32 of one shape must be given, got {key} and {n}.")
    return hx.ArrayType(key.shape, n.dtype)


def along(x, d, other):
    return hnp.stack([x] * LANE_COUNT) if d is None else hnp.moveaxis(x, d, 0)


def test_an_operation_on_keys_is_checked_on_keys_that_are_drawn():
    assert {"typing", "compiled", "vmap"} <= {law.name for law, *_ in check_operation(keyed()).held}


def test_a_mistake_on_keys_is_found_and_the_key_is_shown():
    wrong = keyed(evaluate=lambda op, key, n: np.asarray(key[..., 0] * n))
    with pytest.raises(LawFails, match=r"(?s)evaluate by NumPy equals.*operand 0: key<fry>"):
        check_operation(wrong)


def test_operations_of_the_library_on_keys_are_checked():
    for op in (random_bits.RandomBits(32, (2,)), random_bits.RandomFoldIn(), random_bits.RandomUnwrap()):
        assert check_operation(op, examples=1, laws=[law_named("vmap")]).held


def test_a_rule_that_no_law_is_about_is_in_the_report():
    report = check_operation(square(sparse=lambda op, x: x), examples=1, seconds=0.0)
    assert report.unchecked["sparse"].startswith(os.path.relpath(__file__))
    assert re.search(r"rules that no law is about: 1\n  sparse +.*test_operation_laws.py:\d+", str(report))


def test_a_class_in_place_of_an_operation_is_refused():
    for wrong in (type(square()), np.sin, "sin"):
        with pytest.raises(hx.errors.BadArgument, match="check_operation: an operation is needed, got"):
            check_operation(wrong)


COMPILED = [law_named("compiled")]


def found(op, operands=None):
    """The draws of operands, reduced, with which it fails when it is compiled."""
    with pytest.raises(LawFails) as caught:
        check_operation(op, operands, laws=COMPILED, seconds=300.0)
    return caught.value.example[1]


def type_of(x, *others, shape=None):
    """The type of all operands, if these are alike, and of a shape that may be given."""
    if any([x != other for other in others]) or x.shape != (shape or x.shape):
        raise hx.errors.ShapeMismatch(f"operands must be of one type, and of the shape {shape}.")
    return x


def test_operands_with_nan_are_reduced_to_one_in_simple_surroundings():
    zero_at_nan = lambda op, x, y: hnp.where(hnp.isnan(x), 0.0, x * y)
    ((x, y),) = found(product(result_type=lambda op, x, y: type_of(x, y), decompose=zero_at_nan))
    assert x.size == y.size == 1 and np.isnan(x).all() and (y == 1).all()
    whole = product(result_type=lambda op, x, y: type_of(x, y, shape=(3,)), decompose=zero_at_nan)
    ((x, y),) = found(whole)
    assert sorted(np.nan_to_num(x)) == [0.0, 1.0, 1.0] and np.isnan(x).sum() == 1 and (y == 1).all()


def test_operands_are_reduced_to_the_elements_that_fail_wherever_they_are():
    x = np.linspace(0.1, 0.2, 60).reshape(3, 20)
    x[1, 13] = 7.3
    ((found_x,),) = found(square(decompose=lambda op, x: hnp.where(x > 5.0, 0.0, x * x)), [[x]])
    assert found_x.tolist() == [[7.0]]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
@pytest.mark.parametrize("end", ["min", "max"])
def test_the_ends_of_integers_are_among_the_operands(dtype, end):
    value = getattr(np.iinfo(dtype), end)
    wrong = square(
        dtypes=frozenset([np.dtype(dtype)]), evaluate=lambda op, x: x,
        decompose=lambda op, x: hnp.where(x == value, hnp.ones_like(x) * 5, x))
    ((x,),) = found(wrong)
    assert x.tolist() in (value, [value], [[value]], [[[value]]])


def test_a_transpose_that_returns_a_tuple_is_told_what_it_has_to_return():
    wrong = linear(transpose=lambda op, ct, x: (hx.perform(op, ct),))
    with pytest.raises(LawFails, match="transpose: the rule must return the cotangent of operand 0, an array"):
        check_operation(wrong, laws=[law_named("adjoint")])


def test_a_wrong_dimension_of_lanes_is_named():
    wrong = square(batch=lambda op, dims, x: (hx.perform(op, x), len(x.shape) - 1))
    with pytest.raises(LawFails, match="the rule must return the dimension of the result that has the 4 lanes"):
        check_operation(wrong, laws=[law_named("vmap")])


def test_the_lines_of_rules_are_relative_to_the_working_directory(monkeypatch, tmp_path):
    rules = lambda: check_operation(square(sparse=lambda op, x: x), examples=1, seconds=0.0).unchecked["sparse"]
    monkeypatch.chdir(Path(__file__).parent)
    assert re.fullmatch(r"test_operation_laws\.py:\d+", rules())
    monkeypatch.chdir(tmp_path)
    assert rules().startswith(f"{__file__}:")


def test_given_operands_are_made_small():
    with pytest.raises(LawFails) as caught:
        check_operation(WRONG["adjoint"], operands=[[np.ones(3)], [np.arange(1000.0).reshape(10, 100)]])
    (((x,),),) = caught.value.example[1:]
    assert x.size == 1


@hx.operation
class LargestOfAll:
    """The largest element, 0 at least."""

    dtypes = frozenset([np.dtype("float32"), np.dtype("float64")])

    def result_type(op, x):
        return hx.ArrayType((), x.dtype)

    def evaluate(op, x):
        return np.max(x, initial=0).astype(x.dtype)

    def ragged(op, run, types, x):
        marked, parts = run.split(x)
        return run.box(marked, list(parts))


def test_a_ragged_rule_whose_result_has_another_type_fails():
    with pytest.raises(LawFails, match=r"the type is f\d\d\[n\d.*\], expected f\d\d\[\]"):
        check_operation(LargestOfAll(), laws=[law_named("ragged")])


def test_transposes_are_traced():
    op, by_numpy = doubling(), lambda op, ct, x: hnp.asarray(2 * np.asarray(ct))
    with hx.rules(transpose={type(op): by_numpy}), pytest.raises(hx.errors.TracerArrayConversionError):
        law_named("adjoint").check(op, [[np.ones(3)]])


@pytest.mark.parametrize(("dtype", "given"), [
    ("float32", "float64"), ("float64", "float32"), ("float16", "float64"), ("complex64", "complex128"),
    ("complex64", "float64"),
])
def test_a_rule_that_gives_floats_of_another_width_is_found(dtype, given):
    wide = square(evaluate=lambda op, x: np.asarray(x.real.astype(given)), dtypes=hx.dtypes.INEXACT)
    with pytest.raises(LawFails, match=rf"result_type is .*\[1\], evaluate gave numbers of {given}"):
        check_operation(wide, [[np.ones(3, dtype)]], laws=[law_named("typing")])


@pytest.mark.parametrize(("dtype", "made"), [
    ("float16", np.float32), ("complex64", lambda x: x.real), ("float32", lambda x: x.astype("int64")),
    ("float32", lambda x: np.full(3, 1.0).tolist()[0]),
])
def test_what_a_rule_gives_may_be_rounded_once_or_be_a_number_of_any_width(dtype, made):
    op = square(evaluate=lambda op, x: made(x), dtypes=hx.dtypes.INEXACT)
    assert check_operation(op, [[np.ones((), dtype)]], laws=[law_named("typing")]).held


def test_the_lane_that_differs_is_shown_with_its_operands():
    def batch(op, dims, x, y):
        lanes = along(x, dims[0], y) * along(y, dims[1], x)
        return lanes.at[2].add(1.0) if dims[1] is None else lanes, 0

    draws = [[np.full(3, k), np.full(3, 7.0)] for k in (1.0, 2.0, 3.0, 4.0)]
    with pytest.raises(AssertionError, match=r"under vmap\(\d, None\), lane 2: ") as caught:
        law_named("vmap").check(product(batch=batch), draws)
    assert str(caught.value).splitlines()[-2:] == [
        "operand 0 of lane 2: f64[3] [3., 3., 3.]", "operand 1 of all lanes: f64[3] [7., 7., 7.]"]


def test_the_lane_of_a_length_that_differs_is_shown_with_its_rows():
    wrong = doubling()
    ragged = lambda op, run, types, x: run.box(run.split(x)[0], [3 * part for part in run.split(x)[1]])
    with hx.rules(ragged={type(wrong): ragged}), pytest.raises(AssertionError, match="lane 0: ") as caught:
        law_named("ragged").check(wrong, [[np.array([1.0, 2.0, 3.0])]])
    assert str(caught.value).splitlines()[-1] == "operand 0 of lane 0: f64[3] [1., 2., 3.]"


@pytest.mark.parametrize("wrong", [0, 1])
def test_the_operand_of_which_a_rule_is_wrong_is_named(wrong):
    def batch(op, dims, x, y):
        lanes = along(x, dims[0], y) * along(y, dims[1], x)
        return lanes if dims[wrong] is None else lanes[::-1], 0

    def jvp(op, primals, tangents):
        (x, y), (dx, dy) = primals, [hnp.zeros_like(x) if dx is None else dx for x, dx in zip(primals, tangents)]
        return hx.perform(op, x, y), (1 + (wrong == 0)) * dx * y + (1 + (wrong == 1)) * x * dy

    draws = [[np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])]]
    with pytest.raises(AssertionError, match=rf"derivative by operand {wrong}:"):
        law_named("finite_differences").check(product(jvp=jvp), draws)
    with pytest.raises(AssertionError, match=r"vmap\(\d, None\)" if wrong == 0 else r"vmap\(None, \d\)"):
        law_named("vmap").check(product(batch=batch), draws)
